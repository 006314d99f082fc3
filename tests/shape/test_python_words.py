"""The tool speaks technical English: numbers agree with their nouns.  Turns of phrase: test_words.py."""

import re

from shape import language

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
