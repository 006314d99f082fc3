"""A program on hakmem that a test speaks to: it reads lines from its standard input, and answers in lines."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from preload import preload_environment


@contextmanager
def spoken_to(
    command: Sequence[str | Path], library: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """It is killed at the end of the block, if it runs then."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        env=preload_environment(library, "") | dict(environment),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
