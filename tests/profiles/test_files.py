"""Files of profiles: JSON and folded stacks, formats by name and by content, disks that are full."""

import gzip
import json
import os
from pathlib import Path

import pytest
from hakmem.base.errors import HakmemError
from hakmem.profile.files import load, save, writer_of, writers
from hakmem.profile.folded import to_folded
from hakmem.profile.json_format import to_json
from hakmem.profile.model import Profile
from hakmem.profile.pprof import to_pprof
from hakmem.profile.sites import site_table
from profiles.conftest import LOADS, SITES


@pytest.mark.parametrize("name", ["x.json", "x.pb.gz", "x.pprof"])
def test_what_is_written_is_read_by_its_content(named: Profile, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    save(named, path, writer_of(path))
    moved = path.rename(tmp_path / "no name tells it")
    back = load(moved)
    assert back.header == named.header
    assert site_table(back).total_bytes == pytest.approx(site_table(named).total_bytes)


def test_json_is_lossless(named: Profile, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(to_json(named))
    assert load(path) == named
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert load(tmp_path / "x.json.gz") == named


def test_json_has_the_sites_for_scripts(named: Profile) -> None:
    data = json.loads(to_json(named))
    assert sum(site["bytes"] for site in data["sites"]) + data["before_bytes"] == pytest.approx(
        data["total_bytes"], abs=9
    )
    for site in data["sites"]:
        assert site["bytes_low"] <= site["bytes"] <= site["bytes_high"]
        assert [frame["function"] for frame in site["stack"]][1] in SITES
        assert site["stack"][-1]["function"].startswith("libc.so.6+0x")


def test_folded_stacks_begin_with_the_outermost_frame(named: Profile) -> None:
    lines = dict(line.rsplit(" ", 1) for line in to_folded(named).splitlines())
    total = sum(load.total_bytes for load in LOADS) + 30_000 * 64
    assert sum(map(int, lines.values())) == pytest.approx(total, abs=9)
    assert "libc.so.6+0x100000;main (main.cc:99);parse (parse.cc:10);operator new(unsigned long)" in lines
    assert all(value.isdigit() for value in lines.values())


def test_the_name_chooses_the_format() -> None:
    assert writer_of(Path("a.b.pb.gz")) is writers()[".pb.gz"]
    with pytest.raises(HakmemError, match=r"the name x\.txt tells no format; use one that ends in \.pb\.gz"):
        writer_of(Path("x.txt"))


# ---- what cannot be written ---------------------------------------------------------------------------


def test_on_a_full_disk_the_profile_is_kept_elsewhere(
    named: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(HakmemError) as raised:
        save(named, Path("/dev/full"), to_pprof)
    message = str(raised.value)
    assert message.startswith("cannot write /dev/full: No space left on device; the profile is in ")
    assert load(Path(message.rpartition(" is in ")[2])).header == named.header


def test_where_nothing_can_be_written_the_profile_is_kept_elsewhere(
    named: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(HakmemError, match=r"no such directory: .*; the profile is in "):
        save(named, tmp_path / "none" / "x.pb.gz", to_pprof)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(HakmemError) as raised:
        save(named, tmp_path / "none" / "x.pb.gz", to_pprof)
    assert Path(str(raised.value).rpartition(" is in ")[2]).parent == tmp_path


# ---- what is no profile -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"hello\n", "is not a pprof profile, or is damaged"),
        (b"{", "is damaged"),
        (b"{}", "is not a heap profile; use a file of `hakmem profile`"),
        (b'{"format": "hakmem-run"}', "is a recording, not a heap profile; hakmem record "),
        (b'{"format": "hakmem-profile", "format_version": 99}', "has format 99, this tool reads 1"),
        (b'{"format": "hakmem-profile", "format_version": 1}', "is damaged: 'stacks' is missing"),
        (b"\x1f\x8bnot gzip", "is damaged"),
        (gzip.compress(b"\x7fELF" * 9), "is not a pprof profile, or is damaged"),
        (os.urandom(4096), "damaged"),
    ],
    ids=range(10),
)
def test_other_files_are_refused_in_a_sentence(content: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(HakmemError) as raised:
        load(path)
    assert told in str(raised.value)
    assert str(path) in str(raised.value)


def test_damaged_json_is_refused_or_read(named: Profile, tmp_path: Path) -> None:
    """Every value replaced by another kind of value."""
    data = json.loads(to_json(named))
    path = tmp_path / "x.json"
    refused = 0
    for name in data:
        for value in (None, -1, "x", [], {}, [[]], [{}], {"a": 1}, [["0x1"], 3]):
            path.write_text(json.dumps(data | {name: value}))
            try:
                site_table(load(path))
            except HakmemError:
                refused += 1
    assert refused > 50
