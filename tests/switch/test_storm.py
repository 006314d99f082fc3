"""A profile is switched on and off without a pause, in a process that does at once all that a profile must
live with (storm.cc).  `PROFILE_SWITCHES=1000000` does so a million times (`make soak`)."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from results import Compile
from switch.outside import Outside, outside, wait_for
from switch.spoken import spoken_to

HERE = Path(__file__).parent
PLUGIN = HERE.parent / "concurrency" / "plugin.c"
SWITCHES = int(os.environ.get("PROFILE_SWITCHES", "10000"))
LOOKS = 200  # before a change is repeated: the threads poked first may sleep
FORGET_EVERY = 100  # switches: threads begin and end meanwhile
PATIENCE_S = 300.0
DEEDS = ("turns", "exceptions", "loads", "forks", "signals", "raised", "cancelled", "threads")


class Storm:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert self._line() == "ready"

    @property
    def pid(self) -> int:
        return self._process.pid

    def deeds(self) -> dict[str, int]:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._told(self._line())

    def end(self) -> dict[str, int]:
        stdout, stderr = self._process.communicate(timeout=PATIENCE_S)
        assert (self._process.returncode, stderr) == (0, "")
        return self._told(stdout)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    @staticmethod
    def _told(line: str) -> dict[str, int]:
        return dict(zip(DEEDS, map(int, line.split()), strict=True))


@contextmanager
def storming(program: Path, plugin: Path, library: Path, env: dict[str, str]) -> Iterator[Storm]:
    with spoken_to([program, plugin], library, env) as process:
        yield Storm(process)


class Switcher:
    """Writes what `Outside` writes, ten times as fast."""

    def __init__(self, process: Outside) -> None:
        self._process, self._file, self._schema = process, process.descriptor, process.target.schema
        self._control, self._state = self._schema.root("profile_control"), self._schema.root("profile_state")
        self._fields = self._schema.records["profile_control"].fields
        self._status = self._schema.records["profile_state"].fields["status"]
        self._poke_at = self._schema.offset("heap", "poke")
        self._byte = bytes([self._schema.constant("heap_poke")])
        self._heaps: list[int] = []
        self._random = np.random.default_rng(13)
        self.count = 0

    def _write(self, name: str, value: int) -> None:
        field = self._fields[name]
        os.pwrite(self._file, value.to_bytes(field.element_bytes, "little"), self._control + field.offset)

    def _settings(self) -> None:
        """Each time others: all that a tool may ask for."""
        self._write("period_bytes", int(self._random.choice([0, 64, 300, 4096, 1 << 19])))
        self._write("stack_depth", int(self._random.integers(0, 130)))
        ended_ms, never = 1, 0
        self._write("lease_ms", int(self._random.choice([never, never, never, ended_ms])))
        if self._random.random() < 0.01:
            self._write("purge_request", int(self._random.integers(0, 256)))

    def _tell(self) -> None:
        self._write("generation", self.count % 255 + 1)
        for heap in self._heaps:
            os.pwrite(self._file, self._byte, heap + self._poke_at)

    def _is(self, status: int) -> bool:
        place = self._state + self._status.offset
        return int.from_bytes(os.pread(self._file, self._status.element_bytes, place), "little") == status

    def switch(self, is_on: bool) -> None:
        """Until a thread has followed."""
        if self.count % FORGET_EVERY == 0:
            self._heaps = self._process.heap_addresses()
            self._settings()
        if is_on:
            self._write("lease_ms", 0)
        status = self._schema.constant("profile_is_on" if is_on else "profile_is_off")
        deadline = time.monotonic() + PATIENCE_S
        self._write("flags", int(is_on))
        self._tell()
        looks = 0
        while not self._is(status):
            looks += 1
            if looks % LOOKS == 0:
                assert time.monotonic() < deadline, f"no heap follows switch {self.count}"
                self._heaps = self._process.heap_addresses()
                self._tell()
                os.sched_yield()
        self.count += 1


def assert_all_go_on(storm: Storm) -> None:
    """No thread hangs: each does its work once more, and again."""
    before = storm.deeds()
    wait_for(lambda: all(storm.deeds()[deed] > before[deed] + 1 for deed in DEEDS), f"all of {before}")


MODES: dict[str, dict[str, str]] = {
    "default": {},
    "hardened": {"HAKMEM_HARDEN": "1"},
    "guarded": {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "99"},
}


@pytest.mark.long("3 seconds each; a storm of seconds, for what shows by chance")
@pytest.mark.timeout(7200 if "PROFILE_SWITCHES" in os.environ else 900)
@pytest.mark.parametrize(
    ("mode", "is_debug", "share"),
    [("default", False, 1.0), ("default", True, 0.2), ("hardened", True, 0.1), ("guarded", True, 0.1)],
    ids=["default", "default-debug", "hardened-debug", "guarded-debug"],
)
def test_switched_in_a_storm(
    mode: str, is_debug: bool, share: float, compile_c: Compile, lib: Path, debug_lib: Path
) -> None:
    program, plugin = compile_c(HERE / "storm.cc", "-ldl"), compile_c(PLUGIN, "-shared", "-fPIC")
    switches = int(SWITCHES * share)
    began = time.monotonic()
    with storming(program, plugin, debug_lib if is_debug else lib, MODES[mode]) as storm:
        with outside(storm.pid) as process:
            switcher = Switcher(process)
            sessions = int(process.state["sessions"])
            assert_all_go_on(storm)
            while switcher.count < switches:
                switcher.switch(switcher.count % 2 == 0)
            assert_all_go_on(storm)
            assert int(process.state["sessions"]) - sessions >= switches // 2
            process.switch_and_wait(True, heaps=2, period_bytes=1024)
            process.switch_and_wait(False, heaps=2)
            state = process.state
        deeds = storm.end()
    told = ", ".join(f"{number:,} {deed}" for deed, number in deeds.items())
    seconds, samples, parts = time.monotonic() - began, int(state["samples"]), int(state["incomplete_stacks"])
    print(f"{switcher.count:,} switches in {seconds:.0f} s, {samples:,} samples, {parts:,} in part; {told}")
