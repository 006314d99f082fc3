"""The library as it is installed: libhakmem.so.0, and libhakmem-fortify.so in a folder of its own."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from hakmem.launch.preloadable import preload_list
from hakmem.layout import occupancy
from hakmem.target import library
from tool.conftest import Tool


@pytest.fixture
def runtime(tool: Tool, tmp_path: Path) -> Path:
    """As libhakmem0 installs it: without the name that linkers look for."""
    folder = tmp_path / "lib"
    (folder / "hakmem").mkdir(parents=True)
    file = folder / tool.library.resolve().name
    shutil.copy(tool.library, file)
    shutil.copy(tool.library.with_name("libhakmem-fortify.so"), folder / "hakmem")
    (folder / "libhakmem.so.0").symlink_to(file.name)
    return folder / "libhakmem.so.0"


def test_it_is_found_by_the_name_that_stays(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by its version's: programs that are started after an upgrade still find what LD_PRELOAD names."""
    monkeypatch.delenv("HAKMEM_LIBRARY", raising=False)
    monkeypatch.setattr(library, "__file__", str(runtime.parents[1] / "a/b/c/library.py"))
    monkeypatch.setattr(library.sys, "prefix", str(runtime.parents[1]))
    assert library.find_library() == runtime


def test_a_program_runs_on_it_with_bounds_checks(tool: Tool, runtime: Path) -> None:
    ended = tool("run", "--harden", "env", HAKMEM_LIBRARY=str(runtime))
    fortify = runtime.parent / "hakmem" / "libhakmem-fortify.so"
    assert f"LD_PRELOAD={fortify}:{runtime}" in ended.stdout.splitlines()
    assert (ended.status, ended.stderr) == (0, "")


def test_another_version_is_not_preloaded_as_well() -> None:
    before = "/usr/lib/libhakmem.so.0 /lib/libother.so.1:/usr/lib/libhakmem.so.0.0.9"
    assert preload_list([Path("/here/libhakmem.so")], before) == "/here/libhakmem.so:/lib/libother.so.1"


@pytest.mark.parametrize("shape", [(5, 7), (3, 0), (0, 2), (4,)], ids=str)
def test_bits_are_counted_without_numpy_2(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], request: pytest.FixtureRequest
) -> None:
    """Debian 12 has numpy 1.24."""
    words = np.random.default_rng(len(request.node.name)).integers(0, 2**64, shape, dtype=np.uint64)
    words.reshape(-1)[:1] = 2**64 - 1
    expected = [int(word).bit_count() for word in words.reshape(-1)]
    monkeypatch.delattr(occupancy.np, "bitwise_count", raising=False)
    assert occupancy.count_bits(words).reshape(-1).tolist() == expected
    assert occupancy.count_bits(words[..., ::-1]).shape == words.shape
