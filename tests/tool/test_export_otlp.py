"""`hakmem export URL`: to a receiver that reads what arrives with OpenTelemetry's own definitions."""

import gzip
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest
from hakmem.base.errors import HakmemError
from hakmem.target.target import open_process
from hakmem.views.metrics import HakmemCollector
from hakmem.views.metrics_otlp import OtlpSender, metrics_url
from hakmem.views.metrics_sites import SiteMetrics
from prometheus_client import CollectorRegistry
from results import captured
from tool.conftest import Tool
from tool.forked import tool_environment
from tool.processes import begun, free_port
from tool.test_export import known

__all__ = ["known"]

REASON = "OpenTelemetry's libraries are not in this environment"
pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason=REASON)
service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2", reason=REASON)
definitions = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2", reason=REASON)

PATIENCE_S = 120.0


class Receiver(ThreadingHTTPServer):
    """Takes OTLP over HTTP; `answers` are the status codes of the first requests, then 200."""

    def __init__(self, *answers: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = list(answers)
        self.taken: queue.Queue[tuple[str, Any]] = queue.Queue()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        status = self.server.answers.pop(0) if self.server.answers else 200
        if status == 200:
            assert self.headers["Content-Type"] == "application/x-protobuf"
            self.server.taken.put((self.path, service.ExportMetricsServiceRequest.FromString(body)))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Not on standard error."""


def of_process(metric: Any, pid: int) -> list[Any]:  # noqa: ANN401 - protobuf's
    points = metric.sum.data_points or metric.gauge.data_points
    return [
        point
        for point in points
        if {a.key: a.value.string_value for a in point.attributes}.get("pid") == str(pid)
    ]


def test_the_metrics_are_those_of_prometheus(known: subprocess.Popen[str], tool: Tool) -> None:
    with Receiver() as receiver:
        assert tool("export", receiver.url).status == 0
        path, request = receiver.taken.get(timeout=PATIENCE_S)
    assert path == "/v1/metrics"
    (resource,) = request.resource_metrics
    assert {"service.name", "host.name"} <= {one.key for one in resource.resource.attributes}
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    collector = HakmemCollector(sites=SiteMetrics())
    collector._fleet.targets = lambda: [open_process(known.pid)]  # type: ignore[method-assign]
    expected = {family.name: family for family in collector.collect()}
    expected["hakmem_info"] = expected.pop("hakmem")

    def names_of(found: Any, given: Callable[[Any], Any]) -> set[str]:  # noqa: ANN401
        return {name for name in found if given(name)}

    ours = names_of(metrics, lambda name: of_process(metrics[name], known.pid))
    theirs = names_of(
        expected, lambda name: any(s.labels.get("pid") == str(known.pid) for s in expected[name].samples)
    )
    assert ours == theirs
    for name in ours - {"hakmem_info"}:
        assert metrics[name].description == expected[name].documentation
        assert (metrics[name].WhichOneof("data") == "sum") == (expected[name].type == "counter"), name
    refills, live = metrics["hakmem_refills"], metrics["hakmem_live_bytes"]
    assert refills.sum.is_monotonic
    assert refills.sum.aggregation_temporality == definitions.AGGREGATION_TEMPORALITY_CUMULATIVE
    assert live.unit == "By"
    assert metrics["hakmem_os_map_seconds"].unit == "s"
    for metric in (refills, live):
        (point,) = of_process(metric, known.pid)
        (sample,) = (s for s in expected[metric.name].samples if s.labels.get("pid") == str(known.pid))
        assert (point.as_double or point.as_int) == sample.value
        assert point.time_unix_nano > 0


@pytest.mark.long("2 seconds of processor time")
def test_again_and_again_past_a_refusal(known: subprocess.Popen[str]) -> None:
    words = ("--every", "100ms", "--detail", "counters")
    with Receiver(400) as receiver, begun("export", receiver.url, *words) as tool:
        for _ in range(2):
            receiver.taken.get(timeout=PATIENCE_S)
        tool.send_signal(signal.SIGINT)
        said = tool.communicate(timeout=PATIENCE_S)[1]
    assert tool.returncode == 0, said
    assert f"sending to {receiver.url}/v1/metrics" in said
    assert said.count("did not take the metrics") == 1
    assert said.count("takes the metrics again") == 1
    assert known.poll() is None


def test_a_collector_that_refuses() -> None:
    with Receiver(403) as receiver, pytest.raises(HakmemError) as caught:
        OtlpSender(receiver.url).send(CollectorRegistry())
    assert str(caught.value).startswith(f"{receiver.url}/v1/metrics did not take the metrics: ")
    assert "403" in str(caught.value)


def test_a_collector_that_is_not_there() -> None:
    with pytest.raises(HakmemError, match="did not take the metrics: Connection refused; does a collector"):
        OtlpSender(f"http://127.0.0.1:{free_port()}", timeout_s=3).send(CollectorRegistry())


def test_without_the_libraries() -> None:
    """As `pip install hakmem` leaves it, without the extra."""
    script = (
        "import sys; sys.modules['opentelemetry'] = None; from hakmem.entry import main; "
        f"sys.exit(main(['export', 'http://127.0.0.1:{free_port()}']))"
    )
    step = captured([sys.executable, "-c", script], env=tool_environment())
    assert step.returncode == 1
    assert "pip install 'hakmem[otlp]'" in step.stderr
    assert "Traceback" not in step.stderr


@pytest.mark.parametrize("url", ["http://", "ftp://host", "http://host:port", "http://h?x=1"])
def test_wrong_urls(tool: Tool, url: str) -> None:
    ended = tool("export", url)
    assert (ended.status, "is not the URL of a collector" in ended.stderr) == (2, True)


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("http://h:4318", "http://h:4318/v1/metrics"),
        ("http://h:4318/", "http://h:4318/v1/metrics"),
        ("https://h/v1/metrics", "https://h/v1/metrics"),
        ("https://h/otlp", "https://h/otlp/v1/metrics"),
    ],
)
def test_the_path_is_added(url: str, whole: str) -> None:
    assert metrics_url(url) == whole
