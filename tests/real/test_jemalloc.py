"""Debian's redis-server and named, which need libjemalloc.so.2: on the library of that name, and with
libhakmem.so preloaded, they ask hakmem by jemalloc's names and get figures that fit."""

import os
import random
import re
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest
from real.sides import Side
from results import Compile, Find, Run

MIB = 1 << 20
KEYS, VALUE_BYTES = 40_000, 300
WAYS = ["compat", "preload"]


@pytest.fixture(params=WAYS)
def side(request: pytest.FixtureRequest, lib: Path, plain: Run, tmp_path: Path) -> Side:
    folder = tmp_path / "hakmem"
    folder.mkdir()
    if request.param == "preload":
        return Side("preload", folder, library=lib, runner=plain)
    way = ("/usr/bin/env", f"LD_LIBRARY_PATH={lib.parent / 'compat'}")
    return Side("compat", folder, library=None, runner=plain, prefix=way)


# ---- redis ------------------------------------------------------------------------------------------


class Redis:
    def __init__(self, side: Side, program: Find) -> None:
        self.path = os.path.relpath(side.folder / "redis.sock")  # a longer one may be too long
        self.server = side.server(
            [program("redis-server"), "--port", "0", "--save", "", "--unixsocket", "redis.sock"], self.answers
        )

    def ask(self, *words: str | bytes) -> bytes:
        return self.send(
            b" ".join(word.encode() if isinstance(word, str) else word for word in words) + b"\r\n"
        )

    def send(self, commands: bytes, answers: int = 1) -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.path)
            connection.sendall(commands)
            said = connection.recv(MIB)
            bulk = int(said[1 : said.index(b"\r\n")]) if said.startswith(b"$") else 0
            while said.count(b"\n") < answers or len(said) < bulk:
                said += connection.recv(MIB)
            return said

    def answers(self) -> bool:
        with suppress(OSError):
            return self.ask("PING") == b"+PONG\r\n"
        return False

    def memory(self) -> dict[str, float]:
        lines = (line.split(":") for line in self.ask("INFO", "memory").decode().split() if ":" in line)
        return {name: float(value) for name, value in lines if value.replace(".", "").lstrip("-").isdigit()}


def settled(redis: Redis) -> dict[str, float]:
    """When redis has asked again, as it does ten times a second."""
    deadline = time.monotonic() + 30
    while True:
        info = redis.memory()
        with suppress(AssertionError):
            check_memory(info)
            return info
        if time.monotonic() > deadline:
            check_memory(info)
        time.sleep(0.05)


def check_memory(info: dict[str, float]) -> None:
    """As far from redis' own count as Debian's redis on jemalloc at most."""
    assert 0.98 * info["used_memory"] <= info["allocator_allocated"] <= 1.02 * info["used_memory"] + MIB
    assert info["allocator_allocated"] <= info["allocator_active"] <= info["allocator_resident"]
    assert info["allocator_resident"] <= info["used_memory_rss"]
    assert 1 <= info["allocator_frag_ratio"] < 2
    assert 1 <= info["allocator_rss_ratio"] < 3


def test_redis(side: Side, program: Find) -> None:
    redis = Redis(side, program)
    with redis.server:
        settled(redis)
        value = b"x" * VALUE_BYTES
        redis.send(b"".join(b"SET key:%d %s\r\n" % (key, value) for key in range(KEYS)), KEYS)
        full = settled(redis)
        assert full["allocator_allocated"] > KEYS * VALUE_BYTES
        redis.ask("FLUSHALL")
        assert redis.ask("MEMORY", "PURGE") == b"+OK\r\n"
        empty = settled(redis)
        assert full["used_memory_rss"] - empty["used_memory_rss"] > KEYS * VALUE_BYTES / 2
        said = redis.ask("MEMORY", "MALLOC-STATS").decode()
        assert "hakmem" in said.splitlines()[2] and "End jemalloc statistics" in said


# ---- named ------------------------------------------------------------------------------------------

