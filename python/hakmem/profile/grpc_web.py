"""One call of gRPC-Web, the form of gRPC that needs no more than HTTP/1.1: a message in a frame is sent, and
frames come back, the last of which has the status."""

from __future__ import annotations

import struct
import urllib.parse
from email.message import Message as Headers

GRPC_WEB = "application/grpc-web+proto"
FRAME = struct.Struct(">BI")  # flags, length
IS_TRAILER = 0x80


def framed(message: bytes) -> bytes:
    """The body of the request."""
    return FRAME.pack(0, len(message)) + message


def status_of(headers: Headers, body: bytes) -> str:
    """Why the call failed, "" if it did not: by the last frame, or by the header of an answer without one."""
    said = {name.lower(): value for name, value in headers.items()} | _trailer(body)
    status = said.get("grpc-status")
    if not status:
        return f"it answers {headers.get_content_type()} and not as gRPC-Web: is it a Parca server?"
    if status == "0":
        return ""
    return (
        f"{urllib.parse.unquote(said.get('grpc-message', '')) or 'without a reason'} (gRPC status {status})"
    )


def _trailer(body: bytes) -> dict[str, str]:
    """Its lines, by name in small letters; empty if there is none."""
    at = 0
    while at + FRAME.size <= len(body):
        flags, length = FRAME.unpack_from(body, at)
        at += FRAME.size
        if flags & IS_TRAILER and at + length <= len(body):
            rows = body[at : at + length].decode(errors="replace").splitlines()
            pairs = (row.partition(":") for row in rows)
            return {name.strip().lower(): value.strip() for name, _, value in pairs}
        at += length
    return {}
