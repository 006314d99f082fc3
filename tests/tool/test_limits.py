"""Limits, what they refused and how near they are; the options in force: in why, stat, ps and export."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from hakmem.base.validity import built
from hakmem.census import limits as module
from hakmem.census.figures import Snapshot
from hakmem.census.limits import LimitFigures, limit_mark, limit_notes, limit_rows
from hakmem.census.snapshot import open_process, take
from hakmem.target.cgroup import cgroup_limits
from hakmem.views.metrics import HakmemCollector
from results import Compile
from tool.processes import PROGRAMS, hakmem, hakmem_json, running

MIB = 1 << 20
HARD, SOFT = {"HAKMEM_LIMIT_HARD": "40M"}, {"HAKMEM_LIMIT_SOFT": "10M"}


@pytest.fixture(scope="module")
def refused(lib: Path, compile_c: Compile) -> Iterator[int]:
    """A process that was refused a block by its hard limit."""
    options = {**HARD, "HAKMEM_DECAY_MS": "77", "HAKMEM_GUARD": "0"}
    with running([compile_c(PROGRAMS / "limited.c")], lib, options) as process:
        yield process.pid


@pytest.fixture(scope="module")
def above(lib: Path, compile_c: Compile) -> Iterator[int]:
    """A process above its soft limit."""
    with running([compile_c(PROGRAMS / "limited.c"), "20"], lib, SOFT) as process:
        yield process.pid


def test_the_figures(refused: int, above: int) -> None:
    limits = hakmem_json("stat", refused)["limits"]
    assert (limits["hard_bytes"], limits["soft_bytes"]) == (40 * MIB, limits["soft_bytes"])
    assert limits["refused_requests"] == 1
    assert limits["hard_refusals"] >= 1
    assert 30 * MIB < limits["committed_bytes"] <= 40 * MIB
    limits = hakmem_json("stat", above)["limits"]
    assert (limits["soft_bytes"], limits["soft_is_cgroups"], limits["hard_bytes"]) == (10 * MIB, False, None)
    assert limits["soft_hits"] > 0


def test_why_tells_refusals_and_what_is_near(refused: int, above: int) -> None:
    text = " ".join(hakmem("why", refused).stdout.split())
    after = text.partition("Verdict:")[2]
    assert "1 request failed with ENOMEM; HAKMEM_LIMIT_HARD (40.0 MiB) was reached" in after
    assert "of the 40.0 MiB of HAKMEM_LIMIT_HARD: beyond it requests fail" in after
    assert len(hakmem_json("why", refused)["limit_notes"]) >= 2
    assert "more than HAKMEM_LIMIT_SOFT (10.0 MiB)" in " ".join(hakmem_json("why", above)["limit_notes"])


def test_stat_has_a_section(refused: int, above: int) -> None:
    text = hakmem("stat", refused).stdout
    assert re.search(r"^Limits$", text, re.MULTILINE)
    row = r"^HAKMEM_LIMIT_HARD +40\.0 MiB +3\d\.\d MiB, \d\d %  reached \d+ time"
    assert re.search(row, text, re.MULTILINE)
    assert re.search(
        r"^HAKMEM_LIMIT_SOFT +10\.0 MiB .* exceeded in \d+ purge round", hakmem("stat", above).stdout, re.M
    )


@pytest.mark.long("a second of processor time")
def test_ps_has_a_column(refused: int, above: int) -> None:
    lines = {line["pid"]: line for line in hakmem_json("ps")["processes"]}
    assert lines[refused]["limits"]["hard_bytes"] == 40 * MIB
    text = hakmem("ps").stdout.splitlines()
    assert any("limit" in line.split() for line in text)
    # A wide table goes on below, with the PID again.
    for pid, limit in ((refused, r"\d+ % of hard 40\.0 MiB, 1"), (above, r"\d+ % of soft 10\.0 MiB")):
        assert any(re.match(rf" *{pid} .*{limit}", line) for line in text)


def test_export_has_gauges_and_counters(refused: int) -> None:
    found = {
        sample.name: sample.value
        for family in HakmemCollector("counters").collect()
        for sample in family.samples
        if sample.labels.get("pid") == str(refused)
    }
    assert found["hakmem_limit_hard_bytes"] == 40 * MIB
    assert found["hakmem_enomem_total"] == 1
    assert found["hakmem_limit_hard_refusals_total"] >= 1
    assert found["hakmem_committed_bytes"] <= 40 * MIB
    assert "hakmem_limit_soft_hits_total" in found


CGROUP = {
    "cgroup.controllers": "memory",
    "a/memory.max": f"{100 * MIB}\n",
    "a/memory.current": f"{95 * MIB}\n",
    "a/memory.events": "oom_kill 2\n",
}


def test_the_cgroup_of_the_process_counts(
    refused: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of that process: the tool may be in another one."""
    for name, text in CGROUP.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "membership").write_text("0::/a\n")
    asked: list[Path] = []

    def of(membership: Path) -> object:
        asked.append(membership)
        return cgroup_limits(tmp_path, tmp_path / "membership")

    monkeypatch.setattr(module, "cgroup_limits", of)
    snapshot = take(open_process(refused), detail="counters")
    assert asked == [Path(f"/proc/{refused}/cgroup")]
    limits = snapshot.limits
    assert limits is not None
    assert (limits.cgroup_bytes, limits.cgroup_used_bytes) == (100 * MIB, 95 * MIB)
    assert any("The cgroup uses 95.0 MiB, 95 % of the 100 MiB" in note for note in limit_notes(limits))
    assert any(row[0] == "cgroup v2" and "2 processes killed" in row[3] for row in limit_rows(limits))
    names = {s.name: s.value for f in HakmemCollector("counters").collect() for s in f.samples}
    assert names["hakmem_cgroup_limit_bytes"] == 100 * MIB
    assert names["hakmem_cgroup_used_bytes"] == 95 * MIB
    again = built(Snapshot, asdict(snapshot))
    assert (again.limits, again.options_changed) == (limits, snapshot.options_changed)


