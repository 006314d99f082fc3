"""Files of profiles: the name tells the format when one is written, the content when it is read."""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from hakmem.base.errors import HakmemError
from hakmem.base.files import Output
from hakmem.profile.folded import to_folded
from hakmem.profile.json_format import RECORDING_NAME, from_json, is_a_recording, to_json
from hakmem.profile.model import Profile
from hakmem.profile.pprof import to_pprof
from hakmem.profile.pprof_reader import BYTES_MAX, GZIP_MAGIC, from_pprof, uncompressed

Write = Callable[[Profile], bytes]
RECORDING = f'{{"format":"{RECORDING_NAME}"'.encode()  # how one begins


def _text(make: Callable[[Profile], str]) -> Write:
    return lambda profile: make(profile).encode(errors="backslashreplace")


def writers() -> dict[str, Write]:
    return {
        ".pb.gz": to_pprof,
        ".pprof": to_pprof,
        ".json": _text(to_json),
        ".folded": _text(to_folded),
    }


def writer_of(path: Path, more: dict[str, Write] | None = None) -> Write:
    """HakmemError for a name with another end: asked before the work, not after it."""
    known = writers() | (more or {})
    for suffix, write in known.items():
        if path.name.endswith(suffix):
            return write
    raise HakmemError(
        f"the name {path} tells no format; use one that ends in {', '.join([*known][:-1])} or {[*known][-1]}"
    )


def save(profile: Profile, path: Path, write: Write) -> None:
    """Writes it, whole or not at all.  If that fails it is kept elsewhere, and the error says where."""
    save_all(profile, {path: write})


def save_all(profile: Profile, writers: Mapping[Path, Write]) -> None:
    """Saves several files: if one fails the others are still written."""
    errors = []
    for path, write in writers.items():
        data = write(profile)
        try:
            with Output(path) as output:
                output.write_bytes(data)
        except HakmemError as error:
            errors.append(str(error))
    if errors:
        raise HakmemError("; ".join([*errors, kept_elsewhere(profile)]))


def kept_elsewhere(profile: Profile) -> str:
    """Where the profile is now, as the end of a sentence."""
    data, name = to_pprof(profile), f"hakmem-{profile.header.pid}-"
    for folder in (tempfile.gettempdir(), Path.home(), Path.cwd(), "/dev/shm"):
        try:
            file, path = tempfile.mkstemp(".pb.gz", name, folder)
        except OSError:
            continue
        try:
            with os.fdopen(file, "wb") as out:
                out.write(data)
        except OSError:
            Path(path).unlink(missing_ok=True)
            continue
        return f"the profile is in {path}"
    return "there was no other place to keep the profile"


def load(path: Path) -> Profile:
    """A profile of `hakmem profile`, or a heap profile of another tool in pprof's format."""
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise HakmemError(f"cannot read {path}: {error.strerror}") from None
    return loaded(data, str(path))


def loaded(data: bytes, name: str) -> Profile:
    """`load` for a file's content."""
    if not data:
        raise HakmemError(f"{name} is empty; use a file of `hakmem profile`")
    if not is_json(data, name):
        return from_pprof(data, name)
    if data.startswith(RECORDING):
        raise is_a_recording(name)
    try:
        value = json.loads(uncompressed(data))
    except (ValueError, RecursionError, EOFError, OSError, zlib.error) as error:
        raise HakmemError(f"{name} is damaged: {error}") from None
    return from_json(value, name)


def is_json(data: bytes, name: str) -> bool:
    """Judged by its first byte, compressed or not."""
    if not data.startswith(GZIP_MAGIC):
        return data.lstrip()[:1] == b"{"
    try:
        return zlib.decompressobj(wbits=31).decompress(data, 1)[:1] == b"{"
    except zlib.error as error:
        raise HakmemError(f"{name} is damaged: {error}") from None
