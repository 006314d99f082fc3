"""`hakmem export`: through a real HTTP request, judged by Prometheus's own parsers."""

import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families
from results import Compile, Find, captured
from tool.forked import tool_environment
from tool.processes import (
    PROGRAMS,
    TOOL,
    answers,
    begun,
    free_port,
    hakmem,
    hakmem_json,
    running,
    runs,
    wait_until,
)

OPENMETRICS = "application/openmetrics-text; version=1.0.0"

Families = dict[str, Metric]


known = runs("known.c", HAKMEM_DECAY_MS="86400000")  # its figures stand still


@contextmanager
def exporting(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """An exporter, and where it listens."""
    port = free_port()
    with begun("export", f"127.0.0.1:{port}", *options) as exporter:
        wait_until(lambda: answers(port), "the exporter does not answer")
        yield exporter, f"http://127.0.0.1:{port}/metrics"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with exporting("--detail", "classes") as (_, where):
        yield where


def get(address: str, accept: str = "text/plain") -> tuple[str, str]:
    """The content type and the text of an answer."""
    request = urllib.request.Request(address, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def families(text: str) -> Families:
    """By name."""
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(found: Families, family: str, process: subprocess.Popen[str], **labels: str) -> float:
    """The value of a process's sample, with these other labels."""
    wanted = {"pid": str(process.pid), **labels}
    samples = [s for s in found[family].samples if wanted.items() <= s.labels.items()]
    assert len(samples) == 1, f"{family} {wanted}: {samples}"
    return float(samples[0].value)


@pytest.fixture(scope="module")
def scraped(known: subprocess.Popen[str], address: str) -> Families:
    """What one request gives."""
    assert known.poll() is None
    return families(get(address)[1])


def test_figures_over_http(known: subprocess.Popen[str], address: str) -> None:
    snapshot = hakmem_json("stat", known.pid)
    content_type, text = get(address)
    found = families(text)
    assert content_type.startswith("text/plain")
    for name in ("live_bytes", "cached_bytes", "metadata_bytes", "ranges_cached_bytes"):
        assert value(found, f"hakmem_{name}", known) == snapshot["memory"][name]
    assert value(found, "hakmem_rss_bytes", known) == pytest.approx(
        snapshot["process"]["rss_bytes"], rel=0.02
    )
    for name in ("refills", "refilled_blocks", "big_allocs", "purged_bytes"):
        assert (
            value(
                found, f"hakmem_{name}_total" if f"hakmem_{name}_total" in found else f"hakmem_{name}", known
            )
            == (snapshot["counters"] | snapshot["totals"])[name]
        )


def test_figures_by_class(known: subprocess.Popen[str], scraped: Families) -> None:
    live = value(scraped, "hakmem_class_live_blocks", known, **{"class": "64", "tier": "tiny"})
    free = value(scraped, "hakmem_class_free_blocks", known, **{"class": "1024", "tier": "tiny"})
    assert live == pytest.approx(100_000, abs=20)
    assert free == pytest.approx(10_000, abs=400)
    assert value(scraped, "hakmem_info", known, version=hakmem_json("stat", known.pid)["version"]) == 1


def test_labels_and_units(known: subprocess.Popen[str], scraped: Families) -> None:
    ours = [s for family in scraped.values() for s in family.samples if s.labels.get("pid") == str(known.pid)]
    assert {sample.labels["command"] for sample in ours} == {Path(str(known.args[0])).name[:15]}
    assert not [name for name in scraped if name.endswith(("_ns", "_ms", "_kib"))]
    assert value(scraped, "hakmem_os_map_seconds", known) > 0
    assert value(scraped, "hakmem_os_map_seconds", known) < 10
    for family in scraped.values():
        assert family.documentation.endswith("."), family.name


def test_openmetrics_on_request(known: subprocess.Popen[str], address: str) -> None:
    content_type, text = get(address, OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    found = {family.name: family for family in openmetrics_parser.text_string_to_metric_families(text)}
    assert value(found, "hakmem_refills", known) > 0
    assert found["hakmem_refills"].type == "counter"
    assert found["hakmem_live_bytes"].type == "gauge"


def test_processes_come_and_go(
    lib: Path, compile_c: Compile, known: subprocess.Popen[str], address: str
) -> None:
    """Also a program that is executed under a PID that was looked at before."""
    program = compile_c(PROGRAMS / "known.c")
    with running(["/bin/sh", "-c", f"echo ready; sleep 0.5; exec {program}"], lib) as process:
        ours = f'command="{program.name[:15]}",pid="{process.pid}"'
        get(address)
        wait_until(lambda: ours in get(address)[1], "it does not appear")
    text = get(address)[1]
    assert ours not in text
    assert f'pid="{known.pid}"' in text


@pytest.fixture(scope="module")
def textfile(known: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A written file, in a folder of its own."""
    path = tmp_path_factory.mktemp("textfile") / "hakmem.prom"
    hakmem("export", path)
    assert known.poll() is None
    return path


def test_textfile(known: subprocess.Popen[str], textfile: Path) -> None:
    assert value(families(textfile.read_text()), "hakmem_live_bytes", known) > 0
    assert textfile.stat().st_mode & 0o777 == 0o644
    assert list(textfile.parent.iterdir()) == [textfile]


@pytest.mark.long("a second of processor time")
def test_textfile_again_and_again(known: subprocess.Popen[str], tmp_path: Path) -> None:
    path = tmp_path / "hakmem.prom"
    with subprocess.Popen([*TOOL, "export", str(path), "--every", "100ms"], env=tool_environment()) as tool:
        try:
            wait_until(path.exists, "no file")
            first = path.stat().st_ino
            wait_until(lambda: path.stat().st_ino != first, "the file is not written again")
            assert families(path.read_text())  # never a half one
        finally:
            tool.terminate()
    assert known.poll() is None


def test_promtool_finds_no_fault(textfile: Path, program: Find) -> None:
    words = [program("promtool"), "check", "metrics"]
    with textfile.open() as file:
        step = captured(words, stdin=file)
    assert (step.returncode, step.stderr) == (0, "")


def test_series_for_each_class_are_asked_for(known: subprocess.Popen[str], tmp_path: Path) -> None:
    """They are four fifths of all series."""
    path = tmp_path / "hakmem.prom"
    hakmem("export", path)
    found = families(path.read_text())
    assert value(found, "hakmem_live_bytes", known) > 0
    assert not [name for name in found if name.startswith("hakmem_class_")]


def test_quick_leaves_out_what_needs_a_walk(known: subprocess.Popen[str], tmp_path: Path) -> None:
    path = tmp_path / "hakmem.prom"
    hakmem("export", path, "--detail", "counters")
    found = families(path.read_text())
    assert value(found, "hakmem_cached_bytes", known) > 0
    assert "hakmem_free_slab_bytes" not in found


def test_address_in_use(address: str) -> None:
    port = address.split(":")[2].split("/")[0]
    assert "cannot listen on" in hakmem("export", f":{port}", status=1).stderr


@pytest.mark.long("a second each; each wrong option; all fail in one place", keep=1)
@pytest.mark.parametrize("words", ["", "19100", ":99999", ":0 x", ":0 --every 1s", "http://h:4318"])
def test_wrong_command_lines(words: str) -> None:
    hakmem("export", *words.split(), status=2)
