"""pprof files: read by pprof itself, and back."""

import gzip
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hakmem.base.errors import HakmemError
from hakmem.profile.labels import Labels
from hakmem.profile.model import Frame, Mode, Profile, Sample
from hakmem.profile.pprof import to_pprof
from hakmem.profile.pprof_reader import from_pprof
from hakmem.profile.protobuf import Message, Value, as_data, as_number, fields_of, numbers_of, signed, varint
from hakmem.profile.sites import site_table
from hakmem.profile.wrappers import without_arguments
from profiles.conftest import BUILD_ID, LOADS, SITES
from profiles.worlds import profile_of
from results import Find, captured

GROW = "void std::vector<Item, std::allocator<Item> >::_M_realloc_insert<Item>(Item&&)"


@pytest.fixture
def pprof(tmp_path: Path, pprof_tool: Path) -> Callable[..., str]:
    """What pprof prints of a profile."""

    def run(profile: Profile, *options: str) -> str:
        file = tmp_path / "x.pb.gz"
        file.write_bytes(to_pprof(profile))
        command = [pprof_tool, "-symbolize=none", *options, file]
        environment = os.environ | {"PPROF_TMPDIR": str(tmp_path)}
        step = captured(command, timeout=200, env=environment)
        assert step.returncode == 0, step.stderr
        return step.stdout

    return run


def in_bytes(text: str) -> dict[str, int]:
    """function → bytes of the column flat of -top -unit=b."""
    rows = re.findall(
        r"^\s*(\d+)B\s+[\d.]+%\s+[\d.]+%\s+\d+B\s+[\d.]+%\s+(.+?)(?: \(inline\))?$", text, re.MULTILINE
    )
    return {name: int(value) for value, name in rows}


def test_pprof_shows_the_sites_with_their_estimates(named: Profile, pprof: Callable[..., str]) -> None:
    shown = pprof(named, "-top", "-unit=b", "-nodefraction=0")
    assert "Type: inuse_space" in shown
    assert "File: server" in shown
    found = in_bytes(shown)
    ours = {
        named.names[site.stack[0]][1].function: round(site.bytes.value) for site in site_table(named).sites
    }
    assert set(ours) == set(SITES)
    assert {name: found[name] for name in SITES} == pytest.approx(ours, abs=9)  # each row is rounded once
    assert "operator new" not in shown  # dropped
    total = sum(load.total_bytes for load in LOADS) + 30_000 * 64
    assert sum(found.values()) == pytest.approx(total, abs=9)
    assert found["[before the profile began]"] == pytest.approx(site_table(named).before.value, abs=1)
    named.names = {address: (Frame("<module>", "x.py", 1),) for address in named.names}
    assert "<module>" in in_bytes(pprof(named, "-top", "-unit=b"))


@pytest.mark.parametrize("column", ["inuse_objects", "inuse_requested", "inuse_samples"])
def test_pprof_has_the_other_columns(named: Profile, pprof: Callable[..., str], column: str) -> None:
    shown = pprof(named, "-top", "-nodefraction=0", f"-sample_index={column}")
    assert f"Type: {column}" in shown
    assert all(name in shown for name in SITES)


def test_pprof_knows_mappings_build_ids_and_comments(named: Profile, pprof: Callable[..., str]) -> None:
    shown = pprof(named, "-raw")
    assert f"1: 0x1000/0x400000/0x1000 /opt/server/bin/server {BUILD_ID}" in shown
    assert "PeriodType: space bytes" in shown
    assert f"Period: {512 << 10}" in shown
    assert "Duration: 10s" in shown
    comments = pprof(named, "-comments")
    assert comments == "server (process 1234) on hakmem 1.0, live blocks\n"


def test_every_location_is_inside_its_mapping(named: Profile, pprof: Callable[..., str]) -> None:
    shown = pprof(named, "-raw")
    places = re.findall(r"^\s+\d+: (0x[0-9a-f]+) (M=\d+)?", shown, re.MULTILINE)
    known = [(int(address, 16), mapping) for address, mapping in places if int(address, 16)]
    assert known
    for address, mapping in known:
        assert mapping == ("M=1" if address < 0x400000 else "M=2" if address < 0x600000 + 0x100000 else "")


