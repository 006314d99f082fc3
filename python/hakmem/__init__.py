"""hakmem: shows from outside where a program's memory is, and why.

    entry, cli ─▶ commands ─▶ views ─▶ doctor ─▶ launch ─▶ census ─▶ target ─▶ layout ─▶ base

The library's half of the bargain is one self-describing block (layout/schema.py); this package reads it out
of a running process or a core dump (target) and makes figures of it (census).  A room is a package; it
imports lower ones only (tests/shape/test_python_rooms.py).
"""

__version__ = "0.1.0"  # that of include/hakmem/hakmem.h: scripts/version
