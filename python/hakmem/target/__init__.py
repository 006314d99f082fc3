"""The target: a process or a core dump, its memory, mappings and files."""
