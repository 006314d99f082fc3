"""How hakmem's structures lie in memory: the library's description of itself, and records as arrays."""
