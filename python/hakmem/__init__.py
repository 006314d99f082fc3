"""hakmem: shows from outside where a program's memory is, and why.

The library's half of the bargain is one self-describing block (schema.py); this package reads it out of a
running process or a core dump (memory.py, locate.py) and makes figures of it (snapshot.py).
"""

__version__ = "0.1.0"  # the one place: of the library too, see include/hakmem/hakmem.h
