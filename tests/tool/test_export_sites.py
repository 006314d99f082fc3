"""`hakmem export` of sites: while a heap profile is on; judged by Prometheus's own parsers."""

import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hakmem.census.catalogue import SITES
from hakmem.profile.labels import Labels
from hakmem.profile.model import Frame, Mapping, Profile
from hakmem.profile.session import is_on
from hakmem.profile.sites import site_table
from hakmem.target.target import open_process
from hakmem.views import metrics, metrics_sites
from hakmem.views.metrics_sites import SiteMetrics, name_of
from profiles.worlds import Load, drawn, profile_of, stack_of
from prometheus_client import CollectorRegistry, generate_latest
from results import Find, captured
from tool.processes import hakmem, running, wait_until
from tool.test_export import OPENMETRICS, Families, exporting, families, get, openmetrics_parser, value

KEEPS = "keeps"
PATIENCE_S = 60.0


def rows(found: Families, metric: str, process: subprocess.Popen[str]) -> list[dict[str, str]]:
    """The labels of a process's samples."""
    if metric not in found:
        return []
    return [s.labels for s in found[metric].samples if s.labels["pid"] == str(process.pid)]


def with_site(address: str, process: subprocess.Popen[str]) -> Families | None:
    found = families(get(address)[1])
    functions = [row["function"] for row in rows(found, "hakmem_site_live_bytes", process)]
    return found if KEEPS in functions else None


@pytest.mark.long("2 seconds of processor time")
@pytest.mark.alone  # profiles of all programs of the machine go on
def test_switched_on_by_the_exporter_and_off_again(sites: subprocess.Popen[str]) -> None:
    with exporting("--profile") as (exporter, address):
        found = wait_until(lambda: with_site(address, sites), "no site", PATIENCE_S)
        assert value(found, "hakmem_profile_on", sites) == 1
        (site,) = (r for r in rows(found, "hakmem_site_live_bytes", sites) if r["function"] == KEEPS)
        assert site["site"].startswith("keeps ← main ← ")
        assert site["file"] == "sites.c"
        assert int(site["line"]) > 0
        assert set(site) == {"pid", "command", "site", "function", "file", "line"}
        bytes_, low, high, blocks = (
            value(found, f"hakmem_site_live_{name}", sites, function=KEEPS)
            for name in ("bytes", "bytes_low", "bytes_high", "blocks")
        )
        assert low <= bytes_ <= high
        assert bytes_ == pytest.approx(blocks * 64, rel=0.02)
        exporter.send_signal(signal.SIGINT)
        assert exporter.wait(PATIENCE_S) == 0
    wait_until(lambda: not is_on(open_process(sites.pid)), "it stays on", PATIENCE_S)


@pytest.mark.long("2 seconds of processor time")
@pytest.mark.alone  # profiles of all programs of the machine go on
def test_figures_add_up_to_the_live_bytes(sites: subprocess.Popen[str]) -> None:
    with exporting("--profile") as (_, address):
        found = wait_until(lambda: with_site(address, sites), "no site", PATIENCE_S)
    parts = sum(
        sample.value
        for name in ("site", "sites_other", "sites_before", "sites_unsampled")
        for sample in found[f"hakmem_{name}_live_bytes"].samples
        if sample.labels["pid"] == str(sites.pid)
    )
    # The walk that counts is that of live_bytes; the samples are read after it.
    assert parts == pytest.approx(value(found, "hakmem_live_bytes", sites), rel=0.05)


@pytest.mark.long("2 seconds of processor time")
def test_a_profile_that_is_on_is_exported_and_left_on(sites: subprocess.Popen[str]) -> None:
    with exporting() as (exporter, address):
        found = families(get(address)[1])
        assert value(found, "hakmem_profile_on", sites) == 0
        assert not rows(found, "hakmem_site_live_bytes", sites)
        hakmem("profile", sites.pid, "--on")
        found = wait_until(lambda: with_site(address, sites), "no site", PATIENCE_S)
        assert value(found, "hakmem_profile_on", sites) == 1
        content_type, text = get(address, OPENMETRICS)
        assert content_type.startswith("application/openmetrics-text")
        strict = {family.name: family for family in openmetrics_parser.text_string_to_metric_families(text)}
        assert strict["hakmem_site_live_bytes"].type == "gauge"
        for name, family in strict.items():
            assert family.documentation.endswith("."), name
        exporter.terminate()
        exporter.wait(PATIENCE_S)
    assert is_on(open_process(sites.pid))


def test_no_sites_on_request(sites: subprocess.Popen[str], tmp_path: Path) -> None:
    hakmem("profile", sites.pid, "--on")
    wait_until(lambda: is_on(open_process(sites.pid)), "it does not go on")
    path = tmp_path / "hakmem.prom"
    hakmem("export", path, "--each", "0")
    found = families(path.read_text())
    assert value(found, "hakmem_profile_on", sites) == 1
    assert "hakmem_site_live_bytes" not in found


