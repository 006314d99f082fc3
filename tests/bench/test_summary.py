"""From samples to ratios, means, further figures and verdicts."""

from collections.abc import Callable
from typing import Any

import pytest
from harness.workload import MADE_UP, REAL

Make = Callable[..., Any]


def test_ratios_are_to_the_best_peer(document_of: Make, fake: Make, sample: Make) -> None:
    row = fake("json", hakmem=sample(8), glibc=sample(20), mimalloc=sample(10))
    document = document_of(row)
    cells = document["benchmarks"][0]["cells"]
    assert document["benchmarks"][0]["best_peer"]["cpu_ns_per_op"] == "mimalloc"
    ratios = {name: cell["cpu_ns_per_op"]["ratio"] for name, cell in cells.items()}
    assert ratios == pytest.approx({"hakmem": 0.8, "glibc": 2.0, "mimalloc": 1.0})


def test_means_are_over_rows_that_all_finished(document_of: Make, fake: Make, sample: Make) -> None:
    whole = fake("json", hakmem=sample(5), glibc=sample(10), mimalloc=sample(10))
    real = fake("real-x", is_real=True, hakmem=sample(20), glibc=sample(10), mimalloc=sample(10))
    half = fake("mir", hakmem=sample(500), glibc=sample(10))
    document = document_of(whole, real, half)
    assert document["geometric_means"]["all loads"]["benchmarks"]["cpu_ns_per_op"] == 2
    assert document["geometric_means"]["all loads"]["cpu_ns_per_op"]["hakmem"] == pytest.approx(1.0)
    assert document["geometric_means"][REAL]["cpu_ns_per_op"]["hakmem"] == pytest.approx(2.0)
    assert document["geometric_means"][MADE_UP]["cpu_ns_per_op"]["hakmem"] == pytest.approx(0.5)


def test_further_figures(document_of: Make, fake: Make, sample: Make) -> None:
    idle = fake("burst_idle", hakmem=sample(5, rss_idle_kib=2048), glibc=sample(5, rss_idle_kib=4096))
    phases = fake("phases", hakmem=sample(5, rss_over_live=1.5))
    tables = {table["title"]: table["rows"] for table in document_of(idle, phases)["extras"]}
    after_idle = tables["RSS after idle"][0]
    assert after_idle["cells"]["hakmem"]["median"] == 2.0
    assert after_idle["cells"]["hakmem"]["ratio"] == 0.5
    assert tables["Memory over time, per thread, per process"][0]["cells"]["hakmem"]["median"] == 1.5


def verdicts(document: dict[str, Any]) -> dict[str, bool]:
    return {figure["name"]: figure["met"] for figure in document["targets"]}


@pytest.mark.parametrize(("ns", "met"), [(9.0, True), (10.9, True), (11.5, False)])
def test_no_row_far_behind(document_of: Make, fake: Make, sample: Make, ns: float, met: bool) -> None:
    document = document_of(fake("json", hakmem=sample(ns), glibc=sample(10), mimalloc=sample(12)))
    found = verdicts(document)
    assert found["Time, rows above 1.10 of the best peer"] is met
    assert found["Time, geometric mean against the best peers"] is (ns < 9.5)


@pytest.mark.parametrize(("ns", "met"), [(5.0, True), (6.0, True), (7.0, False)])
def test_tiny_hot_against_glibc(document_of: Make, fake: Make, sample: Make, ns: float, met: bool) -> None:
    document = document_of(fake("tiny_hot", hakmem=sample(ns), glibc=sample(9)))
    assert verdicts(document)["A8 tiny_hot, throughput against glibc"] is met


@pytest.mark.parametrize(("many", "met"), [(100.0, True), (104.0, True), (120.0, False)])
def test_more_threads_than_cores(document_of: Make, fake: Make, sample: Make, many: float, met: bool) -> None:
    few = fake("oversubscribed-1x", hakmem=sample(100), glibc=sample(100))
    document = document_of(few, fake("oversubscribed", hakmem=sample(many), glibc=sample(100)))
    name = "More threads than cores, throughput of oversubscribed against oversubscribed-1x"
    assert verdicts(document)[name] is met


@pytest.mark.parametrize(("more_kib", "met"), [(0, True), (250, True), (400, False)])
def test_startup_memory(document_of: Make, fake: Make, sample: Make, more_kib: int, met: bool) -> None:
    cost = {"hakmem": sample(10, child_peak_rss_kib=1500 + more_kib)}
    document = document_of(fake("startup", glibc=sample(10, child_peak_rss_kib=1500), **cost))
    assert verdicts(document)["startup, peak of a process above glibc's"] is met
    assert verdicts(document)["startup, time against glibc"]


def test_targets_without_their_rows_are_left_out(document_of: Make, fake: Make, sample: Make) -> None:
    names = verdicts(document_of(fake("mixed", hakmem=sample(10), glibc=sample(10))))
    assert not [name for name in names if name.startswith("A")]
