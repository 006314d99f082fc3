"""The harness of the benchmarks: builds the programs, runs them on every allocator, shows the result."""
