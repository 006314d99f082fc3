"""redis-server under a fixed number of requests from redis-benchmark.

The server runs on the allocator, the client does not.  The time is the client's wall time; CPU time, page
faults and peak memory are the server's, from /proc."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .allocators import Allocator
from .execute import TIMEOUT_SECONDS, RunError, Sample, user_environment
from .real_program import SHARED_VARIABLES, RealProgram, find_program, preload_variables
from .workload import Length

# Short strings, lists, sets and hashes; keys are drawn anew by the client in every run.
LOADS = (
    "-c 20 -P 16 -d 100 -r 50000 -t set,get,lpush,rpop,sadd,hset",
    "-c 20 -P 4 -d 1500 -r 5000 -t set,get",
)
SETTINGS = "--port 0 --save  --appendonly no --daemonize no --loglevel warning --jemalloc-bg-thread no"
# Debian's package redis-tools has the server under this name, and no service that would be started.
SERVERS = ("redis-server", "redis-check-rdb")
START_SECONDS = 20.0
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """What /proc says of a process."""

    user_s: float
    sys_s: float
    minor_faults: int
    peak_rss_kib: int


def usage_of(pid: int) -> Usage:
    """The process's usage so far."""
    # The name in brackets may hold spaces; the fields after it are counted from 3.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return Usage(
        user_s=int(fields[11]) / TICKS_PER_SECOND,
        sys_s=int(fields[12]) / TICKS_PER_SECOND,
        minor_faults=int(fields[7]),
        peak_rss_kib=int(status["VmHWM"].split()[0]),
    )


@contextmanager
def _server(environment: dict[str, str], folder: Path) -> Iterator[tuple[int, str]]:
    """A server of its own: its process id and its socket."""
    executable = next(path for path in map(find_program, SERVERS) if path is not None)
    socket = f"{folder}/redis.sock"
    words = ["redis-server", *SETTINGS.split(" "), "--unixsocket", socket, "--dir", str(folder)]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, executable=executable, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not Path(socket).exists():
            if process.poll() is not None or time.monotonic() > deadline:
                last = (log.read_text(errors="replace").splitlines() or ["no message"])[-1]
                raise RunError(f"redis-server did not start: {last}")
            time.sleep(0.005)
        yield process.pid, socket
    finally:
        process.terminate()
        try:
            process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _requests(socket: str, load: str, count: int) -> None:
    command = ["redis-benchmark", "-s", socket, "-n", str(count), "-q", *load.split()]
    try:
        done = subprocess.run(
            command,
            env=user_environment(),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"redis-benchmark: {error}") from error
    if done.returncode != 0 or "requests per second" not in done.stdout:
        raise RunError(f"redis-benchmark: {(done.stderr or done.stdout).strip()[-200:]}")


@dataclass(frozen=True)
class RedisServer(RealProgram):
    """`size` is the number of requests of each kind."""

    def missing(self) -> str:
        if not any(map(find_program, SERVERS)):
            return f"{self.name}: {self.program} is not installed: Debian package {self.package}"
        return super().missing()

    def command_text(self, length: Length) -> str:
        loads = "; ".join(f"redis-benchmark -n {self.size(length)} {load}" for load in LOADS)
        return f"redis-server {SETTINGS} for {loads}"

    def write_inputs(self, size: int) -> None:
        """There are none."""

    def run(self, allocator: Allocator, size: int, more_variables: dict[str, str]) -> Sample:
        environment = user_environment() | SHARED_VARIABLES | more_variables | preload_variables(allocator)
        with (
            tempfile.TemporaryDirectory(prefix="hakmem-redis-") as name,
            _server(environment, Path(name)) as (pid, socket),
        ):
            before, start = usage_of(pid), time.monotonic()
            for load in LOADS:
                _requests(socket, load, size)
            seconds, after = time.monotonic() - start, usage_of(pid)
        return {
            "ops": 1,
            "seconds": seconds,
            "ns_per_op": seconds * 1e9,
            "user_s": after.user_s - before.user_s,
            "sys_s": after.sys_s - before.sys_s,
            "peak_rss_kib": after.peak_rss_kib,
            "minor_faults": after.minor_faults - before.minor_faults,
        }
