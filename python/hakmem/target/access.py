"""Why the kernel denies access to a process, and what to do about it."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from hakmem.base.errors import AccessRefusedError, ProcessGoneError
from hakmem.base.files import number_in

PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
CAP_SYS_PTRACE = 19
SCOPE_ADVICE = {
    1: "only its ancestors may read a process; run the tool with sudo, or allow it until the next boot: "
    "sudo sysctl kernel.yama.ptrace_scope=0",
    2: "only root may read other processes; run the tool with sudo",
    3: "no process may read another one until the next boot",
}


def has_yama() -> bool:
    """Whether the kernel has the Yama module, and so its setting."""
    return PTRACE_SCOPE.exists()


def ptrace_scope() -> int:
    """Yama's setting; 0, the most permissive one, without Yama."""
    return number_in(PTRACE_SCOPE) or 0


def refused(pid: int) -> AccessRefusedError:
    return AccessRefusedError(f"the kernel denies access to process {pid}: {_why(pid)}")


def gone(pid: int) -> ProcessGoneError:
    """The error for a process that does not exist, or no longer."""
    return ProcessGoneError(f"no such process: {pid}; `hakmem ps` lists the running ones")


def _why(pid: int) -> str:
    try:
        owner = int(Path(f"/proc/{pid}/status").read_bytes().split(b"\nUid:")[1].split()[0])
    except (OSError, IndexError):
        owner = None
    scope = ptrace_scope()
    if _may_trace():
        yama = f", Yama: kernel.yama.ptrace_scope is {scope}" if has_yama() else ""
        return f"a security module (SELinux, AppArmor{yama}) denies it"
    if os.geteuid() == 0:
        return "root lacks CAP_SYS_PTRACE here; start the container with --cap-add SYS_PTRACE"
    if owner is not None and owner != os.geteuid():
        return (
            f"it belongs to {_user(owner)}, you are {_user(os.geteuid())}; run the tool as its user "
            f"(sudo -u {_user(owner)} hakmem …) or with sudo (CAP_SYS_PTRACE)"
            + (f"; kernel.yama.ptrace_scope is {scope}" if has_yama() else "")
        )
    if scope in SCOPE_ADVICE:
        return f"kernel.yama.ptrace_scope is {scope}: {SCOPE_ADVICE[scope]}"
    return (
        "it gained privileges when it started (setuid, setgid or file capabilities), or made itself "
        "unreadable (PR_SET_DUMPABLE); run the tool with sudo (CAP_SYS_PTRACE)"
    )


def _may_trace() -> bool:
    status = Path("/proc/self/status").read_text()
    return bool(int(status.split("\nCapEff:")[1].split()[0], 16) >> CAP_SYS_PTRACE & 1)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
