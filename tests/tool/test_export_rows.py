"""`hakmem export --by` and `--top`: the sums, in which nothing is lost or counted twice."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hakmem.base.errors import AccessRefusedError, ProcessGoneError
from hakmem.census.catalogue import LIMITS, PROCESS_LABELS, SITES, SITES_OTHER, Figure
from hakmem.census.snapshot import take
from hakmem.target.container import container_of, parse
from hakmem.target.target import Target, open_process
from hakmem.views import metrics, metrics_rows
from hakmem.views.metrics import HakmemCollector
from hakmem.views.metrics_rows import OTHERS, Grouping, Member, Sums, Totals, rows_of
from results import Compile
from tool.conftest import Tool
from tool.processes import PROGRAMS, running
from tool.test_export import families

ID, OUTER = "0123456789abcdef" * 4, "f" * 64
UID = "11111111-2222-3333-4444-555555555555"
SLICE = f"kubepods-pod{UID.replace('-', '_')}.slice"
HASH = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("path", "container_id", "pod", "cgroup"),
    [
        ("/", "", "", "/"),
        ("/system.slice/nginx.service", "", "", "/system.slice/nginx.service"),
        (f"/docker/{ID}", ID, "", f"/docker/{ID}"),
        (f"/system.slice/docker-{ID}.scope", ID, "", f"/system.slice/docker-{ID}.scope"),
        (f"/docker/{ID}/system.slice/a.service", ID, "", f"/docker/{ID}"),
        (f"/machine.slice/libpod-{ID}.scope/container", ID, "", f"/machine.slice/libpod-{ID}.scope"),
        (f"/kubepods/burstable/pod{UID}/{ID}", ID, UID, f"/kubepods/burstable/pod{UID}/{ID}"),
        (f"/kubepods/pod{HASH}/{ID}", ID, HASH, f"/kubepods/pod{HASH}/{ID}"),
        (
            f"/kubepods.slice/{SLICE}/cri-containerd-{ID}.scope",
            *(ID, UID, f"/kubepods.slice/{SLICE}/cri-containerd-{ID}.scope"),
        ),
        (f"/x/{SLICE}:cri-containerd:{ID}", ID, UID, f"/x/{SLICE}:cri-containerd:{ID}"),
        (f"/docker/{OUTER}/kubepods/pod{UID}/{ID}", ID, UID, f"/docker/{OUTER}/kubepods/pod{UID}/{ID}"),
        (f"/docker/{OUTER}/kubepods/pod{UID}", "", UID, f"/docker/{OUTER}/kubepods/pod{UID}"),
        (f"/../../pod{UID}/{ID}", ID, UID, f"/pod{UID}/{ID}"),
        ("/..", "", "", "/"),
        (f"/ecs/{HASH}/{HASH}-1234567890", f"{HASH}-1234567890", "", f"/ecs/{HASH}/{HASH}-1234567890"),
        (f"/user.slice/{ID}0", "", "", f"/user.slice/{ID}0"),
    ],
)  # fmt: skip
def test_containers_by_their_paths(path: str, container_id: str, pod: str, cgroup: str) -> None:
    assert parse(path) == (container_id, pod, cgroup)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        (f"0::/docker/{ID}\n", (ID, "", f"/docker/{ID}")),
        (f"5:cpu,cpuacct:/x\n4:memory:/docker/{ID}\n1:name=systemd:/y\n0::/\n", (ID, "", f"/docker/{ID}")),
        ("4:memory:/\n0::/system.slice/a.service\n", ("", "", "/system.slice/a.service")),
        ("0::/\n", ("", "", "/")),
        ("", ("", "", "")),
    ],
)
def test_both_versions_of_cgroups(text: str, labels: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "cgroup"
    path.write_text(text)
    assert container_of(path) == labels


def test_a_process_that_is_gone_has_no_container(tmp_path: Path) -> None:
    assert container_of(tmp_path / "gone") == ("", "", "")


# ---- rows and counters, without processes --------------------------------------------------------------


class Process:
    """The figures of a process that rows are made of."""

    def __init__(self, start_ticks: int) -> None:
        self.start_ticks = start_ticks
        self.error: Exception | None = None

    def check_same(self) -> None:
        if self.error:
            raise self.error


def target(pid: int, start_ticks: int = 1) -> Any:  # noqa: ANN401 - it stands for a Target
    return SimpleNamespace(pid=pid, process=Process(start_ticks))


COUNTED = Figure("c", "a counter", role="counter", labels=(*PROCESS_LABELS, "class"))


class Machine:
    """Scrapes of processes with the counter `c` and the gauge `g`."""

    def __init__(self, **grouping: Any) -> None:  # noqa: ANN401 - Grouping's
        self.grouping = Grouping(**grouping)
        self.totals = Totals()

    def scrape(self, *processes: tuple[Any, str, int, float]) -> dict[str, dict[tuple[str, ...], float]]:
        """Rows of (target, command, RSS, counter): {name: {labels: value}}."""
        members = [Member(one, str(one.pid), command, rss) for one, command, rss, _ in processes]
        rows = rows_of(members, self.grouping)
        self.totals.forget([one for one, *_ in processes], self.grouping)
        sums = Sums(self.grouping, members, rows, self.totals)
        for member, (*_, counter) in zip(members, processes, strict=True):
            labels = (member.pid, member.command)
            sums.add(COUNTED, (*labels, "64"), counter)
            for figure in (Figure("g", "a gauge"), LIMITS[1], LIMITS[3]):  # of the hard limit
                sums.add(figure, labels, member.rss_bytes)
        return values(sums.all())


def values(metrics: Any) -> dict[str, dict[tuple[str, ...], float]]:  # noqa: ANN401 - of prometheus_client
    return {one.name: {tuple(s.labels.values()): s.value for s in one.samples} for one in metrics}


def test_a_command_sums_its_processes() -> None:
    found = Machine(by="command").scrape(
        (target(1), "web", 10, 5), (target(2), "web", 20, 6), (target(3), "db", 40, 7)
    )
    assert found["hakmem_c"] == {("db", "64"): 7, ("web", "64"): 11}
    assert found["hakmem_g"] == {("db",): 40, ("web",): 30}
    assert found["hakmem_processes"] == {("db",): 1, ("web",): 2}
    assert found["hakmem_limit_hard_bytes"] == {("db",): 40, ("web",): 10}
    assert found["hakmem_limit_hard_used_ratio"] == {("db",): 40, ("web",): 20}


def test_counters_keep_what_ended_members_counted() -> None:
    machine, first, second = Machine(by="command"), target(1), target(2)
    machine.scrape((first, "web", 1, 100), (second, "web", 1, 50))
    first.process.error = ProcessGoneError("ended")
    assert machine.scrape((second, "web", 1, 51))["hakmem_c"] == {("web", "64"): 151}
    # The same PID again is another process.
    assert machine.scrape((second, "web", 1, 51), (target(1, 2), "web", 1, 3))["hakmem_c"] == {
        ("web", "64"): 154
    }
    second.process.error = ProcessGoneError("ended")
    assert "hakmem_c" not in machine.scrape()
    assert machine.scrape((target(9), "web", 1, 1))["hakmem_c"] == {("web", "64"): 155}


def test_a_process_that_was_hidden_for_a_while_is_not_counted_twice() -> None:
    machine, one = Machine(by="command"), target(1)
    machine.scrape((one, "web", 1, 100))
    one.process.error = AccessRefusedError("hidden")
    machine.scrape()
    assert machine.scrape((target(1), "web", 1, 101))["hakmem_c"] == {("web", "64"): 101}


def test_exec_begins_the_librarys_counters_again_and_not_the_kernels() -> None:
    machine = Machine(by="command")
    machine.scrape((target(1), "web", 1, 100))
    assert machine.scrape((target(1), "web", 1, 30))["hakmem_c"] == {("web", "64"): 130}  # fell: from 0
    assert machine.scrape((target(1), "web", 1, 31))["hakmem_c"] == {("web", "64"): 131}  # goes on


def test_a_counter_that_falls_while_it_is_read_does_not_fall() -> None:
    machine, one = Machine(by="command"), target(1)
    seen = [machine.scrape((one, "web", 1, value))["hakmem_c"]["web", "64"] for value in (100, 99, 100, 102)]
    assert seen == [100, 100, 100, 102]


def test_the_largest_have_rows_and_sums_are_the_same() -> None:
    processes = [(target(pid), f"p{pid}", pid, pid * 10) for pid in range(1, 6)]
    found = Machine(top=2).scrape(*processes)
    assert set(found["hakmem_g"]) == {("5", "p5"), ("4", "p4"), (OTHERS, OTHERS)}
    assert sum(found["hakmem_g"].values()) == 15
    assert sum(found["hakmem_c"].values()) == 150
    assert found["hakmem_processes"][OTHERS, OTHERS] == 3


def test_a_process_that_becomes_large_takes_nothing_along() -> None:
    """The sum of all rows grows by what was counted, whichever row a process is in; no row falls."""
    machine, a, b = Machine(top=1), target(1), target(2)
    sizes_and_counts = [(5, 1, 100, 10), (1, 5, 110, 20), (5, 1, 120, 30), (1, 5, 130, 40)]
    before: dict[tuple[str, ...], float] = {}
    for size_a, size_b, count_a, count_b in sizes_and_counts:
        found = machine.scrape((a, "a", size_a, count_a), (b, "b", size_b, count_b))["hakmem_c"]
        assert len(found) == 2
        assert all(found[row] >= before[row] for row in found.keys() & before.keys())
        before = before | found
        assert sum(before.values()) == count_a + count_b


def test_a_processs_own_row_goes_with_it() -> None:
    machine, one = Machine(top=5), target(1)
    machine.scrape((one, "web", 1, 100))
    one.process.error = ProcessGoneError("ended")
    machine.scrape()
    assert machine.scrape((target(1, 2), "web", 1, 3))["hakmem_c"] == {("1", "web", "64"): 3}


def test_rows_without_members_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_rows, "ROWS_KEPT_MAX", 3)
    machine = Machine(by="command")
    for number in range(10):
        one = target(number)
        machine.scrape((one, f"job-{number}", 1, 5))
        one.process.error = ProcessGoneError("ended")
        assert len(machine.totals._rows) <= 4
        assert len(machine.totals._seen) <= 2


def test_sites_of_all_others_are_one_sum() -> None:
    grouping, totals = Grouping(top=1, shown=1), Totals()
    members = [Member(target(1), "1", "large", 9), Member(target(2), "2", "small", 1)]
    sums = Sums(grouping, members, rows_of(members, grouping), totals)
    for one in members:
        for site, size in (("f", 100), ("g", 30)):
            sums.add(SITES[0], (one.pid, one.command, site, site, "x.c", "7"), size)
            sums.add(SITES[-1], (one.pid, one.command, site, site, "x.c", "7"), 1)
        sums.add(SITES_OTHER, (one.pid, one.command), 7)
    found = values(sums.all())
    assert found["hakmem_site_live_bytes"] == {("1", "large", "f", "f", "x.c", "7"): 100}
    assert set(found["hakmem_site_live_blocks"]) == {("1", "large", "f", "f", "x.c", "7")}
    assert found["hakmem_sites_other_live_bytes"] == {("1", "large"): 37, (OTHERS, OTHERS): 137}


# ---- with real processes -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(
    lib: Path, compile_c: Compile, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[subprocess.Popen[str]]]:
    """Two processes of one name that no other test uses, whose figures stand still."""
    program = tmp_path_factory.mktemp("rows") / "rows-of-a-pair"
    shutil.copy(compile_c(PROGRAMS / "known.c"), program)
    still = {"HAKMEM_DECAY_MS": "86400000", "HAKMEM_LIMIT_HARD": "1G"}
    with running([program], lib, still) as one, running([program], lib, still) as other:
        yield [one, other]


def collected(targets: list[Target], grouping: Grouping) -> Any:  # noqa: ANN401 - of prometheus_client
    """The series of these processes alone."""
    collector = HakmemCollector(grouping=grouping, has_classes=True)
    collector._fleet.targets = lambda: targets  # type: ignore[method-assign]
    return {family.name: family for family in collector.collect()}


@pytest.mark.parametrize(
    "grouping", [Grouping("command"), Grouping("container"), Grouping(top=1), Grouping("command", 1)], ids=str
)
def test_sums_are_those_of_the_processes(pair: list[subprocess.Popen[str]], grouping: Grouping) -> None:
    targets = [open_process(one.pid) for one in pair]
    plain, summed = collected(targets, Grouping()), collected(targets, grouping)
    assert set(summed) == {*plain, "hakmem_processes"}
    for name in ("hakmem_live_bytes", "hakmem_mapped_bytes", "hakmem_class_live_bytes", "hakmem_refills"):
        sums = [sum(s.value for s in of[name].samples) for of in (plain, summed)]
        assert sums[0] == sums[1] > 0, name
    labels = set(grouping.labels)
    for family in summed.values():
        assert not family.name.startswith("hakmem_exporter") or not family.samples[0].labels
        for sample in family.samples:
            assert labels <= set(sample.labels) or not sample.labels, sample
    assert len(summed["hakmem"].samples) == (2 if grouping.by == "process" else 1)


@pytest.mark.parametrize("grouping", [Grouping(), Grouping("command"), Grouping("container", 1)], ids=str)
def test_a_process_that_ends_meanwhile_is_left_out(
    pair: list[subprocess.Popen[str]], lib: Path, grouping: Grouping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found, and gone before anything else is asked, or right after its memory was read."""
    for before in (True, False):
        with running([str(pair[0].args[0])], lib) as other:
            gone, kept = open_process(other.pid), open_process(pair[0].pid)

            def take_and_end(target: Target, **options: Any) -> Any:  # noqa: ANN401 - take's
                ends = target.pid == other.pid
                if ends and before:  # noqa: B023
                    end(other)
                snapshot = take(target, **options)
                if ends:
                    end(other)
                return snapshot

            monkeypatch.setattr(metrics, "take", take_and_end)
            found = collected([gone, kept], grouping)
        assert found["hakmem_exporter_processes"].samples[0].value == (1 if before else 2)


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


def test_command_line(pair: list[subprocess.Popen[str]], tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "hakmem.prom"
    tool("export", path, "--by", "command", "--top", 100_000, "--detail", "counters")
    text = path.read_text()
    found = families(text)
    (count,) = (s for s in found["hakmem_processes"].samples if s.labels["command"] == "rows-of-a-pair")
    assert count.value == len(pair)
    assert 'pid="' not in text


@pytest.mark.parametrize("words", [["--top", "0"], ["--by", "user"]])
def test_wrong_command_lines(words: list[str], tool: Tool) -> None:
    ended = tool("export", "-", *words)
    assert (ended.status, "Invalid value" in ended.stderr) == (2, True)
