"""Cores: the same figures as of the process; cut and damaged ones end in a result or a sentence, under
sanitizers."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from results import Compile

from walk.conftest import HERE
from walk.images import core_of
from walk.walking import asked, said, waiting, walk

WALK = Path(__file__).resolve().parents[2] / "walk"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
WORDS = (0, 1, 16, 0x20, 0x41, 0x291, 2**12, 2**31, 2**47, 2**63, 2**64 - 1)


@pytest.fixture(scope="module")
def checked(compile_c: Compile) -> Path:
    others = [path for path in sorted(WALK.glob("*.c")) if path.name != "main.c"]
    return compile_c(WALK / "main.c", *others, *SANITIZERS)


@pytest.fixture(scope="module")
def core(compile_c: Compile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with waiting(compile_c(HERE / "damage.c"), "healthy", "thread") as process:
        said(process)
        return core_of(process.pid, tmp_path_factory.mktemp("core") / "core")


def test_a_core_has_the_figures_of_its_process(walker: Path, shadow: Path, tmp_path: Path) -> None:
    with waiting(shadow, "2", "2000") as process:
        asked(process, "i")
        here = walk(walker, process.pid).told
        there = walk(walker, core_of(process.pid, tmp_path / "core")).told
    for told in (here, there):
        del told["seconds"]
        for part in [*told["arenas"], *told["mmapped"]]:
            del part["resident"]
            part.pop("top_whole", None)
            for heap in part.get("heaps", ()):
                del heap["mapped_end"]
    del here["mmapped_resident"], there["mmapped_resident"]
    assert here == there


def place(image: bytearray, chance: random.Random) -> int:
    """Of a word in the file's head, or of one that may be a chunk's size, or of one that is not 0."""
    if chance.random() < 0.02:
        return chance.randrange(128) * 8
    for tries in range(400):
        at = chance.randrange(len(image) // 8) * 8
        word = int.from_bytes(image[at : at + 8], "little")
        if 32 < word < 4096 or (word and tries > 200):
            break
    return at


def flip(image: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 3, 30, 1000))):
        at = place(image, chance)
        if chance.random() < 0.5:
            image[at] ^= 1 << chance.randrange(8)
        else:
            image[at : at + 8] = chance.choice(WORDS).to_bytes(8, "little")


def exchange(image: bytearray, chance: random.Random) -> None:
    """Words that are plausible somewhere else."""
    for _ in range(chance.choice((1, 10, 1000))):
        one, other = place(image, chance), place(image, chance)
        image[one : one + 8] = image[other : other + 8]


def cut(image: bytearray, chance: random.Random) -> None:
    del image[chance.randrange(len(image)) :]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("damage", [flip, exchange, cut])
def test_a_damaged_core(
    damage: Callable[[bytearray, random.Random], None], seed: int, core: Path, checked: Path, tmp_path: Path
) -> None:
    whole, chance = core.read_bytes(), random.Random(f"{damage.__name__} {seed}")
    for _ in range(4):
        image = bytearray(whole)
        damage(image, chance)
        (tmp_path / "core").write_bytes(image)
        walk(checked, tmp_path / "core", "--blocks", tmp_path / "blocks")
