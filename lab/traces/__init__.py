"""Recordings of allocations, replayed on simulated heaps: what a policy would need, before it is built."""