@pytest.mark.parametrize(
    ("setting", "does"), [("/a/memory.max", "kills processes"), ("/a/memory.high", "slows processes down")]
)
def test_what_the_kernel_does_at_the_limit(setting: str, does: str) -> None:
    limits = LimitFigures(1, cgroup_setting=setting, cgroup_bytes=100, cgroup_used_bytes=99)
    assert f"at the limit the kernel {does}. Raise {setting}" in " ".join(limit_notes(limits))


def test_what_a_soft_limit_of_the_cgroups_is_called() -> None:
    limits = LimitFigures(
        committed_bytes=80, soft_bytes=75, soft_is_cgroups=True, cgroup="cgroup v2",
        cgroup_setting="memory.max", cgroup_bytes=100, cgroup_used_bytes=82,
    )  # fmt: skip
    assert "three quarters of the cgroup's limit" in " ".join(limit_notes(limits))
    assert limit_mark(limits) == "82 % of cgroup 100 B"


def test_without_limits_nothing_is_said() -> None:
    limits = LimitFigures(committed_bytes=1000)
    assert (limits.any, limit_rows(limits), limit_notes(limits), limit_mark(limits)) == (False, [], [], "")


def test_refusals_without_a_limit_are_told() -> None:
    (note,) = limit_notes(LimitFigures(committed_bytes=1000, refused_requests=3))
    assert note.startswith("3 requests failed with ENOMEM: the system")


# ---- options ----------------------------------------------------------------------------------------------


def test_options_in_force(refused: int) -> None:
    """HAKMEM_GUARD=0 is the default: it is no change."""
    answer = hakmem_json("stat", refused)
    changed = {item["variable"]: item for item in answer["options_changed"]}
    assert set(changed) == {"HAKMEM_LIMIT_HARD", "HAKMEM_DECAY_MS"}
    assert changed["HAKMEM_DECAY_MS"] == {
        "variable": "HAKMEM_DECAY_MS", "value": 77, "default": "1000", "source": "environment",
    }  # fmt: skip
    assert changed["HAKMEM_LIMIT_HARD"]["default"] == ""
    assert len(answer["options"]) > len(changed) + 20
    text = hakmem("stat", refused).stdout
    assert re.search(r"^HAKMEM_DECAY_MS +77 +1000  its environment", text, re.MULTILINE)
    assert "HAKMEM_QUARANTINE_BYTES" not in text


def test_no_options_no_section(lib: Path, compile_c: Compile) -> None:
    """Every default that the library tells is one that it has."""
    with running([compile_c(PROGRAMS / "limited.c"), "1"], lib, {}) as process:
        assert hakmem_json("stat", process.pid)["options_changed"] == []
        assert "Options changed" not in hakmem("stat", process.pid).stdout
