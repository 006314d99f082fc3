"""Profiles pushed to a server: what arrives there, and what a server that refuses does."""

from __future__ import annotations

import email
import email.policy
import json
import socket
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hakmem.base.errors import HakmemError
from hakmem.profile.model import Profile
from hakmem.profile.pprof_reader import from_pprof
from hakmem.profile.push import push
from hakmem.profile.sites import site_table


class Receiver(HTTPServer):
    """Keeps what it is sent; answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[tuple[str, str, bytes]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, self.headers["Content-Type"], body))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(b"the tenant has no more room\n")

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


def test_pyroscope_is_sent_a_form(named: Profile, server: Receiver) -> None:
    push(named, server.url)
    [(path, kind, body)] = server.received
    place, _, query = path.partition("?")
    assert place == "/ingest"
    asked = {name: value for name, [value] in urllib.parse.parse_qs(query).items()}
    assert asked["name"] == "server{pid=1234}"
    assert (asked["from"], asked["until"], asked["format"]) == ("1800000000", "1800000010", "pprof")
    message = email.message_from_bytes(
        f"Content-Type: {kind}\r\n\r\n".encode() + body, policy=email.policy.HTTP
    )
    parts = {
        part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
        for part in message.iter_parts()  # type: ignore[attr-defined]
    }
    back = from_pprof(parts["profile"], "sent")
    assert site_table(back).total_bytes == pytest.approx(site_table(named).total_bytes)
    assert json.loads(parts["sample_type_config"])["inuse_space"]["units"] == "bytes"


def test_an_address_with_a_path_is_sent_the_file(named: Profile, server: Receiver) -> None:
    push(named, f"{server.url}/api/profiles?service=x")
    [(path, kind, body)] = server.received
    assert (path, kind) == ("/api/profiles?service=x", "application/octet-stream")
    assert from_pprof(body, "sent").header == named.header


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


@pytest.mark.parametrize(
    "url", ["", "localhost:4040", "ftp://x", "http://", "file:///etc/passwd", "http://x:y"]
)
def test_other_addresses(named: Profile, url: str) -> None:
    with pytest.raises(HakmemError, match="is not the address of a server"):
        push(named, url)
