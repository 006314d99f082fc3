"""What is looked into: a process or a core dump, its memory, its mappings, its files."""
