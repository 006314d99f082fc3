"""Sends a profile to a continuous-profiling server, as pprof over HTTP.

http://host:4040            Pyroscope: /ingest, with the program's name and the time
pyroscope+http://host/path  the same, where the server is below a path
parca+http://host:7070      Parca: WriteRaw, as gRPC-Web, which needs no more than HTTP/1.1
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
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from hakmem.base.errors import HakmemError
from hakmem.profile.grpc_web import GRPC_WEB, framed, status_of
from hakmem.profile.model import Header, Mode, Profile
from hakmem.profile.pprof import ALLOCATED_PREFIX, COLUMNS, LIVE_PREFIX, to_pprof
from hakmem.profile.protobuf import Message

TIMEOUT_S = 20.0
ANSWER_BYTES_MAX = 1 << 16
SAID_LENGTH_MAX = 300
SERVERS = ("pyroscope", "parca")
WRITE_RAW = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
# Pyroscope refuses other signs in the name of a service.
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_./-]")


@dataclass(frozen=True)
class Place:
    """Where a profile is sent, and how one speaks there."""

    server: str  # one of SERVERS; "" for any that takes the file
    url: str  # without user and password: errors show it
    authorization: str = ""


def place_of(address: str) -> Place:
    """HakmemError unless it is an address: call it before the work, not after it."""
    server, plus, url = address.partition("+")
    if not plus or server not in SERVERS:
        server, url = "", address
    try:
        parts = urllib.parse.urlsplit(url)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_right = False
    if not is_right:
        raise HakmemError(
            f"{address} is not the address of a server; use one such as http://localhost:4040 (Pyroscope) "
            "or parca+http://localhost:7070"
        )
    user, _, host = parts.netloc.rpartition("@")
    if not server and parts.path in ("", "/") and not parts.query:
        server = "pyroscope"
    known = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
    shown = urllib.parse.urlunsplit(parts._replace(netloc=host))
    return Place(server, shown.rstrip("/") if server else shown, f"Basic {known}" if user else "")


def push(profile: Profile, address: str, timeout_s: float = TIMEOUT_S) -> None:
    """HakmemError if the server cannot be reached in time, or refuses it."""
    place = place_of(address)
    request = request_for(profile, place)
    if place.authorization:
        request.add_header("Authorization", place.authorization)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            body = answer_of(answer, time.monotonic() + timeout_s)
            refusal = status_of(answer.headers, body) if place.server == "parca" else ""
    except urllib.error.HTTPError as error:
        said = error.read(SAID_LENGTH_MAX).decode(errors="replace").strip()
        refusal = f"{error.code} {error.reason}: {said}"
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        why = getattr(reason, "strerror", None) or reason
        raise HakmemError(f"cannot send the profile to {place.url}: {why}") from None
    if refusal:
        raise HakmemError(f"{place.url} refused the profile: {refusal}")


def answer_of(answer: http.client.HTTPResponse, end_s: float) -> bytes:
    """The start of it; TimeoutError if it has not come in time, and also if it goes on and on."""
    body = b""
    while len(body) < ANSWER_BYTES_MAX and (piece := answer.read1(ANSWER_BYTES_MAX)):
        body += piece
        if time.monotonic() > end_s:
            raise TimeoutError("timed out")
    return body


def request_for(profile: Profile, place: Place) -> urllib.request.Request:
    if place.server == "pyroscope":
        return pyroscope_request(profile, place.url)
    if place.server == "parca":
        return parca_request(profile, place.url)
    return urllib.request.Request(place.url, to_pprof(profile), {"Content-Type": "application/octet-stream"})


def program_of(header: Header) -> str:
    program = PurePosixPath(header.command[0]).name if header.command else header.process_name
    return program or "program"


def pyroscope_request(profile: Profile, url: str) -> urllib.request.Request:
    """A form of two files: the profile, and what its columns mean.

    Without `format=pprof`: with that the server takes the form itself for the profile."""
    header = profile.header
    query = {
        "name": f"{NOT_IN_NAMES.sub('_', program_of(header))}{{pid={header.pid}}}",
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


def parca_request(profile: Profile, url: str) -> urllib.request.Request:
    """WriteRaw of one series: `memory`, with the labels `job` and `pid`."""
    header = profile.header
    if header.mode is not Mode.ALLOCATED:
        # A duration makes Parca add up the profiles of a time span; live bytes are of one moment.
        profile = replace(profile, header=replace(header, began_s=header.ended_s))
    labels = Message()
    for name, value in (("__name__", "memory"), ("job", program_of(header)), ("pid", str(header.pid))):
        text = value.encode(errors="replace")
        labels.nested(1, Message().data(1, name.encode()).data(2, text))
    series = Message().nested(1, labels).nested(2, Message().data(1, to_pprof(profile)))
    return urllib.request.Request(
        url + WRITE_RAW,
        framed(bytes(Message().nested(2, series))),
        {"Content-Type": GRPC_WEB, "X-Grpc-Web": "1"},
    )
