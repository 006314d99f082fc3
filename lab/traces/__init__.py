"""Recordings of allocations, replayed on simulated heaps: the needs of a policy, before it is built."""
