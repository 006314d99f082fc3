"""A server as a real program, under a fixed number of a client's requests.

The server runs on the allocator, the client does not.  The time is the client's wall time; CPU time, page
faults and peak memory are the server's, from /proc."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from pwd import struct_passwd
from typing import Any

from .allocators import Allocator
from .execute import TIMEOUT_SECONDS, RunError, Sample, user_environment
from .real_program import SHARED_VARIABLES, RealProgram, find_program, preload_variables
from .workload import Length

START_SECONDS = 20.0
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Short strings, lists, sets and hashes; keys are drawn anew by the client in every run.
REDIS_LOADS = (
    "-c 20 -P 16 -d 100 -r 50000 -t set,get,lpush,rpop,sadd,hset",
    "-c 20 -P 4 -d 1500 -r 5000 -t set,get",
)
REDIS_SETTINGS = "--port 0 --save  --appendonly no --daemonize no --loglevel warning --jemalloc-bg-thread no"
# Debian's package redis-tools has the server under this name, and no service that would be started.
REDIS_SERVERS = ("redis-server", "redis-check-rdb")
# Each request passes through a proxy, which buffers and compresses, to a file that the server itself serves.
NGINX_CONFIGURATION = """
daemon off; master_process off; pid nginx.pid; error_log stderr error;
events { worker_connections 256; }
http {
  access_log off; gzip on; gzip_min_length 100; gzip_types text/plain; gzip_http_version 1.0;
  gzip_proxied any; add_header X-Id $request_id;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  server { listen unix:FOLDER/page.sock; location / { default_type text/plain; root FOLDER; } }
  server { listen 127.0.0.1:PORT; location / { proxy_pass http://unix:FOLDER/page.sock; } }
}
"""
PAGE_LINES = 600


@dataclass(frozen=True)
class Usage:
    """What /proc says of a process."""

    user_s: float
    sys_s: float
    minor_faults: int
    peak_rss_kib: int

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(sum, zip(astuple(self), astuple(other), strict=True)))


def usage_of(pid: int, with_ended: bool = False) -> Usage:
    """The process's usage so far, and that of its children that have ended."""
    # The name in brackets may hold spaces; the fields after it are counted from 3.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    system, faults = (
        int(fields[own]) + (int(fields[ended]) if with_ended else 0) for own, ended in ((12, 14), (7, 8))
    )
    peak = int(status["VmHWM"].split()[0])
    # Ticks of 10 ms are too coarse for the sum: the process's clock has nanoseconds, and its ended threads.
    own = time.clock_gettime(~pid << 3 | 2)
    ended = sum(int(fields[at]) for at in (13, 14)) / TICKS_PER_SECOND if with_ended else 0.0
    return Usage(own + ended - system / TICKS_PER_SECOND, system / TICKS_PER_SECOND, faults, peak)


def sample_of(before: Usage, after: Usage, seconds: float, peak_kib: int) -> Sample:
    return {
        "ops": 1,
        "seconds": seconds,
        "ns_per_op": seconds * 1e9,
        "user_s": after.user_s - before.user_s,
        "sys_s": after.sys_s - before.sys_s,
        "peak_rss_kib": peak_kib,
        "minor_faults": after.minor_faults - before.minor_faults,
    }


@dataclass(frozen=True)
class Start:
    """How to start a server, and where it then listens: a path, or a port of this machine."""

    command: list[str]
    address: str | int
    ready: tuple[Path, str] | None = None  # a file, and the text that it has when the server listens


def _answers(start: Start) -> bool:
    if start.ready is not None:
        path, text = start.ready
        return path.exists() and text in path.read_text()
    if isinstance(start.address, str):
        return Path(start.address).exists()
    with closing(socket.socket()) as connection:
        return connection.connect_ex(("127.0.0.1", start.address)) == 0


def as_user(user: struct_passwd | None) -> dict[str, Any]:
    """Arguments of subprocess: the child runs as the user."""
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def _running(
    start: Start, executable: str, environment: dict[str, str], folder: Path, user: struct_passwd | None
) -> Iterator[int]:
    """A server of its own: its process id."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            start.command,
            executable=executable,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            **as_user(user),
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(start):
            if process.poll() is not None or time.monotonic() > deadline:
                last = (log.read_text(errors="replace").splitlines() or ["no message"])[-1]
                raise RunError(f"{start.command[0]} did not start: {last}")
            time.sleep(0.005)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run_client(command: list[str], proof: str) -> None:
    """Runs the client, whose output has `proof` when it has been served."""
    name = command[0]
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
        raise RunError(f"{name}: {error}") from error
    if done.returncode != 0 or proof not in done.stdout:
        raise RunError(f"{name}: {(done.stderr or done.stdout).strip()[-200:]}")


@dataclass(frozen=True)
class ServerProgram(RealProgram):
    """`size` is the number of requests of each kind; `program` the client."""

    @property
    @abstractmethod
    def servers(self) -> tuple[str, ...]:
        """The names that the server may have."""

    @abstractmethod
    def start(self, folder: Path) -> Start: ...

    @abstractmethod
    def load(self, address: str | int, size: int) -> None:
        """Runs the client.  Raises RunError."""

    def missing(self) -> str:
        if not any(map(find_program, self.servers)):
            return f"{self.name}: {self.servers[0]} is not installed: Debian package {self.package}"
        return super().missing()

    def write_inputs(self, size: int) -> None:
        """There are none."""

    def run(self, allocator: Allocator, size: int, more_variables: dict[str, str]) -> Sample:
        with tempfile.TemporaryDirectory(prefix=f"hakmem-{self.name}-") as name:
            start = self.start(Path(name))
            preload = preload_variables(self.readable(allocator, Path(name)))
            environment = user_environment() | SHARED_VARIABLES | more_variables | preload
            executable = next(filter(None, map(find_program, self.servers)))
            if allocator.wrapper:
                start = replace(start, command=[*allocator.wrapper, executable, *start.command[1:]])
                executable = allocator.wrapper[0]
            with _running(start, executable, environment, Path(name), self.user) as pid:
                return self.measured(pid, start.address, size)

    def readable(self, allocator: Allocator, folder: Path) -> Allocator:  # noqa: ARG002
        """The allocator from where the server can read it."""
        return allocator

    def measured(self, pid: int, address: str | int, size: int) -> Sample:
        before, begin = usage_of(pid), time.monotonic()
        self.load(address, size)
        seconds, after = time.monotonic() - begin, usage_of(pid)
        return sample_of(before, after, seconds, after.peak_rss_kib)


class RedisServer(ServerProgram):
    servers = REDIS_SERVERS

    def command_text(self, length: Length) -> str:
        loads = "; ".join(f"redis-benchmark -n {self.size(length)} {load}" for load in REDIS_LOADS)
        return f"redis-server {REDIS_SETTINGS} for {loads}"

    def start(self, folder: Path) -> Start:
        place = f"{folder}/redis.sock"
        command = ["redis-server", *REDIS_SETTINGS.split(" "), "--unixsocket", place, "--dir", str(folder)]
        return Start(command, place)

    def load(self, address: str | int, size: int) -> None:
        for load in REDIS_LOADS:
            command = ["redis-benchmark", "-s", str(address), "-n", str(size), "-q", *load.split()]
            run_client(command, "requests per second")


class NginxServer(ServerProgram):
    servers = ("nginx", "/usr/sbin/nginx")

    def command_text(self, length: Length) -> str:
        return f"nginx, a proxy before a page of its own, for ab -k -c 20 -n {self.size(length)}"

    def start(self, folder: Path) -> Start:
        with closing(socket.socket()) as connection:
            connection.bind(("127.0.0.1", 0))
            port = int(connection.getsockname()[1])
        (folder / "page").write_text("".join(f"line {number} of a page\n" for number in range(PAGE_LINES)))
        folder.chmod(0o755)
        text = NGINX_CONFIGURATION.replace("PORT", str(port)).replace("FOLDER", str(folder))
        (folder / "nginx.conf").write_text(text)
        return Start(["nginx", "-p", str(folder), "-c", "nginx.conf"], port)

    def load(self, address: str | int, size: int) -> None:
        headers = ["-H", "Accept-Encoding: gzip"]
        command = [
            "ab",
            "-q",
            "-k",
            "-c",
            "20",
            "-n",
            str(size),
            *headers,
            f"http://127.0.0.1:{address}/page",
        ]
        run_client(command, f"Complete requests:      {size}\nFailed requests:        0\n")
