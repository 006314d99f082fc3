"""`make test &` in a script: the shell ignores SIGINT and SIGQUIT for all that it starts, and programs under
test would inherit that.  CPython's own tests end only by such a signal, and so do many of python/hakmem's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

IGNORED = "import signal; print([n for n in (2, 3) if signal.getsignal(n) == signal.SIG_IGN])"


def test_programs_have_the_usual_signals(plain: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert plain([sys.executable, "-c", IGNORED]).stdout == "[]\n"


def test_programs_of_a_background_job_too(root: Path) -> None:
    one = f"{Path(__file__).relative_to(root)}::{test_programs_have_the_usual_signals.__name__}"
    job = subprocess.run(
        ["sh", "-c", 'trap "" INT QUIT; exec "$@"', "sh", sys.executable, "-m", "pytest", "-q", one],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert job.returncode == 0, job.stdout
    assert "1 passed" in job.stdout