def test_textfile_has_the_names_at_once(sites: subprocess.Popen[str], tmp_path: Path, program: Find) -> None:
    hakmem("profile", sites.pid, "--on")
    path = tmp_path / "hakmem.prom"

    def has_site() -> bool:
        hakmem("export", path)
        named = rows(families(path.read_text()), "hakmem_site_live_bytes", sites)
        assert not [row for row in named if row["function"].startswith("sites+")]
        return KEEPS in [row["function"] for row in named]

    wait_until(has_site, "no site", PATIENCE_S)
    with path.open() as file:
        words = [program("promtool"), "check", "metrics"]
        step = captured(words, stdin=file)
    assert (step.returncode, step.stderr) == (0, "")


@pytest.mark.alone  # profiles of all programs of the machine go on
def test_a_process_that_refuses(sites_program: Path, lib: Path) -> None:
    with running([sites_program], lib, {"HAKMEM_PROFILE": "never"}) as process:
        with exporting("--profile") as (_, address):
            found = families(get(address)[1])
        assert value(found, "hakmem_profile_on", process) == 0
        assert value(found, "hakmem_live_bytes", process) > 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["x", "--profile"], "needs time to sample"),
        ([":0", "--profile", "--each", "0"], "leave out --each 0"),
        ([":0", "--each", "1000"], "0<=x<=100"),
    ],
)
def test_wrong_command_lines(words: list[str], complaint: str) -> None:
    assert complaint in hakmem("export", *words, status=2).stderr


# ---- the number of label sets -------------------------------------------------------------------------


class Chooser:
    """What is exported of one process, whose names are all known."""

    def __init__(self) -> None:
        names = SimpleNamespace(missing=lambda _profile: set())
        self.followed = metrics_sites._Followed(SimpleNamespace(names=names))  # type: ignore[arg-type]
        self.metrics = SiteMetrics()

    def chosen(self, profile: Profile) -> tuple[set[str], float, float]:
        """The functions, their bytes, and those of all others."""
        shown, other = self.metrics._chosen(site_table(profile), profile, self.followed)
        return {name[1] for name in shown}, sum(one.value for one, _ in shown.values()), other


def churning(first: int, count: int) -> Profile:
    """Sites of one Big block each, so that their figures are exact."""
    loads = [Load(first + n, (4 << 20) + n, 1) for n in range(count)]
    profile = profile_of(drawn(loads, np.random.default_rng(1), rates=(1,)))
    for load in loads:
        profile.names[stack_of(load.site)[0] - 1] = (Frame(f"site_{load.site}"),)
    return profile


def test_the_number_of_sites_is_bounded() -> None:
    """20 at a time, 200 as long as the exporter runs; what has no metric of its own is among the others."""
    chooser, seen = Chooser(), set[str]()
    for step in range(40):
        profile = churning(step * 30, 30)
        shown, held, other = chooser.chosen(profile)
        assert len(shown) <= metrics_sites.SITES_SHOWN
        assert held + other == pytest.approx(sum(one.weight_bytes for one in profile.samples))
        seen |= shown
    assert len(seen) == metrics_sites.SITES_KNOWN_MAX
    assert len(chooser.chosen(churning(0, 30))[0]) == 20, "those that had one keep it"


def test_equal_labels_are_one_metric() -> None:
    """Prometheus refuses an answer with the same labels twice."""
    profile = churning(0, 5)
    for frames in profile.names:
        profile.names[frames] = (Frame("same(int)" if frames % 0x20 else "same(char)"),)
    shown, held, other = Chooser().chosen(profile)
    assert shown == {"same"}
    assert other == 0
    assert held == pytest.approx(sum(one.weight_bytes for one in profile.samples))


def test_labels_hold_no_address_that_changes() -> None:
    """Code in no file is elsewhere with each start."""
    profile = Profile(mappings=[Mapping(0x1000, 0x2000, 0, ""), Mapping(0x5000, 0x6000, 0, "/opt/prog")])
    labels = name_of(Labels(profile), (0x1234, 0x9999, 0x5010))
    assert labels == ("anonymous ← anonymous ← prog+0x10", "anonymous", "", "")
    profile.names[0x5010] = (Frame("serve(int)", "/build/7/src/server.cc", 99),)
    assert name_of(Labels(profile), (0x5010,)) == ("serve", "serve", "server.cc", "99")
    assert name_of(Labels(profile), ()) == ("unknown", "unknown", "", "")


def test_evil_names_are_escaped() -> None:
    """The parser gives back what went in."""
    evil = 'a"b\\c\nd ← <e>'
    made = metrics.Families()
    made.add(SITES[0], ["1", "c", evil, evil, evil, evil], 1)
    registry = CollectorRegistry()
    registry.register(type("Made", (), {"collect": lambda _: made.all()})())
    (found,) = families(generate_latest(registry).decode()).values()
    assert found.samples[0].labels["site"] == evil
