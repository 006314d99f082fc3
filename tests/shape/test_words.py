"""Words and turns that hakmem does not use (language.py) do not come back."""

import pytest
from shape import language


def test_words() -> None:
    complaints = [line for tree in language.TREES for line in language.complaints(tree)]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Frees it. What a thread holds stays.", "what"),
        ("a page: what is left of it", "what"),
        ("Who waits long looks less often", "Who"),
        ("a slab of whoever asks", "nobody"),
        ("Of the pages, one is kept.", "Of"),
        ("an address that is no block", "is no"),
        ("they went back in vain", "in vain"),
        ("the owner is told of it", "is told"),
        ("after so many blocks", "so many"),
    ],
)
def test_a_turn_is_found(text: str, name: str) -> None:
    assert name in {pattern.name for _, pattern, _ in language.faults_of(text + "\n", "src")}


@pytest.mark.parametrize(
    "text",
    [
        "What is left of it?",
        "Of course.",
        "there is no such block",
        "it is no longer there",
        "is no slower than",
        "so many blocks that",
        "\twhat = of(it);",
    ],
)
def test_plain_english_passes(text: str) -> None:
    assert not list(language.faults_of(text + "\n", "src"))


def test_texts_are_found_in_each_language() -> None:
    """In the whole: a sentence that two lines share, and strings that follow each other."""
    sources = {
        ".c": '/* That is\n * no block. */\nsay("no "\n    "page"); int x; /* end */\n',
        ".py": 'say("no "\n    f"page")  # that is\nx = 1  # end\n# It is\n# no block.\n',
        ".md": "# What it does\n\nIt is\nno block.\n\n- an item\n  of two\n\n| a | cell |\n",
    }
    expected = {
        ".c": {(1, "That is no block."), (3, "no page"), (4, "end")},
        ".py": {(1, "no page"), (2, "that is"), (3, "end"), (4, "It is no block.")},
        ".md": {
            (1, "\t# What it does"),
            (3, "It is no block."),
            (6, "an item of two"),
            (9, "a"),
            (9, "cell"),
        },
    }
    for suffix, source in sources.items():
        found = {(line, text) for line, text in language.texts_of(suffix, source)}
        assert expected[suffix] <= found, found
