"""Launching a program on hakmem: whether that works, and whether its report was written."""
