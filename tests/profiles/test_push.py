"""Profiles pushed to a server: what arrives there, and what a server that refuses does."""

import base64
import email
import email.policy
import gzip
import json
import re
import socket
import struct
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hakmem.base.errors import HakmemError
from hakmem.profile.grpc_web import status_of
from hakmem.profile.model import Mode, Profile
from hakmem.profile.pprof_reader import from_pprof
from hakmem.profile.protobuf import Value, as_data, as_number, fields_of, numbers_of
from hakmem.profile.push import push
from hakmem.profile.sites import site_table


class Receiver(HTTPServer):
    """Keeps what it is sent; answers with `status`, `kind` and `answer`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[tuple[str, HTTPMessage, bytes]] = []
        self.status = 200
        self.kind = "text/plain"
        self.answer = b"the tenant has no more room\n"
        self.drips_until: threading.Event | None = None  # it answers for long, a byte at a time

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, self.headers, body))
        self.send_response(self.server.status)
        self.send_header("Content-Type", self.server.kind)
        self.end_headers()
        self.wfile.write(self.server.answer)
        if is_over := self.server.drips_until:
            with suppress(OSError):
                for _ in range(3000):
                    self.wfile.write(b"x")
                    if is_over.wait(0.01):
                        break

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Receiver]:
    with Receiver() as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield http
        http.shutdown()
        thread.join()


def pyroscope_parts(server: Receiver) -> tuple[dict[str, str], dict[str, bytes]]:
    """What Pyroscope's handler of /ingest (pkg/ingester/pyroscope/ingest_handler.go) finds: the
    query, and the files of the form.  It looks at `format` first; only without it for a form."""
    [(path, headers, body)] = server.received
    place, _, query = path.partition("?")
    assert place == "/ingest"
    asked = {name: value for name, [value] in urllib.parse.parse_qs(query).items()}
    assert "format" not in asked, "with format=pprof the server takes the form itself for the profile"
    assert re.fullmatch(r"[A-Za-z0-9_./-]+\{[a-z]+=\d+\}", asked["name"]), "ValidateServiceName"
    kind = headers["Content-Type"]
    assert kind.startswith("multipart/form-data")
    message = email.message_from_bytes(
        f"Content-Type: {kind}\r\n\r\n".encode() + body, policy=email.policy.HTTP
    )
    parts = {
        str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True)
        for part in message.iter_parts()  # type: ignore[attr-defined]
    }
    assert set(parts) == {"profile", "sample_type_config"}
    return asked, parts


def test_pyroscope_is_sent_a_form(named: Profile, server: Receiver) -> None:
    push(named, server.url)
    asked, parts = pyroscope_parts(server)
    assert asked["name"] == "server{pid=1234}"
    assert (asked["from"], asked["until"]) == ("1800000000", "1800000010")
    back = from_pprof(parts["profile"], "sent")
    assert site_table(back).total_bytes == pytest.approx(site_table(named).total_bytes)
    assert json.loads(parts["sample_type_config"])["inuse_space"]["units"] == "bytes"


def test_pyroscope_takes_any_program(named: Profile, server: Receiver) -> None:
    """Its names of services have letters, digits and _./- only; others it refuses."""
    named.header.command = ["/opt/my app/g++ {x=1}"]
    push(named, f"pyroscope+{server.url}/profiles/")
    server.received[0] = (server.received[0][0].removeprefix("/profiles"), *server.received[0][1:])
    assert pyroscope_parts(server)[0]["name"] == "g____x_1_{pid=1234}"


def test_an_address_with_a_path_is_sent_the_file(named: Profile, server: Receiver) -> None:
    push(named, f"{server.url}/api/profiles?service=x")
    [(path, headers, body)] = server.received
    assert (path, headers["Content-Type"]) == ("/api/profiles?service=x", "application/octet-stream")
    assert from_pprof(body, "sent").header == named.header


def test_a_user_and_a_password_are_sent_and_not_shown(named: Profile, server: Receiver) -> None:
    url = server.url.replace("://", "://joe:s%40crit@")
    push(named, url)
    expected = base64.b64encode(b"joe:s@crit").decode()
    assert server.received[0][1]["Authorization"] == f"Basic {expected}"
    server.status = 401
    with pytest.raises(HakmemError, match="refused the profile: 401") as told:
        push(named, url)
    assert "crit" not in str(told.value)


# ---- Parca ------------------------------------------------------------------------------------------


def grpc_web(status: int, message: str = "") -> bytes:
    """An answer's frames: an empty message, and the trailer."""
    trailer = f"grpc-status: {status}\r\ngrpc-message: {urllib.parse.quote(message)}\r\n".encode()
    return struct.pack(">BI", 0, 0) + struct.pack(">BI", 0x80, len(trailer)) + trailer


def message_of(data: bytes | memoryview) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for field, value in fields_of(memoryview(data)):
        found.setdefault(field, []).append(bytes(as_data(value)))
    return found


