"""The page, the charts, Markdown and CSV of a small canned result."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import doc_performance
import pytest
from harness.estimate import PAIRS_MIN
from harness.files import read_json, write_csv, write_json
from harness.markdown import to_markdown, to_tsv
from harness.report import write_report

Make = Callable[..., Any]
LATENCIES = {"p50_ns": 20.0, "p99_ns": 90.0, "p999_ns": 400.0, "p9999_ns": 3000.0, "max_ns": 90000.0}


@pytest.fixture
def document(document_of: Make, fake: Make, sample: Make) -> dict[str, Any]:
    everyone = ("hakmem", "glibc", "mimalloc")
    return document_of(
        fake("json", **{name: sample(10) for name in everyone}),
        fake("tail_latency-1t", **{name: sample(10, **LATENCIES) for name in everyone}),
        fake("burst_idle", **{name: sample(10, rss_idle_kib=9000) for name in everyone[:2]}),
        fake("idle_threads", **{name: sample(10, rss_per_idle_thread_bytes=9000) for name in everyone}),
        fake("real-<sort>", is_real=True, **{name: sample(10**9) for name in everyone}),
    )


@pytest.mark.long("3 seconds of processor time")
def test_page_and_charts(document: dict[str, Any], tmp_path: Path) -> None:
    write_report(document, tmp_path)
    charts = {path.stem for path in tmp_path.glob("*.png")}
    assert charts == {"means", "time", "memory", "latency", "idle", "live"}
    page = (tmp_path / "index.html").read_text()
    assert page.count("<svg") == len(charts)
    assert "real-&lt;sort&gt;" in page
    assert "<script" not in page
    assert 'src="' not in page, "the page needs no other file"


def test_markdown(document: dict[str, Any]) -> None:
    latency = document["extras"][1]["rows"][3]
    latency["cells"]["glibc"] |= {"min": 2700.0, "max": 3300.0}
    text = to_markdown(document)
    assert "| tail_latency-1t p99.99 ns | 3000 | 3000 ±10 % | 3000 |" in text
    assert "| json ns | 10.0 | 10.0 | 10.0 | 1.000 glibc (1.000 to 1.000) |" in text
    assert "| json | 1.000 (1.000 to 1.000) | 1.000 (1.000 to 1.000) |" in text


def test_tsv_has_the_cells_of_markdown(document: dict[str, Any]) -> None:
    rows = [line.split("\t") for line in to_tsv(document).splitlines() if line and not line.startswith("# ")]
    markdown = [line for line in to_markdown(document).splitlines() if line.startswith("| ")]
    assert ["| " + " | ".join(row) + " |" for row in rows] == markdown


def test_pages_are_made_of_the_tsv(
    document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least campaign: a row that is not known stands in no list of losses."""
    for path in doc_performance.DATA.glob("*.tsv"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    slow = document["benchmarks"][0]
    slow["cells"]["glibc"]["cpu_ns_per_op"]["pair"] |= {"ratio": 1.5, "low": 1.2, "high": 2.0, "known": False}
    for name in ("campaign.tsv", "real.tsv"):
        (tmp_path / name).write_text(to_tsv(document))
    monkeypatch.setattr(doc_performance, "DATA", tmp_path)
    assert doc_performance.Campaign.read(doc_performance.MADE_UP).unknown() == ["json"]
    page = doc_performance.document()
    assert "**Not known** is the time of 1 rows: json." in page
    assert "\n| time | 1.00 (1.000 to 1.000) | 1.00 | 1.00 |\n" in page
    assert "\n| hakmem's time over the other's, measured rows |  | 1.107 (4) | 1.000 (3) |\n" in page


def test_the_mean_of_pairs_leaves_out_rows_of_few(document: dict[str, Any]) -> None:
    """Two rows of 1.0 ± 1 % and 1.21 ± 3 %: their mean errs by half the root of the squares' sum."""
    pairs = [row["cells"]["mimalloc"]["cpu_ns_per_op"]["pair"] for row in document["benchmarks"][:2]]
    pairs[0] |= {"ratio": 1.0, "low": 1 / 1.01, "high": 1.01}
    pairs[1] |= {"ratio": 1.21, "low": 1.21 / 1.03, "high": 1.21 * 1.03}
    document["benchmarks"][3]["cells"]["mimalloc"]["cpu_ns_per_op"]["pair"]["pairs"] = 9
    assert "| geometric mean, made-up loads |" in to_markdown(document)
    assert "| 1.100 (1.083 to 1.117), 2 rows |" in to_markdown(document)


def test_kept_and_read_again(document: dict[str, Any], tmp_path: Path) -> None:
    write_json(document, tmp_path / "r.json")
    assert to_markdown(read_json(tmp_path / "r.json")) == to_markdown(document)
    write_csv(document, tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    runs = PAIRS_MIN * (4 * 3 + 2)
    assert len(lines) == runs
    assert lines[0]["benchmark"] == "json"
