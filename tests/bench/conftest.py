"""The harness of the benchmarks, tested without running any: canned numbers in place of timed runs."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # matplotlib's of its own libraries
    import matplotlib.pyplot  # noqa: F401

from harness.allocators import Allocator
from harness.campaign import Outcome, Plan
from harness.estimate import PAIRS_MIN
from harness.execute import RunError, Sample
from harness.summary import summarise
from harness.workload import Length

Document = dict[str, Any]
MACHINE = dict.fromkeys(
    ("processor", "cores", "memory_gib", "kernel", "libc", "huge_pages", "load_at_start", "date"), "some"
)
ALLOCATORS = [
    Allocator("hakmem", Path("libhakmem.so")),
    Allocator("glibc", None),
    Allocator("mimalloc", Path("libmimalloc.so.2")),
]


def sample(ns: float, rss_kib: float = 2048, **more: float) -> Sample:
    """The numbers of one run that took `ns` an operation."""
    run = {"ops": 1000.0, "seconds": ns * 1e-6, "ns_per_op": ns, "user_s": ns * 1e-6, "sys_s": 0.0}
    return {**run, "peak_rss_kib": rss_kib, "minor_faults": 100.0, **more}


@dataclass
class Fake:
    """A workload that reads its samples from a table, and may take time on a clock of the test."""

    name: str
    samples: dict[str, Sample]
    runs_max: int | None = None
    is_real: bool = False
    is_case: bool = False
    together: bool = False
    alternates: bool = False
    spend: Callable[[], None] = lambda: None
    noise: Callable[[], float] = lambda: 1.0  # factor of each run's processor time
    runs: list[str] = field(default_factory=list)

    def command_text(self, _length: Length) -> str:
        return self.name

    def missing(self) -> str:
        return ""

    def prepare(self, _length: Length) -> None:
        """Nothing."""

    def expected_seconds(self, length: Length) -> float:
        return length.seconds

    def prove(self, allocator: Allocator) -> None:
        if "unproven" in self.samples.get(allocator.name, {}):
            raise RunError("served by another")

    def timed(self, allocator: Allocator, _length: Length) -> Sample:
        self.spend()
        self.runs.append(allocator.name)
        if allocator.name not in self.samples:
            raise RunError("crashed")
        found = self.samples[allocator.name]
        return {**found, "user_s": found["user_s"] * self.noise()}

    def report(self, _hakmem: Allocator, _length: Length) -> dict[str, Any] | None:
        return None


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No load of the machine disturbs a fake run."""
    monkeypatch.setattr("harness.campaign.watched", lambda run: (run(), {"loop": 1.0}))


@pytest.fixture
def plan_of() -> Callable[..., Plan]:
    """plan_of(workload, ...) -> Plan on hakmem, glibc and mimalloc."""

    def make(*workloads: Fake) -> Plan:
        return Plan(list(workloads), ALLOCATORS, minutes=1, length=Length(0.1, quick=False))

    return make


@pytest.fixture
def document_of(plan_of: Callable[..., Plan]) -> Callable[..., Document]:
    """document_of(workload, ..., blocks=PAIRS_MIN) -> of equal blocks; what has no sample failed."""

    def make(*workloads: Fake, blocks: int = PAIRS_MIN) -> Document:
        outcome = Outcome(seconds=3.0)
        for each in workloads:
            outcome.blocks[each.name] = [dict(each.samples)] * blocks
        return summarise(plan_of(*workloads), outcome, MACHINE, [])

    return make


@pytest.fixture
def fake() -> Callable[..., Fake]:
    """fake("json", hakmem=sample(...), glibc=sample(...)) -> a workload."""

    def make(name: str, /, runs_max: int | None = None, is_real: bool = False, **samples: Sample) -> Fake:
        return Fake(name, samples, runs_max, is_real)

    return make


@pytest.fixture(name="sample")
def sample_fixture() -> Callable[..., Sample]:
    """sample(ns, rss_kib=2048, **more) -> the numbers of one run."""
    return sample
