"""An installed hakmem, and its build tree, are found by pkg-config and by CMake; `make uninstall` takes away
what `make install` put there, and nothing else."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from results import captured

PROGRAM = Path(__file__).parent.with_name("shape") / "version.c"
CONSUMER = Path(__file__).with_name("consumer")
Ran = Callable[..., str]


def test_pkg_config_finds_it(installed: Path, ran: Ran, cc: str, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    (file,) = installed.rglob("hakmem.pc")
    flags = ran("pkg-config", "--cflags", "--libs", "hakmem", PKG_CONFIG_PATH=str(file.parent)).split()
    ran(cc, PROGRAM, "-o", tmp_path / "program", *flags)
    libraries = str(next(installed.rglob("libhakmem.so")).parent)
    assert ran(tmp_path / "program", LD_LIBRARY_PATH=libraries).strip()
    assert "[libhakmem.so.0]" in ran("readelf", "--dynamic", tmp_path / "program")


@pytest.mark.parametrize("tree", ["installed", "built"])
def test_cmake_finds_it(tree: str, installed: Path, lib: Path, ran: Ran, tmp_path: Path) -> None:
    where = f"-DCMAKE_PREFIX_PATH={installed}" if tree == "installed" else f"-Dhakmem_DIR={lib.parent}"
    ran("cmake", "-G", "Ninja", "-S", CONSUMER, "-B", tmp_path, f"-DPROGRAM={PROGRAM}", where)
    ran("cmake", "--build", tmp_path)
    assert ran(tmp_path / "with_hakmem") == ran(tmp_path / "with_static")
    assert "libhakmem" not in ran("readelf", "--dynamic", tmp_path / "with_static")


def test_the_names_lead_to_one_file(installed: Path, lib: Path) -> None:
    for folder in (lib.parent, next(installed.rglob("libhakmem.so")).parent):
        names = [folder / name for name in ("libhakmem.so", "libhakmem.so.0")]
        assert all(name.is_symlink() for name in names)
        (file,) = {name.resolve() for name in names}
        assert file.name.startswith("libhakmem.so.0.")


# ---- make install, make uninstall ----------------------------------------------------------------------


def contents(folder: Path) -> dict[Path, bytes | None]:
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


@pytest.fixture
def script(root: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """scripts/install with these words and DESTDIR."""

    def run(*words: str | Path, destination: Path | str = "") -> subprocess.CompletedProcess[str]:
        command = [str(word) for word in (root / "scripts" / "install", *words)]
        environment = os.environ | {"DESTDIR": str(destination)}
        return captured(command, env=environment)

    return run


def test_the_build_tree_has_a_pkg_config_file_of_its_own(lib: Path) -> None:
    """PKG_CONFIG_PATH=build: it names the library and the header files of this tree."""
    lines = (lib.parent / "hakmem.pc").read_text().splitlines()
    values = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
    assert (Path(values["libdir"]) / "libhakmem.so").samefile(lib)
    headers = values["includedir"].replace("${prefix}", values["prefix"])
    assert (Path(headers) / "hakmem/hakmem.h").exists()


@pytest.mark.long("2 seconds of processor time each")
@pytest.mark.parametrize("prefix", ["/usr/local", "/opt/made/for it"])
def test_uninstall_leaves_what_was_there(script: Callable, lib: Path, tmp_path: Path, prefix: str) -> None:
    """Also after a second install, and after one over an older version."""
    place = tmp_path / prefix.lstrip("/")
    for other in ("/usr/local/lib/pkgconfig/other.pc", "/usr/local/include/other.h"):
        path = tmp_path / other.lstrip("/")
        path.parent.mkdir(parents=True)
        path.write_text("another's")
    before = contents(tmp_path)
    for _ in range(2):
        done = script(lib.parent, prefix, destination=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    (names,) = place.rglob("share/hakmem/installed")
    old = place / "lib" / "libhakmem.so.0.0.9"
    old.write_text("an older version's")
    names.write_text(names.read_text() + "file lib/libhakmem.so.0.0.9\nfile ../../outside\n")
    assert script(lib.parent, prefix, destination=tmp_path).returncode == 0
    assert not old.exists()
    assert (place / "include/hakmem/hakmem.hpp").exists()
    assert (place / "share/man/man3/libhakmem.3").exists()
    assert script("--remove", prefix, destination=tmp_path).returncode == 0
    left = contents(tmp_path)
    assert {name for name in left if not Path(prefix.lstrip("/")).is_relative_to(name)} <= set(before)
    assert {name: left.get(name) for name in before} == before


def test_uninstall_leaves_no_folder_that_install_made(script: Callable, lib: Path, tmp_path: Path) -> None:
    """Those above the prefix neither, DESTDIR's own among them; but for what has another's file in it."""
    destination = tmp_path / "made" / "root"
    for _ in range(2):
        done = script(lib.parent, "/usr/local", destination=destination)
    for file in ("lib/libhakmem.so", "include/hakmem/hakmem.h", "share/man/man3/libhakmem.3"):
        (place,) = (path.parent for path in destination.rglob(Path(file).name))
        assert f" in {place}" in done.stdout
    assert f"make uninstall PREFIX=/usr/local DESTDIR={destination} removes them" in done.stdout
    (tmp_path / "made" / "other").touch()
    assert script("--remove", "/usr/local", destination=destination).returncode == 0
    assert list(tmp_path.rglob("*")) == [tmp_path / "made", tmp_path / "made" / "other"]


def test_a_list_names_nothing_outside(script: Callable, lib: Path, tmp_path: Path) -> None:
    prefix, other = tmp_path / "prefix", tmp_path / "other"
    other.write_text("another's")
    assert script(lib.parent, prefix).returncode == 0
    names = prefix / "share/hakmem/installed"
    names.write_text(names.read_text() + f"file ../other\nfile {other}\nfolder ..\nabove 9\n")
    assert script("--remove", prefix).returncode == 0
    assert other.read_text() == "another's"
    assert not prefix.exists()


def test_what_fails_can_be_removed_again(script: Callable, lib: Path, tmp_path: Path) -> None:
    """What is another's by now stays: a folder where a file was, a link where a folder was."""
    prefix, moved = tmp_path / "prefix", tmp_path / "moved"
    assert script(lib.parent, prefix).returncode == 0
    header = prefix / "include/hakmem/hakmem.h"
    header.unlink()
    header.mkdir()
    (header / "another's").touch()
    (prefix / "share/man").rename(moved)
    (prefix / "share/man").symlink_to(moved)
    done = script("--remove", prefix)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path for path in prefix.rglob("*") if path.is_file()] == [header / "another's"]
    assert (prefix / "share/man").is_symlink()
    assert not [path for path in moved.rglob("*") if path.is_file()]