def parca_profile(body: bytes) -> tuple[dict[str, str], bytes]:
    """The labels and the file in a call of WriteRaw, with the checks of Parca's normalizer."""
    flags, length = struct.unpack_from(">BI", body)
    assert (flags, length) == (0, len(body) - 5)
    [series] = message_of(body[5:])[2]
    fields = message_of(series)
    labels = {}
    for one in message_of(fields[1][0])[1]:
        pair = message_of(one)
        name = pair[1][0].decode()
        assert re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name)
        assert name not in labels
        labels[name] = pair[2][0].decode()
    assert labels["__name__"], "missing __name__ label"
    [raw] = fields[2]
    return labels, message_of(raw)[1][0]


def check_as_parca(file: bytes) -> None:
    """pkg/normalizer/validate.go: tables are numbered from one on in their order, indices are inside."""
    profile: dict[int, list[Value]] = {}
    for field, value in fields_of(memoryview(gzip.decompress(file))):
        profile.setdefault(field, []).append(value)
    texts = [bytes(as_data(text)) for text in profile[6]]
    assert texts[0] == b""
    for table in (3, 4, 5):
        numbers = [dict(fields_of(as_data(row)))[1] for row in profile.get(table, [])]
        assert numbers == list(range(1, len(numbers) + 1))
    for row in profile[2]:
        sample: dict[int, list[Value]] = {}
        for field, value in fields_of(as_data(row)):
            sample.setdefault(field, []).append(value)
        values = [number for part in sample[2] for number in numbers_of(part)]
        assert len(values) == len(profile[1])
        for label in sample.get(3, []):
            assert 0 < as_number(dict(fields_of(as_data(label)))[1]) < len(texts)
        places = [number for part in sample.get(1, []) for number in numbers_of(part)]
        assert all(0 < place <= len(profile[4]) for place in places)


def test_parca_is_called_by_grpc_web(named: Profile, server: Receiver) -> None:
    server.kind, server.answer = "application/grpc-web+proto", grpc_web(0)
    push(named, f"parca+{server.url}")
    [(path, headers, body)] = server.received
    assert path == "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
    assert headers["Content-Type"] == "application/grpc-web+proto"
    labels, file = parca_profile(body)
    assert labels == {"__name__": "memory", "job": "server", "pid": "1234"}
    check_as_parca(file)
    sent = from_pprof(file, "sent")
    assert site_table(sent).total_bytes == pytest.approx(site_table(named).total_bytes)
    # Of one moment: a duration would make Parca add up what is live at several.
    assert (sent.header.began_s, sent.header.seconds) == (named.header.ended_s, 0)
    named.header.mode, named.allocated = Mode.ALLOCATED, named.samples
    push(named, f"parca+{server.url}/")
    assert from_pprof(parca_profile(server.received[1][2])[1], "sent").header.seconds == 10


def test_what_parca_refuses_is_told(named: Profile, server: Receiver) -> None:
    """It answers 200, and the reason is in the trailer."""
    server.kind, server.answer = "application/grpc-web+proto", grpc_web(3, "invalid profile: 7 %")
    with pytest.raises(HakmemError, match=r"refused the profile: invalid profile: 7 % \(gRPC status 3\)"):
        push(named, f"parca+{server.url}")
    server.answer = b""
    with pytest.raises(HakmemError, match="is it a Parca server"):
        push(named, f"parca+{server.url}")
    server.kind, server.answer = "text/html", b"<html>the page of Parca, or of another</html>"
    with pytest.raises(HakmemError, match="answers text/html and not as gRPC-Web: is it a Parca server"):
        push(named, f"parca+{server.url}")


@pytest.mark.parametrize(
    "body", [b"", b"\0", b"\x80\0\0\0\xff", b"\x80\xff\xff\xff\xffgrpc-status", b"\0" * 99]
)
def test_damaged_answers_are_no_success(body: bytes) -> None:
    headers = email.message_from_string("Content-Type: application/grpc-web+proto\n\n")
    assert "is it a Parca server" in status_of(headers, body)
    headers["Grpc-Status"] = "16"  # an answer without a body has it as a header
    assert status_of(headers, body) == "without a reason (gRPC status 16)"


# ---- refusals -----------------------------------------------------------------------------------------


def test_what_a_server_refuses_is_told(named: Profile, server: Receiver) -> None:
    server.status = 422
    with pytest.raises(HakmemError, match=r"refused the profile: 422 .*: the tenant has no more room"):
        push(named, server.url)


def test_a_server_that_is_not_there_or_says_nothing(named: Profile) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(HakmemError, match=r"cannot send the profile to .*timed out"):
            push(named, url, timeout_s=0.2)
    with pytest.raises(HakmemError, match=r"cannot send the profile to .*refused"):
        push(named, url)


def test_a_server_that_answers_for_ever(named: Profile, server: Receiver) -> None:
    server.drips_until = threading.Event()
    try:
        with pytest.raises(HakmemError, match=r"cannot send the profile to .*timed out"):
            push(named, server.url, timeout_s=0.3)
    finally:
        server.drips_until.set()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:4040",
        "ftp://x",
        "http://",
        "file:///etc/passwd",
        "http://x:y",
        "parca+",
        "parca+ftp://x",
        "jaeger+http://x",
        "http://u:p@",
        "parca+localhost:7070",
    ],
)
def test_other_addresses(named: Profile, url: str) -> None:
    with pytest.raises(HakmemError, match="is not the address of a server"):
        push(named, url)
