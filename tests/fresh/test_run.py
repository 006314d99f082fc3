"""scripts/run, what `make run` does, with a compiler of a few lines: it ends in time however slow the
machine is, and takes Ctrl-C at any moment."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from results import captured

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "scripts" / "run"
SLOW = """
import runpy, sys
sys.path.insert(0, "scripts")
module = runpy.run_path("scripts/run")
module["compare"].__globals__.update(WARM_UP_S=0.5, BUDGET_S=3)
sys.exit(module["main_job"]())
"""


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """`CC` notes each call, and takes the time that the file `takes` says; nothing stays in `TMPDIR`."""
    compiler = tmp_path / "compiler"
    compiler.write_text(
        f'#!/bin/sh\necho >>{tmp_path}/calls\nread -r takes <{tmp_path}/takes\nsleep "$takes"\n'
    )
    compiler.chmod(0o755)
    folder = tmp_path / "temporary"
    folder.mkdir()
    yield os.environ | {"CC": str(compiler), "TMPDIR": str(folder), "HAK_RUN_COMMAND": ""}
    assert not list(folder.iterdir())


def calls(tmp_path: Path) -> int:
    path = tmp_path / "calls"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_slow_machine_compiles_less(environment: dict[str, str], tmp_path: Path) -> None:
    """As many files as it can in the warm-up, each once on each malloc at least."""
    (tmp_path / "takes").write_text("0.1\n")
    done = captured(["python3", "-c", SLOW], cwd=ROOT, env=environment, timeout=100)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    files = int(lines[0].split()[0])
    assert files < len(list((ROOT / "src").rglob("*.c")))
    rounds = [line for line in lines if line.startswith("  round ")]
    assert rounds
    assert calls(tmp_path) == files * (1 + 2 * len(rounds))


def test_below_the_table_is_a_command_to_try(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "takes").write_text("0\n")
    done = captured(["python3", "-c", SLOW], cwd=ROOT, env=environment, timeout=100)
    below = done.stdout.split("ratio")[1].strip().splitlines()[-3:]
    assert "processor time" in below[0] and "memory" in below[0]
    assert "LD_PRELOAD" in below[1]
    assert "make run CMD=" in below[2]


def test_control_c_ends_it_without_a_traceback(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "takes").write_text("600\n")
    process = subprocess.Popen(
        [RUN], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )
    while not calls(tmp_path):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert out == "hakmem: interrupted\n"
    assert err == ""
