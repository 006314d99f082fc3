"""scripts/apt-install where apt's locks are held, as they are by the first boot's upgrades, where only root
installs packages, and where the sources do not have all of them.

apt-get, apt-cache, sudo and id are stand-ins that say what the real ones say."""

import os
import subprocess
from pathlib import Path

import pytest
from results import captured

APT_INSTALL = Path(__file__).resolve().parents[2] / "scripts" / "apt-install"
HELD = (
    "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)",
    "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 812 (apt-get)\n"
    "E: Unable to lock directory /var/lib/apt/lists/",
)
# As root of a user namespace: of one that has the user's number alone, and of one that has root's.
NOT_REALLY_ROOT = (
    "E: Could not open lock file /var/lib/apt/lists/lock - open (13: Permission denied)\n"
    "E: Unable to lock directory /var/lib/apt/lists/",
    "E: setgroups 65534 failed - setgroups (1: Operation not permitted)",
)
APT_GET = """#!/bin/sh
echo "$*" >>calls
[ "$(wc -l <calls)" -gt {held} ] || {{ printf '%s\\n' '{message}' >&2; exit 100; }}
case "$*" in *{broken}*) echo 'E: {broken} is broken' >&2; exit 100 ;; esac
"""
# Of a virtual package the real one says nothing, and that it is there.
APT_CACHE = """#!/bin/sh
case $2 in unknown*) exit 100 ;; virtual*) ;; *) echo "Package: $2" ;; esac
"""


def run(
    folder: Path,
    *,
    held: int = 0,
    message: str = HELD[0],
    broken: str = "nothing",
    uid: int = 0,
    packages: tuple[str, ...] = ("one", "two"),
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    tools = {
        "apt-get": APT_GET.format(held=held, message=message, broken=broken),
        "apt-cache": APT_CACHE,
        "id": f"#!/bin/sh\necho {uid}\n",
        "sudo": "#!/bin/sh\necho sudo: a password is required >&2\nexit 1\n",
        "tee": "#!/bin/sh\ncat >/dev/null\n",
        "chmod": "#!/bin/sh\n",
        "rm": "#!/bin/sh\n",
    }
    for name, text in tools.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return captured(
        [APT_INSTALL, *packages], cwd=folder, env={"PATH": path, "TMPDIR": str(folder), **environment}
    )


@pytest.mark.parametrize("message", HELD)
def test_held_locks_are_waited_for(tmp_path: Path, message: str) -> None:
    done = run(tmp_path, held=2, message=message)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("waiting for apt's lock, held by process 812") == 1
    assert (tmp_path / "calls").read_text().splitlines()[-1].endswith("one two")


def test_waiting_ends(tmp_path: Path) -> None:
    done = run(tmp_path, held=1000, APT_WAIT_S="1")
    assert done.returncode == 1
    assert "another process has held apt's lock for 1 s, held by process 812" in done.stderr
    assert "sudo apt-get install one two" in done.stderr


@pytest.mark.parametrize("message", NOT_REALLY_ROOT)
def test_a_root_without_rights_does_not_wait(tmp_path: Path, message: str) -> None:
    done = run(tmp_path, held=1000, message=message, APT_WAIT_S="3")
    assert done.returncode == 1
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
    first, second, command = done.stderr.splitlines()
    assert first == message.splitlines()[0] and "root has no right to install packages here" in second
    assert command.startswith("    apt-get install one two ")


def test_one_broken_source_stops_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, broken="update").returncode == 0


def test_what_fails_is_said(tmp_path: Path) -> None:
    done = run(tmp_path, broken="one")
    assert done.returncode == 1
    assert "E: one is broken" in done.stderr and "could not install one two" in done.stderr


def test_without_root_the_packages_are_named(tmp_path: Path) -> None:
    done = run(tmp_path, uid=1000)
    assert done.returncode == 1 and not (tmp_path / "calls").exists()
    assert "sudo apt-get install one two" in done.stderr


def test_what_the_sources_do_not_have_stops_no_other(tmp_path: Path) -> None:
    done = run(tmp_path, packages=("one", "unknown-1", "two", "unknown-2"))
    assert done.returncode == 1
    assert (tmp_path / "calls").read_text().splitlines()[-1].endswith("--no-install-recommends one two")
    assert done.stderr == "hakmem: apt's sources do not have unknown-1 unknown-2\n"


def test_a_package_of_several_names(tmp_path: Path) -> None:
    done = run(tmp_path, packages=("unknown-1|one|two", "three"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "calls").read_text().splitlines()[-1].endswith("--no-install-recommends one three")


def test_a_package_of_several_unknown_names(tmp_path: Path) -> None:
    done = run(tmp_path, packages=("unknown-1|unknown-2",))
    assert done.returncode == 1 and "install" not in (tmp_path / "calls").read_text()
    assert done.stderr == "hakmem: apt's sources do not have unknown-1\n"


def test_a_name_that_others_provide_is_no_package(tmp_path: Path) -> None:
    done = run(tmp_path, packages=("virtual-1", "one", "virtual-2|two"))
    assert done.returncode == 1
    assert (tmp_path / "calls").read_text().splitlines()[-1].endswith("--no-install-recommends one two")
    assert done.stderr == "hakmem: apt's sources do not have virtual-1\n"


def only_these(folder: Path, *commands: str) -> str:
    """A PATH of nothing else."""
    (folder / "bin").mkdir()
    for command in commands:
        (folder / "bin" / command).symlink_to(f"/usr/bin/{command}")
    return str(folder / "bin")


PLAIN = ("sh", "mktemp", "rm", "paste", "tr")


def run_bare(path: str) -> subprocess.CompletedProcess[str]:
    return captured([APT_INSTALL, "one|two", "three"], env={"PATH": path})


def test_a_system_without_apt(tmp_path: Path) -> None:
    done = run_bare(only_these(tmp_path, *PLAIN, "id"))
    assert done.returncode == 1
    assert "there is no apt-get here" in done.stderr and done.stderr.endswith("    one three\n")


def test_a_user_without_sudo(tmp_path: Path) -> None:
    path = only_these(tmp_path, *PLAIN)
    for name, text in {"id": "echo 1000", "apt-get": "exit 1"}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    done = run_bare(path)
    assert done.returncode == 1
    assert "there is no sudo here" in done.stderr
    assert "    su - -c 'apt-get install one three'\n" in done.stderr


def test_without_a_network_it_says_little(tmp_path: Path) -> None:
    """Real ones say thousands of lines: one for each file of each source."""
    done = run(tmp_path, held=100, message="W: Failed to fetch\n" * 2000)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) < 20
    assert "hakmem: apt-get could not install one two; install them by hand:" in done.stderr
