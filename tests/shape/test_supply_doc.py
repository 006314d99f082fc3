"""docs/ARCHITECTURE.md names the rungs of the supply ladder as the table has them, in its order."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COUNTERS = ROOT / "src" / "base" / "counters.def"


def rungs() -> list[tuple[str, str]]:
    """Name and counter of each."""
    text = (ROOT / "src" / "cache" / "supply.h").read_text()
    return re.findall(r"^ *RUNG\((\w+), (\w+), ", text, re.MULTILINE)


def test_the_page_names_the_rungs_in_order() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    sentence = re.search(r"\*\*The supply ladder\*\*.*?Its rungs: (.*?)\. ", page, re.DOTALL)
    assert sentence
    assert re.findall(r"`(\w+)`", sentence[1]) == [name for name, _ in rungs()]


def test_each_counter_of_refills_is_a_rungs() -> None:
    """Else what serves refills would be counted in a place of its own again."""
    counted = set(re.findall(r"^UNSTABLE_COUNTER\((refill_\w+),", COUNTERS.read_text(), re.MULTILINE))
    assert counted <= {counter for _, counter in rungs()}
