"""The process that compiles candidates."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never

from tc.artifact.packing import options_from_text, pack
from tc.base.environment import environment
from tc.base.errors import DeviceError, NoRoomError, OptionsError, TCError
from tc.base.interface import Interface
from tc.compiler import build_once
from tc.language.lower.interface import interface_of
from tc.language.lower.specialize import specialize
from tc.polyhedral.pipeline import Prepared
from tc.targets.target import Target, parse_target
from tc.tuner.trial.kept_builds import KeptBuilds
from tc.tuner.trial.messages import Answer, Build, Built, Calibrate, Check, Done, Prepare, Question, Time
from tc.tuner.trial.task import Task, parse_task
from tc.tuner.trial.trial_outcome import Failed, FailureKind


class BuildHandler:
    """Compiles one task with any options; its dependences and schedules are computed once."""

    def __init__(self) -> None:
        self._prepared: tuple[Prepared, Interface, Target, KeptBuilds] | None = None

    def answer(self, question: Question, _payload: bytes, /) -> tuple[Answer, bytes]:
        """The answer, and its bytes."""
        match question:
            case Prepare(task, folder, _):
                self._prepared = (*_prepare(task), KeptBuilds(Path(folder)))
                return Done(), b""
            case Build(options):
                return self._build(options)
            case Calibrate() | Check() | Time():
                raise ValueError(f"a process that compiles is asked {question!r}")
            case _:
                assert_never(question)

    def _build(self, options: str) -> tuple[Answer, bytes]:
        assert self._prepared is not None, "nothing was prepared"
        prepared, interface, target, kept = self._prepared
        try:
            chosen = options_from_text(options, str(target))
            source, executable = build_once(prepared, interface, chosen, target, environment(), kept.find)
            kept.keep(source, executable)
        except OptionsError as error:
            return Failed(FailureKind.ILLEGAL, str(error)), b""
        except NoRoomError as error:
            return Failed(FailureKind.LOST, str(error)), b""
        except DeviceError as error:
            return Failed(FailureKind.DEVICE, str(error)), b""
        except MemoryError:
            return Failed(FailureKind.MEMORY, "the compiler ran out of memory"), b""
        except TCError as error:
            return Failed(FailureKind.COMPILE, f"{type(error).__name__}: {error}"), b""
        return Built(), pack(executable)


def _prepare(task: Task) -> tuple[Prepared, Interface, Target]:
    program = parse_task(task)
    return Prepared(specialize(program, task.signature)), interface_of(program), parse_target(task.target)
