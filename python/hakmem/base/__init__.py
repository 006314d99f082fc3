"""What every room uses: errors, signals, streams, files, units."""
