"""Blocks that a heap profile has sampled lie in slabs of their own: leaks and what count and find them too,
and know where they were asked for."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hakmem.blocks.block_map import NONE, State, read_block_map
from hakmem.blocks.one_block import what_is
from hakmem.census.census import count
from hakmem.census.reading import read_full
from hakmem.profile.live import read_profile
from hakmem.target.target import open_core, open_process
from results import Compile
from tool.dumps import dumped, needs_gcore
from tool.processes import PROGRAMS, hakmem, hakmem_json, running

ALL = {"HAKMEM_PROFILE": "64"}  # the smallest R: nearly all blocks are samples
MODES = [
    pytest.param({}, id="default"),
    pytest.param({"HAKMEM_HARDEN": "1"}, id="hardened"),
    pytest.param({"HAKMEM_HARDEN": "2"}, id="hardened 2"),
]
LIVE = ("tiny", "small", "mid", "large", "big", "aligned", "aligned_large", "grown")
FREED = ("freed_tiny", "freed_mid", "freed_large", "freed_big")
LARGE_BYTES = 64 << 10  # smaller ones may be missed by chance: e^(-40/64) of those of 40 bytes

# ---- counted right ---------------------------------------------------------------------------------


def said(process: subprocess.Popen[str]) -> list[list[str]]:
    return [line.split() for line in process.said]  # type: ignore[attr-defined]


@pytest.mark.long("3 seconds each")
@pytest.mark.parametrize("variables", MODES)
def test_every_lost_block_is_found(lib: Path, compile_c: Compile, variables: dict[str, str]) -> None:
    with running([compile_c(PROGRAMS / "lost.c")], lib, ALL | variables) as process:
        profile = read_profile(open_process(process.pid), with_counts=False)
        answer = hakmem_json("leaks", process.pid, "--for", "0s", "--freeze", "--all")
        known = {name: (int(size), int(number)) for name, size, number in said(process)}
    assert len(profile.samples) > 20000, "most are samples; the table was halved"
    assert answer["definite"]["blocks"] == sum(number for _, number in known.values())
    assert answer["perhaps"]["blocks"] == 0
    if not variables:  # hardened mode wipes what is freed
        assert answer["freed_only"]["blocks"] == known["held"][1]
    sites = answer["sites"]
    lost = sum(site["unreachable"]["lost_samples"] for site in sites)
    assert 0.3 * answer["definite"]["blocks"] < lost <= answer["definite"]["blocks"]
    kept = [site for site in sites if any(f["function"] == "make_reachable" for f in site["stack"])]
    assert kept
    assert sum(site["unreachable"]["lost_samples"] for site in kept) == 0


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("variables", MODES)
def test_states_add_up_to_the_census(lib: Path, compile_c: Compile, variables: dict[str, str]) -> None:
    """Live blocks, samples or not, by class; each sample is a live block."""
    with running([compile_c(PROGRAMS / "lost.c")], lib, ALL | variables) as process:
        target = open_process(process.pid)
        block_map, census = read_block_map(target), count(read_full(target))
        profile = read_profile(target, with_counts=False)
        one_class = hakmem_json("what", process.pid, "--class", "96")
    live = block_map.live_blocks()
    by_class = np.bincount(block_map.classes_of(live)[block_map.classes_of(live) >= 0])
    for item in census.classes:
        assert (by_class[item.number] if item.number < len(by_class) else 0) == item.live_blocks, item
    blocks = block_map.find_sampled(np.array(profile.blocks, np.uint64))
    assert (blocks != NONE).all()
    assert len(np.unique(blocks)) == len(blocks)
    assert (block_map.states[blocks] == State.LIVE).all()
    classes, sizes = block_map.classes_of(blocks), block_map.sizes_of(blocks)
    for one, number, size in zip(profile.samples, classes.tolist(), sizes.tolist(), strict=True):
        assert one.requested_bytes <= size
        is_big = one.class_number == target.schema.constant("map_class_big")
        assert one.class_number == number or (is_big and number == NONE)
        assert one.block_bytes == size or is_big
    assert one_class["live_blocks"] >= 500 or variables  # hardened: a trailer makes them larger


# ---- one address -----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=MODES)
def asked(request: pytest.FixtureRequest, lib: Path, compile_c: Compile) -> Iterator[subprocess.Popen[str]]:
    with running([compile_c(PROGRAMS / "asked.c")], lib, ALL | request.param) as process:
        yield process


def places(process: subprocess.Popen[str]) -> dict[str, tuple[int, int]]:
    return {name: (int(at, 16), int(size)) for name, at, size in said(process)}


def check_asked(answer: dict[str, Any], name: str, size: int) -> None:
    assert answer["state"] == "live"
    if answer["call_site"] is None:
        assert size < LARGE_BYTES // 64, f"{name}: chance leaves out few blocks of {size} bytes"
        return
    assert answer["call_site"][0].startswith(f"ask_{name} (asked.c:"), answer["call_site"]
    wanted = 768 if name == "aligned" else 81920 if name == "aligned_large" else size
    assert answer["sample"]["requested_bytes"] == wanted
    assert answer["sample"]["thread_id"]


def what(process: subprocess.Popen[str], address: int) -> dict[str, Any]:
    return what_is(open_process(process.pid), address).to_json()


@pytest.mark.long("2 seconds each")
def test_where_blocks_were_asked_for(asked: subprocess.Popen[str]) -> None:
    for name in LIVE:
        at, size = places(asked)[name]
        check_asked(what(asked, at), name, size)
        inside = what(asked, at + size - 1)
        assert inside["offset"] == size - 1
        check_asked(inside, name, size)


def test_of_freed_blocks_nothing_is_known(asked: subprocess.Popen[str]) -> None:
    for name in FREED:
        answer = what(asked, places(asked)[name][0])
        assert answer["state"] != "live", name
        assert answer["call_site"] is None, name
        assert answer["sample"] is None, name


@pytest.mark.long("a second of processor time each")
def test_as_text(asked: subprocess.Popen[str]) -> None:
    at, _ = places(asked)["big"]
    text = hakmem("what", asked.pid, hex(at)).stdout
    assert "asked by" in text
    assert "ask_big (asked.c:" in text
    assert f"{5 << 20:,} B" in text
    assert "no heap's" in text
    at, _ = places(asked)["mid"]
    if what(asked, at)["owner"] is None:  # in hardened mode samples lie among other blocks
        assert "for the samples of a profile" in hakmem("what", asked.pid, hex(at)).stdout


@pytest.mark.long("a second of processor time each")
@needs_gcore
def test_in_a_core(asked: subprocess.Popen[str], tmp_path: Path) -> None:
    core = dumped(asked.pid, tmp_path, has_closed=True)
    for name in ("tiny", "large", "big", "grown"):
        at, size = places(asked)[name]
        check_asked(what_is(open_core(core), at).to_json(), name, size)


def test_without_a_profile_it_is_not_known(lib: Path, compile_c: Compile) -> None:
    with running([compile_c(PROGRAMS / "asked.c")], lib) as process:
        at, _ = places(process)["big"]
        answer = hakmem_json("what", process.pid, hex(at))
        text = hakmem("what", process.pid, hex(at)).stdout
    assert answer["call_site"] is None
    assert answer["sample"] is None
    assert "asked by" not in text
