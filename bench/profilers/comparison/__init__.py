"""The comparison of heap profilers: the programs, the tools, what is measured, and the table."""
