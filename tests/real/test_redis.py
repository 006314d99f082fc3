"""redis-server: known data under load, a background save (fork), a restart; the same data afterwards.

Debian's redis-server is linked against jemalloc; hakmem has to serve it all the same."""

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest
from real.sides import Side, Sides
from results import Find

KEYS = 60_000
BENCHMARK = "-n 60000 -c 20 -P 8 -d 200 -r 20000 -q -t set,get,incr,lpush,rpop,sadd,hset,zadd,mset"
SAVE_TIMEOUT_S = 60.0
SOCKET = "redis.sock"  # in the side's folder, where its programs run: a longer path may be too long
SETTINGS = (
    "--port 0 --daemonize no --save  --enable-debug-command yes --dbfilename dump.rdb "
    f"--unixsocket {SOCKET} --unixsocketperm 700"
)


@dataclass(frozen=True)
class Redis:
    """A side's redis: its server and its clients, all on that side."""

    side: Side
    program: Find

    def server(self) -> AbstractContextManager[None]:
        """The server; it holds KEYS strings at least, so hakmem must have given it as many blocks."""
        command = [self.program("redis-server"), *SETTINGS.split(" ")]
        return self.side.server(command, self.answers, blocks=KEYS)

    def answers(self) -> bool:
        ping = [self.program("redis-cli"), "-s", SOCKET, "PING"]
        return self.side.run(ping, statuses=(0, 1)).stdout == "PONG\n"

    def ask(self, *words: str, stdin: str | None = None) -> str:
        client = [self.program("redis-cli"), "-s", SOCKET, *words]
        return self.side.run(client, stdin=stdin).stdout.strip()

    def benchmark(self) -> str:
        return self.side.run([self.program("redis-benchmark"), "-s", SOCKET, *BENCHMARK.split()]).stdout

    def info(self, name: str) -> str:
        lines = (line.partition(":") for line in self.ask("INFO").splitlines())
        return next(value for key, _, value in lines if key == name)

    def wait_for_save(self) -> None:
        deadline = time.monotonic() + SAVE_TIMEOUT_S
        while self.info("rdb_bgsave_in_progress") != "0":
            assert time.monotonic() < deadline, "the background save does not end"
            time.sleep(0.1)
        assert self.info("rdb_last_bgsave_status") == "ok"


def known_data() -> str:
    """Commands that fill strings, lists, sets, hashes and sorted sets, some expiring and some deleted."""
    lines = []
    for n in range(KEYS):
        value = f"value-{n * 2654435761 % 4294967296:08x}" * (1 + n % 13)
        lines.append(f"SET string:{n} {value}")
        lines.append(f"RPUSH list:{n % 500} {value}")
        lines.append(f"HSET hash:{n % 1000} field:{n} {value}")
        lines.append(f"ZADD sorted:{n % 100} {n * 7919 % 10007} member:{n}")
        if n % 3 == 0:
            lines.append(f"DEL string:{n // 2}")
    return "\n".join(lines) + "\n"


@pytest.mark.long("21 seconds; a server saves and starts again")
def test_load_save_restart(sides: Sides, program: Find) -> None:
    commands = known_data()

    def job(side: Side) -> tuple[str, str]:
        redis = Redis(side, program)
        with redis.server():
            assert "errors: 0" in redis.ask("--pipe", stdin=commands)
            known = redis.ask("DBSIZE"), redis.ask("DEBUG", "DIGEST")
            assert redis.ask("BGSAVE") == "Background saving started"
            assert "requests per second" in redis.benchmark()  # writes while the child saves
            redis.wait_for_save()
            redis.ask("MEMORY", "PURGE")
            assert redis.ask("SAVE") == "OK"
            saved = redis.ask("DBSIZE"), redis.ask("DEBUG", "DIGEST")
        with redis.server():
            assert (redis.ask("DBSIZE"), redis.ask("DEBUG", "DIGEST")) == saved
            assert redis.ask("FLUSHALL") == "OK"
        return known

    size, _ = sides.same(job)
    assert int(size) > KEYS // 2