def test_pprof_writes_it_again_and_we_read_that(
    named: Profile, tmp_path: Path, pprof: Callable[..., str]
) -> None:
    """Through the Go module and back: the same sites."""
    again = tmp_path / "again.pb.gz"
    pprof(named, "-proto", f"-output={again}")
    ours, theirs = figures(named), figures(from_pprof(again.read_bytes(), "again"))
    assert len(theirs) == len(ours)
    for one, other in zip(ours, theirs, strict=True):
        assert one[0] == pytest.approx(other[0], rel=1e-3)
        assert other[1] <= other[0] <= other[2]  # wider: pprof drops the exact counts
    back = site_table(from_pprof(again.read_bytes(), "again"))
    assert back.total_bytes == pytest.approx(site_table(named).total_bytes)
    assert back.before.value == pytest.approx(site_table(named).before.value, abs=1)


def figures(profile: Profile) -> list[tuple[float, float, float]]:
    """Bytes and the ends of their interval, of each site."""
    return [(site.bytes.value, *site.bytes.interval) for site in site_table(profile).sites]


def test_we_read_what_we_wrote(named: Profile) -> None:
    back = from_pprof(to_pprof(named), "x")
    assert back.header == named.header
    assert back.classes == named.classes
    assert back.mappings == named.mappings
    assert {place: frames for place, frames in back.names.items() if place < 1 << 63} == named.names
    for one, other in zip(figures(named), figures(back), strict=True):
        assert one[0] == pytest.approx(other[0], rel=1e-3)
        # The file has scaled figures: with what probability a block was sampled is known roughly.
        assert one[1:] == pytest.approx(other[1:], rel=0.01)
    ours, theirs = site_table(named), site_table(back)
    assert theirs.total_bytes == pytest.approx(ours.total_bytes, rel=1e-6)
    assert [site.rounding.value for site in theirs.sites] == pytest.approx(
        [site.rounding.value for site in ours.sites], rel=0.01
    )


def fields_by_number(data: memoryview) -> dict[int, list[Value]]:
    found: dict[int, list[Value]] = {}
    for field, value in fields_of(data):
        found.setdefault(field, []).append(value)
    return found


def test_tables_are_as_servers_check_them(named: Profile) -> None:
    """They are numbered from one on in their order; indices are inside."""
    profile = fields_by_number(memoryview(gzip.decompress(to_pprof(named))))
    texts = [bytes(as_data(text)) for text in profile[6]]
    assert texts[0] == b""
    for table in (3, 4, 5):
        numbers = [dict(fields_of(as_data(row)))[1] for row in profile.get(table, [])]
        assert numbers == list(range(1, len(numbers) + 1))
    for row in profile[2]:
        sample = fields_by_number(as_data(row))
        values = [number for part in sample[2] for number in numbers_of(part)]
        assert len(values) == len(profile[1])
        for label in sample.get(3, []):
            assert 0 < as_number(dict(fields_of(as_data(label)))[1]) < len(texts)
        places = [number for part in sample.get(1, []) for number in numbers_of(part)]
        assert all(0 < place <= len(profile[4]) for place in places)


def test_intervals_of_samples_with_different_rates_stay() -> None:
    """A few samples of a large R hold most of the error: rows must not average them with the others."""
    of_many = [Sample.of((0x1000, 0x2000), 3, 64, 60, 512) for _ in range(2000)]
    of_few = [Sample.of((0x1000, 0x2000), 3, 64, 60, 524288) for _ in range(3)]
    ours = site_table(profile_of(of_few + of_many)).sites[0].bytes
    theirs = site_table(from_pprof(to_pprof(profile_of(of_few + of_many)), "x")).sites[0].bytes
    assert theirs.value == pytest.approx(ours.value, rel=1e-3)
    assert theirs.interval == pytest.approx(ours.interval, rel=0.01)


def test_allocations_beside_live_blocks(named: Profile, pprof: Callable[..., str]) -> None:
    named.allocated = named.samples * 3
    assert "Type: inuse_space" in pprof(named, "-top")
    assert "Type: alloc_space" in pprof(named, "-top", "-sample_index=alloc_space")
    back = from_pprof(to_pprof(named), "x")
    assert len(back.allocated) == len(back.samples)
    named.header.mode = Mode.ALLOCATED
    assert "Type: alloc_space" in pprof(named, "-top")


def test_what_a_container_calls_is_not_dropped(pprof: Callable[..., str]) -> None:
    """An element's constructor allocates while the vector grows: it is the site, in pprof as in our table."""
    named = profile_of([Sample((1, 2, 3, 4), 1, 64, 64, 6400.0, 100.0)])
    names = ("operator new(unsigned long)", "Item::Item(Item const&)", GROW, "main")
    named.names = {place: (Frame(name),) for place, name in enumerate(names, start=1)}
    assert in_bytes(pprof(named, "-top", "-unit=b", "-nodefraction=0"))["Item::Item(Item const&)"] == 6400
    labels = Labels(named)
    assert [frame.function for frame in labels.site((1, 2, 3, 4), 2)] == [names[1], names[2]]
    assert [frame.function for frame in labels.site((1, 3, 4), 2)] == ["main"]


