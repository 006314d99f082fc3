"""The layout of hakmem's structures: the library's description of itself, and records as arrays."""
