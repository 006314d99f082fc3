"""Output: tables, the live screen, recordings and their page, metrics."""
