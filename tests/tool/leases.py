"""Leases of heap profiles: what ends a profile whose tool was killed."""

from hakmem.profile.session import LEASE_S
from hakmem.target.switch import CONTROL, monotonic_ms
from hakmem.target.target import open_process


def ends_by_itself(pid: int) -> bool:
    """The process has been told to end its profile within the tool's lease from now, or earlier.  That it
    does is waited for once, in test_profile.py."""
    target = open_process(pid)
    control = target.memory.array(target.schema.root(CONTROL), target.schema.dtype(CONTROL), 1)[0]
    return 0 < int(control["lease_ms"]) <= monotonic_ms(pid) + LEASE_S * 1000
