"""Recordings of every allocation and free: how they are taken from a running process, kept and read."""
