"""Types of command-line arguments, shared with the laboratory."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

IS_QUICK = os.environ.get("QUICK", "") not in ("", "0")


def positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def positive_number(of: str, most: float = float("inf")) -> Callable[[str], float]:
    """The type of a number `of` seconds or minutes, say."""
    bounds = "above 0" if most == float("inf") else f"above 0 and up to {most:g}"

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of {of} {bounds}")
        return value

    return parse
