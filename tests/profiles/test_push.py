"""Profiles pushed to a server: what arrives there, and what a server that refuses does."""

import base64
import email
import email.policy
import gzip
import json
import re
import socket
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hakmem.base.errors import HakmemError
from hakmem.profile.model import Profile
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


def check_tables(file: bytes) -> None:
    """As servers check them: tables are numbered from one on in their order, indices are inside."""
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


def test_pyroscope_is_sent_a_form(named: Profile, server: Receiver) -> None:
    push(named, server.url)
    asked, parts = pyroscope_parts(server)
    assert asked["name"] == "server{pid=1234}"
    assert (asked["from"], asked["until"]) == ("1800000000", "1800000010")
    check_tables(parts["profile"])
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


OTHERS = """
localhost:4040 ftp://x http:// file:///etc/passwd http://x:y http://u:p@ jaeger+http://x
pyroscope+ pyroscope+ftp://x pyroscope+localhost:4040 parca+http://localhost:7070
"""


@pytest.mark.parametrize("url", ["", *OTHERS.split()])
def test_other_addresses(named: Profile, url: str) -> None:
    with pytest.raises(HakmemError, match="is not the address of a server"):
        push(named, url)
