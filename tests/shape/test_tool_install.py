"""The tool as `pipx install ./python` makes it: every room is in the package, and what is installed runs."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from results import captured

LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
# Before the checkout, which the environment's own path leads to.
RUN = """
import sys
sys.path.insert(0, {installed!r})
import hakmem
assert hakmem.__file__.startswith({installed!r}), hakmem.__file__
from hakmem.entry import main
sys.exit(main({arguments!r}))
"""


@pytest.fixture(scope="module")
def installed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From a copy: setuptools leaves its folders beside the source."""
    pytest.importorskip("setuptools", reason="without a package index the tool is left out (make-tool)")
    folder = tmp_path_factory.mktemp("tool")
    shutil.copytree(root / "python", folder / "source", ignore=LEFT_OUT)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index"]
    step = captured(
        [*pip, "--no-deps", "--no-build-isolation", "--target", folder / "installed", folder / "source"]
    )
    assert step.returncode == 0, step.stdout + step.stderr
    return folder / "installed"


def files_below(folder: Path) -> set[str]:
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in found if "__pycache__" not in path.parts}


def test_every_file_is_in_the_package(installed: Path, root: Path) -> None:
    assert files_below(installed / "hakmem") == files_below(root / "python" / "hakmem")


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["ps"], ["stat", "--help"], ["doctor", "--help"], ["record", "--help"]],
    ids=" ".join,
)
def test_what_is_installed_runs(installed: Path, tmp_path: Path, arguments: list[str]) -> None:
    script = RUN.format(installed=str(installed), arguments=arguments)
    step = captured([sys.executable, "-c", script], cwd=tmp_path, env=os.environ)
    assert (step.returncode, step.stderr) == (0, "")
    assert step.stdout


def test_the_page_has_its_template(installed: Path, tmp_path: Path) -> None:
    script = RUN.format(installed=str(installed), arguments=[]).partition("from")[0]
    script += 'import jinja2; print(jinja2.PackageLoader("hakmem.views", "templates").list_templates())'
    step = captured([sys.executable, "-c", script], cwd=tmp_path)
    assert (step.returncode, step.stderr) == (0, "")
    assert "report.html.j2" in step.stdout
