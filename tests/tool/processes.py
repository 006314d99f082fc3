"""Real processes on hakmem, and the tool as a user calls it.

with running([program], lib) as process: …          a program that prints "ready" and waits
with running_redis(server, lib) as (process, port): …
hakmem("why", process.pid, "--json")
with begun("record", process.pid) as tool: …        the tool itself, beside the test
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from preload import preload_environment
from results import Compile
from tool.forked import LIMIT_S, Ending, forked, tool_environment

PROGRAMS = Path(__file__).parent / "programs"
READY = "ready"
PATIENCE_S = 60.0  # of a machine that others use, too
STEP_S = 0.02
TOOL = [sys.executable, "-m", "hakmem"]


def hakmem(*arguments: object, status: int = 0, limit_s: int = LIMIT_S) -> Ending:
    """Runs `hakmem …`; it has to end with this status."""
    ending = forked(arguments, limit_s=limit_s)
    assert ending.status == status, f"{arguments} gave {ending}"
    return ending


def hakmem_json(*arguments: object) -> Any:  # noqa: ANN401 - whatever the command prints
    """The answer of `hakmem … --json`."""
    return json.loads(hakmem(*arguments, "--json").stdout)


@contextmanager
def begun(
    *arguments: object, preexec_fn: Callable[[], object] | None = None, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    """`hakmem …` with pipes for what it reads and says, to the end of the block."""
    words, environment = [*TOOL, *map(str, arguments)], tool_environment(variables)
    options = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | {"preexec_fn": preexec_fn}
    with subprocess.Popen(words, env=environment, text=True, **options) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def running(
    command: Sequence[str | Path],
    lib: Path,
    environment: Mapping[str, str] | None = None,
    ready: str | None = READY,
) -> Iterator[subprocess.Popen[str]]:
    """A program on hakmem, from the moment that it has printed the line `ready` to the end of the block.

    The lines before that are in `process.said`."""
    process = subprocess.Popen(
        [str(word) for word in command],
        env=preload_environment(lib) | dict(environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        process.said = read_until(process, ready) if ready is not None else []  # type: ignore[attr-defined]
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def runs(
    name: str, *arguments: str, flags: Sequence[str] = (), scope: str = "module", **environment: str
) -> Callable[..., Iterator[subprocess.Popen[str]]]:
    """A fixture: this program of programs/, which runs on hakmem all the time."""

    @pytest.fixture(scope=scope)  # type: ignore[call-overload]
    def given(lib: Path, compile_c: Compile) -> Iterator[subprocess.Popen[str]]:
        with running([compile_c(PROGRAMS / name, *flags), *arguments], lib, environment) as process:
            yield process

    return given  # type: ignore[no-any-return]


def read_until(process: subprocess.Popen[str], ready: str) -> list[str]:
    """The lines before the one that says that the program is ready."""
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        if line.rstrip("\n") == ready:
            return said
        said.append(line.rstrip("\n"))
    pytest.fail(f"{process.args} ended with {process.wait()} before it was ready; it said {said}")


@contextmanager
def running_redis(server: Path, lib: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A redis-server that answers, and its port."""
    port = free_port()
    words = [server, "--port", str(port), "--bind", "127.0.0.1"]
    quiet = ["--save", "", "--appendonly", "no", "--logfile", os.devnull]
    with running([*words, *quiet], lib, ready=None) as process:
        wait_until(lambda: answers(port), f"redis does not answer at port {port}")
        yield process, port


def redis_load(port: int, *arguments: str) -> subprocess.Popen[bytes]:
    """A redis-benchmark that runs until the test ends it."""
    words = ["redis-benchmark", "-p", str(port), "-q", *arguments]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def answers(port: int) -> bool:
    """Whether the port has a listener."""
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0


def wait_until(is_so: Callable[[], object], complaint: str, patience_s: float = PATIENCE_S) -> Any:  # noqa: ANN401
    """The first true answer of `is_so`; the test fails if that takes too long."""
    until_s = time.monotonic() + patience_s
    while not (answer := is_so()):
        if time.monotonic() > until_s:
            pytest.fail(complaint)
        time.sleep(STEP_S)
    return answer
