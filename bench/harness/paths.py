"""Where things are, all relative to the repository."""

from __future__ import annotations

from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
REPOSITORY = BENCH.parent
PROGRAMS = BENCH / "programs"
SUPPORT = BENCH / "support"
REAL = BENCH / "real"
OUTPUT = REPOSITORY / "build" / "bench"
PEERS = REPOSITORY / "build" / "peers"
HAKMEM_LIBRARY = REPOSITORY / "build" / "libhakmem.so"
LAST_JSON = OUTPUT / "last.json"
LAST_CSV = OUTPUT / "last.csv"
REPORT = OUTPUT / "report"
RESULTS = OUTPUT / "results"
