"""What the fuzz tests of the tool share: processes, files and words that commands are pointed at.

FUZZ_TOOL_SECONDS (2; `make soak` gives more) for each kind of input; FUZZ_TOOL_SEED for other cases."""

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from results import Tally
from tool.dumps import HAS_GCORE, dumped
from tool.processes import hakmem, running, runs

SECONDS = float(os.environ.get("FUZZ_TOOL_SECONDS", "2"))
SEED = os.environ.get("FUZZ_TOOL_SEED", "1")
PID_MAX = int(Path("/proc/sys/kernel/pid_max").read_text())

WORDS = (
    *("", " ", "9" * 30, "9" * 5000, "9" * 400 + "d", "x" * 300, "a\nb", "\x1b[31m", "\udcff", "e\u0301"),
    *"- -- --- -x --nosuch 0 1 -1 2 ² ٣ 0x10 1e9 nan inf 1s 0s 10ms 1d1d -5s 1.s s".split(),
    *"/ . .. /dev/null /proc/self/mem /proc/self/maps /nonexistent/x dir empty text loop".split(),
    *"[red]x[/] [/] %s%n 日本 \U0001f600 :80 127.0.0.1:0x [::1]:99999 ..:1 nosuchhost.invalid:1".split(),
    *("127.0.0.1:²", "a" * 70 + ":1", "A=1", "=", "=x", "A\x01=", "HAKMEM_X=1"),
    *"true false ./text ./script ./closed bash fish".split(),
)


@dataclass
class World:
    """What commands are pointed at."""

    folder: Path
    busy: int
    recording: Path
    core: Path | None
    chance: random.Random

    def one_of(self, *things: object) -> str:
        return str(self.chance.choice(things))

    def word(self) -> str:
        """Any argument."""
        pids = (self.busy, os.getpid(), os.getppid(), 1, 2, PID_MAX, PID_MAX + 1, -self.busy)
        files = (self.recording, self.core or "none", sys.executable, shutil.which("true"))
        kind = self.chance.random()
        if kind < 0.25:
            return self.one_of(*pids)
        return self.one_of(*files) if kind < 0.4 else self.one_of(*WORDS)


process = runs("busy.c", "3000")


@pytest.fixture(scope="module")
def made(process: subprocess.Popen[str], lib: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("fuzz")
    run = folder / "run.json"
    hakmem("record", process.pid, "--for", "300ms", "--every", "100ms", "-o", run)
    core = None
    if HAS_GCORE:
        with running(["sh", "-c", "echo ready; sleep 60; true"], lib) as other:
            whole, core = dumped(other.pid, folder), folder / "core.small"
            # Dumps are mostly holes, which gdb fills.
            subprocess.run(["cp", "--sparse=always", str(whole), str(core)], check=True)
            whole.unlink()
    return World(folder, process.pid, run, core, random.Random(SEED))


@pytest.fixture
def world(made: World, request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """In a folder of its own, with what words name in it."""
    (tmp_path / "dir").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("some text\n")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "script").write_text("#!/nonexistent/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    (tmp_path / "closed").touch(0)
    chance = random.Random(f"{SEED} {request.node.name}")
    return World(tmp_path, made.busy, made.recording, made.core, chance)


def counted(tally: Tally) -> Iterator[int]:
    """Numbers until the time is over."""
    until_s, number = time.monotonic() + SECONDS, 0
    while time.monotonic() < until_s:
        yield number
        number += 1
    tally(number, "sequences")
