"""Heap profiles: what was sampled, the estimates made of it, their names and their file formats."""
