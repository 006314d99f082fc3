"""The laboratory's runner: builds the load, runs every experiment, judges, and writes the page."""