def test_the_list_goes_last(
    script: Callable, lib: Path, tmp_path: Path, load_script: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file cannot be removed; when it can, the rest goes."""
    prefix = tmp_path / "prefix"
    assert script(lib.parent, prefix).returncode == 0
    install, unlink = load_script("install"), Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == "hakmem.h":
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        for _ in range(2):
            with pytest.raises(PermissionError):
                install.remove(prefix)
            assert (prefix / install.LIST).exists()
    install.remove(prefix)
    assert not prefix.exists()


def test_it_is_for_all_users(root: Path, lib: Path, tmp_path: Path) -> None:
    """Whatever root's umask is."""
    prefix = tmp_path / "prefix"
    words = [str(root / "scripts" / "install"), str(lib.parent), str(prefix)]
    subprocess.run(words, umask=0o077, check=True)
    hidden = [path for path in prefix.rglob("*") if not path.is_symlink() and not path.stat().st_mode & 0o004]
    assert hidden == []


def test_mistakes_are_told(script: Callable, lib: Path, tmp_path: Path) -> None:
    nothing = script("--remove", tmp_path)
    assert nothing.returncode == 1
    assert nothing.stderr.startswith(f"hakmem: {tmp_path} has nothing that `make install` put there")
    relative = script(lib.parent, "somewhere")
    assert relative.returncode == 2
    assert "PREFIX must be an absolute path" in relative.stderr
    (tmp_path / "file").touch()
    blocked = script(lib.parent, tmp_path / "file" / "prefix")
    assert blocked.returncode == 1
    assert "Traceback" not in blocked.stderr
