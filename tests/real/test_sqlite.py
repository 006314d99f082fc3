"""sqlite3: a million rows, indices, joins, full text, vacuum; the same database, byte by byte."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from real.sides import Side, Sides

SCRIPT = (Path(__file__).parent / "programs" / "rows.sql").read_text()


def test_million_rows(sides: Sides, program: Callable[[str], Path]) -> None:
    sqlite3 = program("sqlite3")

    def job(side: Side) -> tuple[str, str]:
        output = side.run([sqlite3, "-batch", "-bail", "rows.db"], stdin=SCRIPT).stdout
        return output, hashlib.sha256((side.folder / "rows.db").read_bytes()).hexdigest()

    output, _ = sides.same(job)
    assert "rows|1000000\n" in output
    assert output.endswith("integrity|ok\n")
