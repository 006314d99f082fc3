"""USDT probes as OpenTelemetry's agent reads them: the notes, and tracers that only the notes lead."""

import os
import platform
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen

import pytest
from hakmem.target.elf import open_elf
from results import captured
from switch.conftest import WORKER, Worker
from switch.outside import outside, wait_for

Start = Callable[..., Worker]
BYTES, PERIOD = 16384, 524288  # blocks of 16 KiB fill their class
# The agent's first version reads arguments where functions have theirs, not where the note says.
REGISTERS = {"x86_64": "8@%rdi 8@%rsi 8@%rdx", "aarch64": "8@x0 8@x1 8@x2"}
# The kernel: as the agent attaches. Events belong to the file, so each test traces its own copy;
# the registers are those of x86-64.
KERNEL = """
set -e
mount -t tracefs tracefs /mnt
cd /mnt
trap 'rmdir instances/$0; echo "-:$0/alloc" >>uprobe_events; echo "-:$0/free" >>uprobe_events' EXIT
echo "p:$0/alloc $1:$2 p=%di:x64 size=%si:u64 w=%dx:u64" >>uprobe_events
echo "p:$0/free $1:$3 p=%di:x64" >>uprobe_events
mkdir instances/$0
echo 1 >instances/$0/events/$0/enable
read line
echo 0 >instances/$0/events/$0/enable
cat instances/$0/trace
"""
EVENT = re.compile(r"(alloc|free): .*?p=(\w+)(?: size=16384 w=(\d+))?")
GDB = r"""
set pagination off
break -probe-stap otel_memory:alloc
commands
silent
printf "alloc: p=%#lx size=%lu w=%lu\n", $_probe_arg0, $_probe_arg1, $_probe_arg2
continue
end
break -probe-stap otel_memory:free
commands
silent
printf "free: p=%#lx\n", $_probe_arg0
continue
end
continue
delete
detach
"""


def probes(library: Path) -> dict[str, list[str]]:
    """The notes' addresses, semaphores and arguments, by name."""
    notes = captured(["readelf", "-n", library], check=True).stdout
    found = re.findall(
        r"Provider: otel_memory\s+Name: (\w+)\s+Location: (\w+), Base: \w+, "
        r"Semaphore: (\w+)\s+Arguments: (.*?) *\n",
        notes,
    )
    return {name: rest for name, *rest in found}


def test_probes_are_in_the_file(lib: Path) -> None:
    """The kernel finds semaphores by their offset in the file: they are no zeroed memory."""
    *alloc, registers = probes(lib)["alloc"]
    *free, register = probes(lib)["free"]
    assert registers == REGISTERS[platform.machine()] and register == registers.split()[0]
    places = [int(place, 16) for place in alloc + free]
    assert places[1] and places[3] == places[1] + 2
    file = open_elf(lib)
    assert file and [file.address_of(place) for place in places] == places


def test_a_raised_semaphore_is_on(start: Start) -> None:
    worker = start("steps")
    with outside(worker.pid) as process:
        semaphore = process.target.schema.root("profile_control")
        os.pwrite(process.descriptor, b"\x01", semaphore)
        worker.say(f"take 10000 {BYTES}")
        assert abs(process.live_bytes(BYTES) / (10000 * BYTES) - 1) < 0.5
        assert set(process.samples()[2]["period_bytes"]) == {PERIOD}
        os.pwrite(process.descriptor, b"\x00", semaphore)
        worker.say("give")
        worker.say("pairs 100000 3000")
        assert not process.heaps()["armed"].any()


def traced_by(tracer: str, pid: int, library: Path, folder: Path) -> list[str]:
    if not shutil.which(tracer):
        pytest.skip(f"{tracer} is not installed")
    if tracer == "gdb":
        script = folder / "gdb"
        script.write_text(GDB)
        return ["gdb", "-q", "-nx", "-batch", "-p", str(pid), "-x", str(script)]
    places = (f"{place}({semaphore})" for place, semaphore, _ in probes(library).values())
    return ["unshare", "-m", "sh", "-c", KERNEL, f"hakmem{pid}", str(library), *places]


@pytest.mark.long("a few seconds")
@pytest.mark.parametrize("tracer", ["unshare", "gdb"])
def test_a_tracer_sees_weighted_samples(start_program: Start, lib: Path, tmp_path: Path, tracer: str) -> None:
    """The weights sum up to the bytes allocated while it traces; each sample is freed once."""
    library = Path(shutil.copy(lib, tmp_path / "libhakmem.so"))
    worker = start_program(WORKER, "steps", library=library)
    blocks, output = 40000, tmp_path / "events"
    with outside(worker.pid) as process, output.open("w") as events:

        def is_raised() -> bool:
            if tracing.poll() is not None:
                pytest.skip(f"{tracer} cannot trace here: {output.read_text()}")
            return bool(process.control["free_semaphore"])

        worker.say(f"take 10000 {BYTES}")
        assert not int(process.state["samples"])
        words = traced_by(tracer, worker.pid, library, tmp_path)
        with Popen(words, stdin=PIPE, stdout=events, stderr=STDOUT) as tracing:
            wait_for(is_raised, f"{tracer} to raise the semaphores")
            worker.say(f"take {blocks} {BYTES}")
            worker.say("give")
            if tracer == "gdb":
                tracing.send_signal(signal.SIGINT)
            tracing.communicate(b"\n")
        assert not process.control["alloc_semaphore"] and not process.control["free_semaphore"]
    live, weighted_bytes = set[str](), 0
    for name, place, weight in EVENT.findall(output.read_text()):
        (live.add if name == "alloc" else live.remove)(place)
        weighted_bytes += int(weight or 0)
    expected = blocks * BYTES
    assert abs(weighted_bytes / expected - 1) < 5 * (PERIOD / expected) ** 0.5, "five standard errors"
    assert not live
