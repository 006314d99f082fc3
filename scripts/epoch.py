"""The time that everything made for a release has: SOURCE_DATE_EPOCH, else that of the last commit.  Run as a
script (scripts/deb), prints it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def epoch_s() -> int:
    """Exits where it is not known, and says what to set."""
    if asked := os.environ.get("SOURCE_DATE_EPOCH"):
        if not (asked.isascii() and asked.isdigit()):
            raise SystemExit(f"hakmem: SOURCE_DATE_EPOCH is {asked!r}, which is not a number of seconds")
        return int(asked)
    words = ["git", "log", "-1", "--format=%ct"]
    try:
        said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        said = ""
    if not said.isdigit():
        raise SystemExit(
            "hakmem: git does not tell the time of the last commit here: set SOURCE_DATE_EPOCH to the time "
            "that the files shall have, in seconds"
        )
    return int(said)


if __name__ == "__main__":
    print(epoch_s())
