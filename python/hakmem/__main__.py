"""python -m hakmem."""

from hakmem.cli import run_main

run_main()
