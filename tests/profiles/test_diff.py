"""`hakmem profile --against` and the table of sites: what is shown, and what adds up."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hakmem.profile.files import save, writer_of
from hakmem.profile.model import Mode, Profile
from hakmem.views.profile_text import show_profile
from profiles.conftest import LOADS, SITES, named_profile
from profiles.worlds import Load
from tool.conftest import Tool

GROWN = [*LOADS[:1], Load(1, 64, 50_000, 50), Load(1, 4096, 12_000, 4000), LOADS[3]]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Before and after: `serve` has grown by 32.8 MB of 4 KiB blocks."""
    paths = tmp_path / "before.pb.gz", tmp_path / "after.json"
    save(named_profile(1), paths[0], writer_of(paths[0]))
    save(named_profile(2, GROWN), paths[1], writer_of(paths[1]))
    return paths


def test_only_what_changed_is_shown(tool: Tool, files: tuple[Path, Path]) -> None:
    shown = tool("profile", files[1], "--against", files[0])
    assert shown.status == 0, shown.stderr
    assert "serve (serve.cc:11) ← main:99" in shown.stdout
    assert "parse" not in shown.stdout
    assert "nothing was sampled" not in shown.stdout
    assert "2 other sites; --all shows them" in shown.stdout
    assert re.search(r"^\+31\.[23] MiB\s.*\stotal", shown.stdout, re.MULTILINE), shown.stdout
    everything = tool("profile", files[1], "--against", files[0], "--all").stdout
    assert all(name in everything for name in SITES)


def test_growth_that_no_profile_saw_is_said_to_be(tool: Tool, files: tuple[Path, Path]) -> None:
    after = named_profile(2)
    after.classes = [
        replace(one, live_bytes=2 * one.live_bytes, before_bytes=one.before_bytes + one.live_bytes)
        for one in after.classes
    ]
    save(after, files[1], writer_of(files[1]))
    said = " ".join(tool("profile", files[1], "--against", files[0]).stdout.split())
    assert "came while nothing was sampled" in said
    assert f"hakmem profile {after.header.pid} --on" in said
    after.header.pid += 1
    save(after, files[1], writer_of(files[1]))
    assert "hakmem run -o" in tool("profile", files[1], "--against", files[0]).stdout


def test_new_blocks_are_not_compared_with_all(tool: Tool, files: tuple[Path, Path]) -> None:
    other = named_profile()
    other.header.mode = Mode.NEW
    save(other, files[1], writer_of(files[1]))
    assert "the other of new ones" in tool("profile", files[1], "--against", files[0]).stderr
    assert tool("profile", files[1], "--against", files[1]).status == 0


def test_as_json(tool: Tool, files: tuple[Path, Path]) -> None:
    data = json.loads(tool("profile", files[1], "--against", files[0], "--json").stdout)
    grown = [site for site in data["sites"] if site["is_significant"]]
    assert [site["stack"][0]["function"] for site in grown] == ["serve"]
    assert grown[0]["bytes_low"] <= 8000 * 4096 <= grown[0]["bytes_high"]
    assert data["total_after_bytes"] - data["total_before_bytes"] == pytest.approx(8000 * 4096, abs=9)


def test_a_profile_does_not_differ_from_itself(tool: Tool, files: tuple[Path, Path]) -> None:
    shown = tool("profile", files[0], "--against", files[0]).stdout
    assert "No site changed by more than chance." in shown


def test_two_draws_of_the_same_program_do_not_differ(tool: Tool, tmp_path: Path) -> None:
    paths = [tmp_path / f"{seed}.pb.gz" for seed in (3, 4)]
    for seed, path in zip((3, 4), paths, strict=True):
        save(named_profile(seed), path, writer_of(path))
    assert "No site changed by more than chance." in tool("profile", paths[1], "--against", paths[0]).stdout


def test_without_names_another_load_address_is_the_same_site(tool: Tool, tmp_path: Path) -> None:
    paths = []
    for seed, moved in ((3, 0), (4, 0x1230000)):
        profile = named_profile(seed)
        profile.names = {}
        profile.mappings = [replace(m, start=m.start + moved, end=m.end + moved) for m in profile.mappings]
        profile.samples = [
            replace(one, stack=tuple(address + moved for address in one.stack)) for one in profile.samples
        ]
        paths.append(tmp_path / f"{seed}.json")
        save(profile, paths[-1], writer_of(paths[-1]))
    data = json.loads(tool("profile", paths[1], "--against", paths[0], "--json").stdout)
    assert len(data["sites"]) == len(SITES)
    assert not any(site["is_significant"] for site in data["sites"])


def test_live_blocks_and_allocations_are_not_compared(
    tool: Tool, files: tuple[Path, Path], tmp_path: Path
) -> None:
    other = named_profile()
    other.allocated, other.samples = other.samples, []
    other.header.mode = Mode.ALLOCATED
    path = tmp_path / "other.json"
    save(other, path, writer_of(path))
    ended = tool("profile", path, "--against", files[0])
    assert (ended.status, ended.stdout) == (1, "")
    assert ended.stderr.startswith("hakmem: one profile is of live blocks, the other of allocations")


def test_other_files(tool: Tool, files: tuple[Path, Path]) -> None:
    ended = tool("profile", files[0], "--against", "/bin/sh")
    assert (ended.status, ended.stdout) == (1, "")
    assert ended.stderr.startswith("hakmem: /bin/sh is not a pprof profile, or is damaged: ")
    assert tool("profile", files[0], "--against", "/nonesuch").status == 2
    assert "is for sampling" in tool("profile", files[0], "--for", "1s").stderr
    assert "--all needs --against" in tool("profile", files[0], "--all").stderr


# ---- the table of sites -------------------------------------------------------------------------------


def shown(profile: Profile, capsys: pytest.CaptureFixture[str], **options: int) -> str:
    show_profile(profile, **options)  # type: ignore[arg-type]
    return capsys.readouterr().out


def test_the_table_adds_up(named: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(named, capsys)
    assert text.startswith("/opt/server/bin/server --port 80 (process 1234 on hakmem 1.0), 10 s\n")
    assert "3 samples found no room and are missing from the sums" in text
    # All samples of its class are its own, but 18 of 20 blocks were sampled: two may be another's.
    assert re.search(
        r"20\.0 MiB\s+18\.3 MiB – 20\.0 MiB\s+20\s+38 %\s+cache_fill \(cache_fill.cc:12\) ← main:99 ←", text
    ), text
    assert "operator new" not in text
    assert "before the profile began" in text
    assert re.search(r"52\.7 MiB\s+total", text), text


def test_few_rows_and_deep_sites(named: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    assert "2 other sites" in shown(named, capsys, rows_max=1)
    assert "← main" not in shown(named, capsys, depth=1)


def test_no_samples(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(Profile(), capsys)
    assert text.startswith("a program (an unknown process)\n0 samples\n")
