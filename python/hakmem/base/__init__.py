"""Shared by every room: errors, signals, streams, files, units."""
