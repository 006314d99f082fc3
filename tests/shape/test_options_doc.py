"""docs/OPTIONS.md says what options.def says, and the library's own help lists the same options."""

import re
from collections.abc import Callable
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def generator(load_script: Callable[[str], ModuleType]) -> ModuleType:
    return load_script("options-doc")


def test_every_line_of_the_table_is_understood(generator: ModuleType) -> None:
    entries = re.findall(r"^OPTION\(", generator.TABLE.read_text(), re.MULTILINE)
    assert entries
    assert len(generator.options()) == len(entries)


def test_the_page_is_what_the_table_says(generator: ModuleType) -> None:
    assert generator.DOCUMENT.read_text() == generator.document(), "run scripts/options-doc"


def test_help_lists_every_option(generator: ModuleType, preload: Callable) -> None:
    result = preload(["true"], env={"HAKMEM_HELP": "1"}, stats=False)
    assert result.returncode == 0
    assert re.findall(r"HAKMEM_[A-Z_]+", result.stderr) == [option.name for option in generator.options()]
