"""A machine that QEMU emulates: boots a kernel with an initramfs of programs of this machine, and tells how
each ended.

`run_jobs(kernel_image, jobs, files, folder)` boots once and returns an Outcome for each job, in their order.
The initramfs has busybox, the script `init` and whatever the jobs need, each file where it lies here, so that
programs and libraries find each other.  The machine has two serial lines: the kernel's console, and what
`init` says.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from preload import SERVED_COUNTERS
from results import captured

HERE = Path(__file__).resolve().parent
BUSYBOX = Path("/bin/busybox")
PROCESSOR = "Nehalem"  # x86-64-v2, which numpy needs
MEMORY_MIB = 2048
BOOT_TIMEOUT_S = 60
LOG_LINES = 15  # of the kernel's console, when it did not come to its end
COMMAND_LINE = "console=ttyS0 quiet panic=-1 mitigations=off"
REPORTS = "/reports"


@dataclass(frozen=True)
class Job:
    """A program to be run there; `reports` when it has to leave a report that says hakmem served it."""

    name: str
    command: Sequence[str | Path]
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_s: int = 120
    reports: bool = True
    huge_pages: str = "madvise"  # the mode in /sys/kernel/mm/transparent_hugepage/enabled


@dataclass(frozen=True)
class Outcome:
    job: Job
    status: int | None  # as a shell says it: 128 + a signal; None when the machine ended before
    served: int  # reports of processes that hakmem served
    seconds: float
    said: str  # on standard output and standard error
    kernel_said: str

    @property
    def is_clean(self) -> bool:
        return self.status == 0 and not self.said and (self.served > 0 or not self.job.reports)

    def __str__(self) -> str:
        how = "did not end" if self.status is None else f"status {self.status}"
        if self.job.reports and not self.served:
            how += ", not served by hakmem"
        return "\n    ".join([f"{self.job.name}: {how}", *(self.said + self.kernel_said).splitlines()])


# ---- the initramfs -----------------------------------------------------------------------------------------


def libraries_of(file: Path) -> list[Path]:
    """The files that the dynamic linker loads for it, itself included; none for a static program."""
    listed = captured(["ldd", file]).stdout
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", listed)]


def with_folders(files: Iterable[Path]) -> Iterator[Path]:
    """Each file after the folders above it."""
    known = {Path("/")}
    for file in files:
        for path in (*reversed(file.parents), file):
            if path not in known:
                known.add(path)
                yield path


def packed(files: Iterable[Path], folder: Path) -> bytes:
    """An archive as the kernel unpacks it, of names relative to a folder."""
    names = "".join(f"{path.relative_to(folder)}\n" for path in files)
    words = ["cpio", "--create", "--format=newc", "--dereference", "--quiet"]
    return subprocess.run(words, cwd=folder, input=names.encode(), stdout=subprocess.PIPE, check=True).stdout


def job_line(job: Job) -> str:
    """A line of the shell for `init`."""
    environment = dict(job.environment)
    if job.reports:
        environment |= {"HAKMEM_STATS": f"json:{REPORTS}/%p.json"}
    variables = [f"{name}={value}" for name, value in environment.items()]
    words = [job.name, job.huge_pages, job.timeout_s, *variables, *job.command]
    return " ".join(["job", *(shlex.quote(str(word)) for word in words)])


def write_initramfs(path: Path, jobs: Sequence[Job], files: Iterable[Path]) -> None:
    """`files` besides the jobs' commands; what they are linked with comes by itself."""
    named = {word for job in jobs for word in job.command if isinstance(word, Path)} | set(files)
    all_files = {file: None for name in sorted(named) for file in (name, *libraries_of(name))}
    folder = path.with_suffix(".d")
    folder.mkdir(parents=True)
    (folder / "init").write_text((HERE / "init").read_text())
    (folder / "init").chmod(0o755)
    served = rf'"({"|".join(SERVED_COUNTERS)})":[1-9]'
    lines = [f"reports={REPORTS}", f"served={shlex.quote(served)}", *map(job_line, jobs)]
    (folder / "jobs").write_text("\n".join(lines) + "\n")
    of_this_machine = packed(with_folders([BUSYBOX, *all_files]), Path("/"))
    path.write_bytes(of_this_machine + packed([folder / "init", folder / "jobs"], folder))


# ---- the machine -------------------------------------------------------------------------------------------

# What `init` says of a job begins with lines of its own, behind a separator.
PART = re.compile(r"^\x1e(?P<what>begin|kernel|end|done) ?(?P<rest>.*)\n", re.M)


def outcomes(jobs: Sequence[Job], said: str) -> list[Outcome]:
    """The lines of `init` about each:
    begin NAME, the program's output; kernel, its messages; end STATUS SERVED SECONDS."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    name = ""
    _, *parts = PART.split(said)
    for what, rest, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        name = rest if what == "begin" else name
        found.setdefault(name, {})[what] = rest, text
    results = []
    for job in jobs:
        of_job = found.get(job.name, {})
        texts = [of_job.get(what, ("", ""))[1] for what in ("begin", "kernel")]
        status, served, seconds = of_job["end"][0].split() if "end" in of_job else (None, "0", "0")
        results.append(
            Outcome(job, None if status is None else int(status), int(served), float(seconds), *texts)
        )
    return results


def run_jobs(kernel_image: Path, jobs: Sequence[Job], files: Iterable[Path], folder: Path) -> list[Outcome]:
    """Boots the kernel; `folder` is an empty one for the machine's files."""
    initramfs, console, results = folder / "initramfs", folder / "console", folder / "results"
    write_initramfs(initramfs, jobs, files)
    words = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", PROCESSOR]
    words += ["-smp", str(os.cpu_count() or 1)]
    words += ["-m", str(MEMORY_MIB), "-nodefaults", "-display", "none", "-no-reboot"]
    words += ["-serial", f"file:{console}", "-serial", f"file:{results}"]
    words += ["-kernel", str(kernel_image), "-initrd", str(initramfs), "-append", COMMAND_LINE]
    limit_s = BOOT_TIMEOUT_S + sum(job.timeout_s for job in jobs)
    step = captured(words, timeout=limit_s)
    said = results.read_text(errors="replace").replace("\r\n", "\n")
    if "\x1edone" not in said:
        log = "\n".join(console.read_text(errors="replace").splitlines()[-LOG_LINES:])
        lost = "; ".join(str(outcome) for outcome in outcomes(jobs, said) if outcome.status is None)
        pytest.fail(f"the machine ended early: {step.stderr}\n{log}\n{lost}", pytrace=False)
    return outcomes(jobs, said)