@pytest.mark.parametrize(
    ("function", "short"),
    [
        ("operator new(unsigned long)", "operator new"),
        ("(anonymous namespace)::fill(int)", "(anonymous namespace)::fill"),
        ("A<void (*)(int)>::f(int)", "A<void (*)(int)>::f"),
        ("app::operator()(int)", "app::operator()"),
        ("main", "main"),
    ],
)
def test_names_without_arguments(function: str, short: str) -> None:
    assert without_arguments(function) == short


def test_incomplete_stacks_stay_marked(named: Profile) -> None:
    first = named.samples[0]
    cut = type(first)(first.stack, 7, 64, 64, 6400.0, 100.0, is_complete=False)
    back = from_pprof(to_pprof(profile_of([cut])), "x")
    assert [(one.is_complete, one.stack) for one in back.samples] == [(False, first.stack)]


def test_an_empty_profile_is_one(pprof: Callable[..., str]) -> None:
    assert "Type: inuse_space" in pprof(Profile(), "-top")
    assert from_pprof(to_pprof(Profile()), "x").samples == []


GO_HEAP = """
package main
import ("os"; "runtime"; "runtime/pprof")
var kept [][]byte
func leak() { for i := 0; i < 3000; i++ { kept = append(kept, make([]byte, 10000)) } }
func main() { runtime.MemProfileRate = 65536; leak(); runtime.GC(); f, _ := os.Create(os.Args[1])
  pprof.WriteHeapProfile(f); f.Close(); _ = len(kept) }
"""


def test_profiles_of_go_programs_are_read(tmp_path: Path, program: Find) -> None:
    source, file = tmp_path / "main.go", tmp_path / "heap.pb.gz"
    source.write_text(GO_HEAP)
    subprocess.run([program("go"), "run", source, file], check=True, timeout=280)
    profile = from_pprof(file.read_bytes(), "heap.pb.gz")
    site = site_table(profile).sites[0]
    assert "main.leak" in [frame.function for place in site.stack for frame in profile.names[place]]
    # Go draws anew each time: the interval has some four standard errors, six are allowed.
    low, high = site.bytes.interval
    assert abs(site.bytes.value - 3000 * 10240) < 6 / 4 * (high - low)
    assert high - low < 0.3 * site.bytes.value
    assert site.bytes.samples > 100


# ---- what is no profile of memory ---------------------------------------------------------------------


def test_profiles_of_something_else_are_refused_by_name() -> None:
    strings = b"".join(bytes(Message().data(6, text)) for text in (b"", b"cpu", b"nanoseconds"))
    data = bytes(Message().nested(1, Message().number(1, 1).number(2, 2))) + strings
    with pytest.raises(HakmemError, match=r"x is not a profile of memory: it has cpu \(nanoseconds\)"):
        from_pprof(gzip.compress(data), "x")


def test_damaged_files_are_told_in_a_sentence(named: Profile) -> None:
    """Cut anywhere, or with a byte changed: read, or refused; never another error."""
    whole, packed = gzip.decompress(to_pprof(named)), to_pprof(named)
    tried = [packed[:length] for length in range(0, len(packed), 211)]
    tried += [whole[:length] for length in range(0, len(whole), 997)]
    for place in range(0, len(whole), 499):
        tried.append(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
    refused = 0
    for data in tried:
        try:
            site_table(from_pprof(data, "x"))
        except HakmemError as error:
            refused += 1
            assert str(error).startswith("x is not a")
    assert refused > len(tried) / 3


def test_a_file_that_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hakmem.profile.pprof_reader.BYTES_MAX", 1 << 20)
    with pytest.raises(HakmemError, match="larger than"):
        from_pprof(gzip.compress(bytes(2 << 20)), "x")


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 1 << 40, (1 << 64) - 1, -1, -(1 << 63)])
def test_numbers_of_the_wire(value: int) -> None:
    message = Message().packed(3, [value])
    [(field, data)] = fields_of(memoryview(bytes(message)))
    assert (field, [signed(one) for one in numbers_of(data)]) == (3, [signed(value & ((1 << 64) - 1))])
    assert len(varint(value)) <= 10
