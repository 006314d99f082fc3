"""`make test &` in a script, and `nohup make test`: SIGINT and SIGQUIT, or SIGHUP, are ignored by all that is
started, and programs under test would inherit that.  CPython's own tests end only by such a signal, and so do
many of python/hakmem's."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from results import captured

# But for those that Python itself ignores.
IGNORED = """
import signal
others = signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}
print([n for n in sorted(others) if signal.getsignal(n) == signal.SIG_IGN])
"""
HANGS_UP = "TESTS_HANG_UP"


def test_programs_have_the_usual_signals(plain: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    if HANGS_UP in os.environ:
        os.kill(os.getpid(), signal.SIGHUP)
    assert plain([sys.executable, "-c", IGNORED]).stdout == "[]\n"


def test_programs_of_a_background_job_too(root: Path) -> None:
    """And what was told to survive a hangup does."""
    one = f"{Path(__file__).relative_to(root)}::{test_programs_have_the_usual_signals.__name__}"
    ignore = 'trap "" HUP INT QUIT TERM USR1 ALRM CHLD; exec "$@"'
    job = captured(
        ["sh", "-c", ignore, "sh", sys.executable, "-m", "pytest", "-q", one],
        cwd=root,
        env=os.environ | {HANGS_UP: "1"},
    )
    assert job.returncode == 0, job.stdout
    assert "1 passed" in job.stdout
