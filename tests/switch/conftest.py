"""`start(…)` runs worker.c on hakmem, `start_program(source, …)` another one; its profile is switched from
outside (outside.py)."""

import importlib.util
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from preload import preload_environment
from results import Compile

# Without a package index `make` leaves the tool out, and says so.
collect_ignore_glob = [] if importlib.util.find_spec("hakmem") else ["test_*.py"]

WORKER = Path(__file__).parent / "worker.c"
END_S = 120.0


@dataclass
class Worker:
    process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def say(self, line: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.line()

    def end(self) -> None:
        """It ends well, and has found nothing wrong."""
        try:
            _, stderr = self.process.communicate(timeout=END_S)
        finally:
            self.process.kill()
        assert (self.process.returncode, stderr) == (0, "")


@pytest.fixture
def start_program(compile_c: Compile, lib: Path) -> Iterator[Callable[..., Worker]]:
    """They end with the test, if not before."""
    started: list[Worker] = []

    def run(
        source: Path, *arguments: object, library: Path = lib, env: Mapping[str, str] | None = None
    ) -> Worker:
        process = subprocess.Popen(
            [str(compile_c(source)), *map(str, arguments)],
            env=preload_environment(library, "") | dict(env or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        worker = Worker(process)
        started.append(worker)
        assert worker.line() == "ready", "it is on hakmem, and has allocated"
        return worker

    yield run
    for worker in started:
        if worker.process.returncode is None:
            worker.end()


@pytest.fixture
def start(start_program: Callable[..., Worker]) -> Callable[..., Worker]:
    return partial(start_program, WORKER)
