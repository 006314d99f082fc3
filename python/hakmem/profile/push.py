"""Sends a profile to a continuous-profiling server, as pprof over HTTP.

http://host:4040            Pyroscope: /ingest, with the program's name and the time
pyroscope+http://host/path  the same, where the server is below a path
http://host/any/path        anything that takes the file itself as the body of a POST

https in the same way; `user:password@` before the host becomes basic authentication."""

from __future__ import annotations

import base64
import http.client
import json
import re
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

from hakmem.base.errors import HakmemError
from hakmem.profile.model import Profile
from hakmem.profile.pprof import ALLOCATED_PREFIX, COLUMNS, LIVE_PREFIX, to_pprof

TIMEOUT_S = 20.0
ANSWER_BYTES_MAX = 1 << 16
SAID_LENGTH_MAX = 300
PYROSCOPE = "pyroscope+"  # before an address
# Pyroscope refuses other signs in the name of a service.
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_./-]")


@dataclass(frozen=True)
class Place:
    """Where a profile is sent, and how one speaks there."""

    is_pyroscope: bool  # else any that takes the file
    url: str  # without user and password: errors show it
    authorization: str = ""


def place_of(address: str) -> Place:
    """HakmemError unless it is an address: call it before the work, not after it."""
    url = address.removeprefix(PYROSCOPE)
    try:
        parts = urllib.parse.urlsplit(url)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_right = False
    if not is_right:
        raise HakmemError(
            f"{address} is not the address of a server; use one such as http://localhost:4040 (Pyroscope)"
        )
    user, _, host = parts.netloc.rpartition("@")
    is_pyroscope = url != address or (parts.path in ("", "/") and not parts.query)
    known = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
    shown = urllib.parse.urlunsplit(parts._replace(netloc=host))
    shown = shown.rstrip("/") if is_pyroscope else shown
    return Place(is_pyroscope, shown, f"Basic {known}" if user else "")


def push(profile: Profile, address: str, timeout_s: float = TIMEOUT_S) -> None:
    """HakmemError if the server cannot be reached in time, or refuses it."""
    place = place_of(address)
    if place.is_pyroscope:
        request = pyroscope_request(profile, place.url)
    else:
        file = to_pprof(profile)
        request = urllib.request.Request(place.url, file, {"Content-Type": "application/octet-stream"})
    if place.authorization:
        request.add_header("Authorization", place.authorization)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            read_to_end(answer, time.monotonic() + timeout_s)
            return
    except urllib.error.HTTPError as error:
        said = error.read(SAID_LENGTH_MAX).decode(errors="replace").strip()
        refusal = f"{error.code} {error.reason}: {said}"
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        why = getattr(reason, "strerror", None) or reason
        raise HakmemError(f"cannot send the profile to {place.url}: {why}") from None
    raise HakmemError(f"{place.url} refused the profile: {refusal}")


def read_to_end(answer: http.client.HTTPResponse, end_s: float) -> None:
    """TimeoutError if it has not come in time, and also if it goes on and on."""
    left_bytes = ANSWER_BYTES_MAX
    while left_bytes > 0 and (piece := answer.read1(left_bytes)):
        left_bytes -= len(piece)
        if time.monotonic() > end_s:
            raise TimeoutError("timed out")


def pyroscope_request(profile: Profile, url: str) -> urllib.request.Request:
    """A form of two files: the profile, and what its columns mean.

    Without `format=pprof`: with that the server takes the form itself for the profile."""
    header = profile.header
    query = {
        "name": f"{NOT_IN_NAMES.sub('_', header.program or 'program')}{{pid={header.pid}}}",
        "from": str(int(header.began_s)),
        "until": str(int(header.ended_s)),
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
        for name, content in (
            ("profile", to_pprof(profile)),
            ("sample_type_config", json.dumps(columns).encode()),
        )
    )
    body += f"--{mark}--\r\n".encode()
    return urllib.request.Request(
        f"{url}/ingest?{urllib.parse.urlencode(query)}",
        body,
        {"Content-Type": f"multipart/form-data; boundary={mark}"},
    )
