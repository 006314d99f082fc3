"""Heap profiles: the samples, the estimates made of them, their names and their file formats."""
