"""The PTX that NVRTC makes of a source, with the flags that ``tc`` compiles with."""

from __future__ import annotations

from tc.runtime.cuda import nvrtc


def ptx_of(source: str, architecture: str) -> str:
    library = nvrtc._load()
    (program,) = nvrtc._checked(library, *library.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    flags = [flag.encode() for flag in nvrtc.nvrtc_flags(architecture)]
    nvrtc._checked(library, *library.nvrtcCompileProgram(program, len(flags), flags))
    text = nvrtc._text(library, program, library.nvrtcGetPTXSize, library.nvrtcGetPTX)
    library.nvrtcDestroyProgram(program)
    return text.rstrip(b"\0").decode()
