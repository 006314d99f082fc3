"""tests/browser.py where a command is called as a browser is, and is none."""

from pathlib import Path

import pytest
from browser import browser_of

# As Ubuntu has it.
STUB = "#!/bin/sh\necho \"Command '$0' requires the chromium snap to be installed.\" >&2\nexit 1\n"
BROWSER = "#!/bin/sh\necho '<html><body>42</body></html>'\n"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def place(folder: Path, name: str, text: str) -> Path:
    command = folder / name
    command.write_text(text)
    command.chmod(0o755)
    return command


def found() -> str:
    """The browser, or why there is none."""
    try:
        return browser_of(lambda name: Path("/nowhere", name))
    except pytest.skip.Exception as skipped:
        return str(skipped)


def test_what_shows_no_page_is_no_browser(path: Path) -> None:
    stub = place(path, "chromium-browser", STUB)
    assert found().startswith(f"{stub} shows no page: Command '{stub}' requires the chromium snap")


def test_another_takes_its_place(path: Path) -> None:
    place(path, "chromium-browser", STUB)
    other = place(path, "google-chrome", BROWSER)
    assert found() == str(other)


@pytest.mark.usefixtures("path")
def test_else_it_is_what_the_tests_install() -> None:
    assert found() == "/nowhere/chromium"
