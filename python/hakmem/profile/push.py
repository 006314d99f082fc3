"""Sends a profile to a continuous-profiling server, as pprof over HTTP.

http://host:4040            Pyroscope: /ingest, with the program's name and the time
http://host/any/path        anything that takes the file itself as the body of a POST"""

from __future__ import annotations

import http.client
import json
import secrets
import urllib.error
import urllib.parse
import urllib.request
from pathlib import PurePosixPath

from hakmem.base.errors import HakmemError
from hakmem.profile.model import Profile
from hakmem.profile.pprof import ALLOCATED_PREFIX, COLUMNS, LIVE_PREFIX, to_pprof

TIMEOUT_S = 20.0
ANSWER_BYTES_MAX = 300


def checked_url(url: str) -> urllib.parse.SplitResult:
    """HakmemError for another address: ask it before the work, not after it."""
    try:
        parts = urllib.parse.urlsplit(url)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_right = False
    if not is_right:
        raise HakmemError(f"{url} is not the address of a server; use one such as http://localhost:4040")
    return parts


def push(profile: Profile, url: str, timeout_s: float = TIMEOUT_S) -> None:
    """HakmemError if the server cannot be reached in time, or refuses it."""
    parts = checked_url(url)
    data = to_pprof(profile)
    if parts.path in ("", "/") and not parts.query:
        request = pyroscope_request(profile, url.rstrip("/"), data)
    else:
        request = urllib.request.Request(url, data, {"Content-Type": "application/octet-stream"})
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            answer.read(ANSWER_BYTES_MAX)
    except urllib.error.HTTPError as error:
        said = error.read(ANSWER_BYTES_MAX).decode(errors="replace").strip()
        raise HakmemError(f"{url} refused the profile: {error.code} {error.reason}: {said}") from None
    except (OSError, http.client.HTTPException) as error:
        raise HakmemError(f"cannot send the profile to {url}: {getattr(error, 'reason', error)}") from None


def pyroscope_request(profile: Profile, url: str, data: bytes) -> urllib.request.Request:
    """A form of two files: the profile, and what its columns mean."""
    header = profile.header
    program = PurePosixPath(header.command[0]).name if header.command else header.process_name
    query = {
        "name": f"{program or 'program'}{{pid={header.pid}}}",
        "from": str(int(header.began_s)),
        "until": str(int(header.ended_s)),
        "format": "pprof",
        "spyName": "hakmem",
    }
    columns = {
        f"{prefix}_{name}": {
            "units": "bytes" if unit == "bytes" else "objects",
            "display-name": f"{prefix}_{name}",
            "aggregation": "average" if prefix == LIVE_PREFIX else "sum",
        }
        for prefix in (LIVE_PREFIX, ALLOCATED_PREFIX)
        for name, unit in COLUMNS
    }
    mark = secrets.token_hex(16)
    body = b"".join(
        f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n'
        f"Content-Type: application/octet-stream\r\n\r\n".encode()
        + content
        + b"\r\n"
        for name, content in (("profile", data), ("sample_type_config", json.dumps(columns).encode()))
    )
    body += f"--{mark}--\r\n".encode()
    return urllib.request.Request(
        f"{url}/ingest?{urllib.parse.urlencode(query)}",
        body,
        {"Content-Type": f"multipart/form-data; boundary={mark}"},
    )
