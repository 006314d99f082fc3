"""Offers run_program to the tests of this folder."""

from modes import run_program

__all__ = ["run_program"]