ADDRESS = bytes([192, 0, 2, 1])
ZONE = "$TTL 60\n@ SOA . . 1 60 60 60 60\n@ NS .\n* A 192.0.2.1\n"


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def has_address(port: int, number: int) -> bool:
    """Whether the server answers with that of NUMBER.test."""
    name = str(number).encode()
    question = struct.pack("B", len(name)) + name + b"\4test\0" + struct.pack(">2H", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(5)
        asking.sendto(struct.pack(">6H", number, 0, 1, 0, 0, 0) + question, ("127.0.0.1", port))
        return ADDRESS in asking.recv(4096)


def test_named(side: Side, program: Find) -> None:
    port, conf = free_port(), side.folder / "named.conf"
    (side.folder / "zone").write_text(ZONE)
    conf.write_text(
        f'options {{ directory "{side.folder}"; pid-file none; session-keyfile none; recursion no;\n'
        f"dnssec-validation no; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; }};\n"
        'controls { }; zone "test." { type primary; file "zone"; };\n'
    )

    def answers() -> bool:
        with suppress(OSError):
            return has_address(port, 0)
        return False

    with side.server([program("named"), "-g", "-c", conf], answers):
        assert all(has_address(port, number) for number in range(200))


# ---- all others of Debian that are small ------------------------------------------------------------

JOBS = {
    "varnishd": "-C -b 127.0.0.1:1 -n varnish",
    "nghttpd": "--version",
    "nghttpx": "--version",
    "h2load": "--version",
    "kresd": "-n -q -c kresd.conf .",
    "dig": "-v",
    "delv": "-v",
    "host": "-V",
    "mdig": "-v",
    "nslookup": "-version",
    "nsupdate": "-V",
    "named-checkconf": "/dev/null",
    "named-compilezone": "-q -o - test zone",
    "dnssec-dsfromkey": "-V",
    "toulbar2": "problem.wcsp",
    "rapmap": "quasiindex -t sequences.fa -i rapmap",
    "salmon": "index -t sequences.fa -i salmon -k 21",
    "redis-cli": "--version",
    "redis-benchmark": "--version",
}
TIMED = ("rapmap", "salmon")  # threads write times to standard error
PROBLEM = "q 3 2 3 10\n2 2 2\n2 0 1 0 2\n0 0 1\n1 1 2\n2 1 2 0 1\n0 1 3\n1 0 0 1\n0 4\n"


def sequences() -> str:
    chance = random.Random(1)
    return "".join(f">{number}\n{''.join(chance.choices('ACGT', k=2000))}\n" for number in range(50))


@pytest.mark.parametrize("name", JOBS)
def test_same_as_on_jemalloc(
    name: str, program: Find, lib: Path, compile_c: Compile, plain: Run, tmp_path: Path
) -> None:
    """What it prints, but for times and addresses; and each name that it asks for has an answer."""
    wanted = [program(name), *JOBS[name].split()]
    logging = compile_c(Path(__file__).with_name("programs") / "mallctl_log.c", "-fPIC", "-shared")
    log, said = tmp_path / "log", []
    for folder in ("/usr/lib", lib.parent / "compat"):
        place = tmp_path / Path(folder).name
        place.mkdir()
        files = {"zone": ZONE, "problem.wcsp": PROBLEM, "sequences.fa": sequences(), "kresd.conf": "quit()"}
        for file, text in files.items():
            (place / file).write_text(text)
        env = {"LD_LIBRARY_PATH": str(folder), "LD_PRELOAD": str(logging), "MALLCTL_LOG": str(log)}
        log.unlink(missing_ok=True)
        ended = plain(wanted, env=env, cwd=place)
        texts = [ended.stdout] if name in TIMED else [ended.stdout, ended.stderr]
        # 2e-06 s is one number, as 0.0001 s is on a busy machine.
        said.append((ended.returncode, *(re.sub(r"[0-9a-f.:#]+(-[0-9]+)?", "#", text) for text in texts)))
    assert said[0] == said[1]
    asked = log.read_text().split("\n") if log.exists() else []
    assert not [line for line in asked if line and not line.endswith(" 0")]
