"""Checks of a machine, a process or a program for what hinders hakmem."""
