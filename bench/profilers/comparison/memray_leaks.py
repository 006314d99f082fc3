"""Prints what is leaked in a file of memray, as folded stacks; runs in the environment that has memray."""

import sys
from collections import defaultdict

from memray import FileReader

found: dict[str, int] = defaultdict(int)
with FileReader(sys.argv[1]) as reader:
    for record in reader.get_leaked_allocation_records(merge_threads=True):
        names = [name.replace(";", ":") for name, _file, _line in record.stack_trace()]
        found[";".join(reversed(names))] += record.size
for stack, size in found.items():
    print(f"{stack} {size}")
