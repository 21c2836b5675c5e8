"""The page in a browser, which has nothing to complain about."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tuner.report.synthetic import HOSTILE
from tests.waiting import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for name in NAMES if (path := shutil.which(name)) is not None), None)
    if found is None:
        pytest.skip(f"none of {', '.join(NAMES)} is on the PATH")
    return found


def opened(browser: str, page: str, folder: Path, *more: str, part: str = "") -> tuple[str, list[str]]:
    """The document after its scripts have run, and the messages of the console."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={folder / 'profile'}",
            "--enable-logging=stderr",
            "--v=0",
            *more,
            "--dump-dom",
            f"{file.as_uri()}#{part}",
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if re.search(r":CONSOLE", line)]


def test_a_broken_page_is_noticed(browser: str, tmp_path: Path) -> None:
    _, messages = opened(browser, "<!DOCTYPE html><title>x</title><script>nothing.there()</script>", tmp_path)
    assert len(messages) == 1
    assert "ReferenceError" in messages[0]


@pytest.mark.parametrize("more", [(), ("--blink-settings=preferredColorScheme=0",), ("--window-size=480,900",)])
def test_the_console_is_silent(browser: str, page: str, tmp_path: Path, more: tuple[str, ...]) -> None:
    document, messages = opened(browser, page, tmp_path, *more)
    assert messages == []
    assert document.count("<script>") == 1
    assert HOSTILE not in document
    assert document.count('class="kernel"') == 4


def test_a_link_unfolds_the_section_that_it_leads_to(browser: str, page: str, tmp_path: Path) -> None:
    folded = 'id="kernel-2" class="kernel">'
    assert folded in page
    assert folded in opened(browser, page, tmp_path)[0]
    document, messages = opened(browser, page, tmp_path, part="kernel-2")
    assert folded not in document
    assert messages == []
