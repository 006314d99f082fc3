"""What people and other programs see: tables, the live screen, pages, metrics."""
