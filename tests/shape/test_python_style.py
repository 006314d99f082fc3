"""The Python sources are clean by ruff's rules of pyproject.toml."""

import re
import sys
from pathlib import Path

import pytest
from results import captured
from shape import language


@pytest.mark.parametrize("check", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff_has_nothing_to_say(root: Path, check: list[str]) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not in this Python environment")
    step = captured([ruff, *check, "--quiet"], cwd=root)
    assert step.returncode == 0, step.stdout


# ---- technical English: numbers agree with their nouns; turns of phrase: test_words.py -------------------


PLACEHOLDER_PLURAL = re.compile(r"\{len\([^{}]*\)\} [a-z]+s\b")  # "1 threads": base/sizes.counted


def test_numbers_agree_with_their_nouns() -> None:
    found = [
        f"{path.name}:{line}: {text}"
        for path in language.files("python")
        for line, text in language.texts(path)
        if PLACEHOLDER_PLURAL.search(text)
    ]
    assert not found, "\n".join(found)


def test_a_number_that_does_not_agree_is_found() -> None:
    assert PLACEHOLDER_PLURAL.search("{len(line.details)} threads keep them")
