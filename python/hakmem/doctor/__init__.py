"""Checks of a machine, a process or a program for obstacles to hakmem."""
