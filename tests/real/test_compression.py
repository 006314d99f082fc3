"""xz and zstd with two threads: the same compressed bytes, and the input back."""

import hashlib
import random
from pathlib import Path

import pytest
from real.sides import Side, Sides
from results import Find

INPUT_BYTES = 24 << 20
COMMANDS = {
    "xz": (["xz", "-T2", "--block-size=4MiB", "-2"], ["xz", "-d", "-T2"]),
    "zstd": (["zstd", "-q", "-T2", "-9", "--long=24"], ["zstd", "-q", "-d", "--long=24"]),
}


@pytest.fixture(scope="module")
def input_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text of random words: it compresses about as well as a log does."""
    source = random.Random(7)
    words = [source.randbytes(source.randint(1, 8)).hex() for _ in range(4000)]
    text = " ".join(source.choices(words, k=INPUT_BYTES // 8)).encode()[:INPUT_BYTES]
    path = tmp_path_factory.mktemp("compression") / "input"
    path.write_bytes(text)
    return path


@pytest.mark.long("3 seconds each; one compressor more")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long("10 seconds")) if name == "xz" else name
        for name in sorted(COMMANDS)
    ],
)
def test_two_threads(sides: Sides, program: Find, input_file: Path, name: str) -> None:
    program(name)
    compress, decompress = COMMANDS[name]

    def job(side: Side) -> str:
        packed = side.folder / f"input.{name}"
        unpacked = side.folder / "output"
        side.run(to_file([*compress, "-c", str(input_file)], packed))
        side.run(to_file([*decompress, "-c", str(packed)], unpacked))
        assert unpacked.read_bytes() == input_file.read_bytes()
        return hashlib.sha256(packed.read_bytes()).hexdigest()

    sides.same(job)


def to_file(command: list[str], path: Path) -> list[str | Path]:
    """A command that ends as `command`, its output in a file."""
    return ["sh", "-c", 'target="$1"; shift; exec "$@" > "$target"', "sh", path, *command]
