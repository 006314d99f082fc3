"""hakmem's metrics for an OpenTelemetry collector: OTLP over HTTP, by OpenTelemetry's own libraries.

The metrics are those that Prometheus would read, under the same names: a gauge is a Gauge, a counter a
cumulative, monotonic Sum whose name comes without _total.  When a collector goes on to Prometheus with them,
it adds _total again, and the panels and alerts of packaging/ work unchanged.  Credentials, certificates
and compression come from the variables that OpenTelemetry defines (OTEL_EXPORTER_OTLP_HEADERS …)."""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from hakmem import __version__
from hakmem.base.errors import HakmemError

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric as OtlpMetric
    from opentelemetry.sdk.metrics.export import MetricsData

PATH = "/v1/metrics"
LIBRARY = "opentelemetry"
TIMEOUT_MAX_S = 10.0
UNITS = {"_bytes": "By", "_seconds": "s"}  # a collector adds the unit to a name that lacks it
TOTAL = "_total"
TRANSIENT = re.compile("Transient error (.*) encountered while", re.DOTALL)  # it is tried again
# Within others' classes.
CONNECTION = re.compile(r"Max retries exceeded.*\[Errno -?\d+\] ([^\"')]+)", re.DOTALL)
UNKNOWN_START = 0  # in OTLP: when the counter began is not known


class OtlpSender:
    """Where metrics are sent to.  `timeout_s` is for one delivery, with its repetitions."""

    def __init__(self, url: str, timeout_s: float = TIMEOUT_MAX_S) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        except ModuleNotFoundError:
            raise HakmemError(
                "a collector needs OpenTelemetry's libraries: pip install 'hakmem[otlp]'"
            ) from None
        self.url = metrics_url(url)
        self._complaints = _FirstComplaint()
        logger = logging.getLogger(LIBRARY)
        logger.propagate = False
        logger.addHandler(self._complaints)
        self._exporter = OTLPMetricExporter(endpoint=self.url, timeout=min(timeout_s, TIMEOUT_MAX_S))

    def send(self, metrics: CollectorRegistry) -> None:
        """One delivery.  Raises HakmemError when the collector did not take it."""
        from opentelemetry.sdk.metrics.export import MetricExportResult

        self._complaints.text = ""
        result = self._exporter.export(as_otlp(metrics.collect(), time.time_ns()))
        if result is not MetricExportResult.SUCCESS:
            said = self._complaints.text.rstrip(".") or "no reason given"
            raise HakmemError(f"{self.url} did not take the metrics: {said}; does a collector listen there?")


class _FirstComplaint(logging.Handler):
    """OpenTelemetry logs why a delivery failed, and returns only that it did."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        cause = CONNECTION.search(said) or TRANSIENT.match(said)
        self.text = self.text or (cause[1] if cause else said)


def metrics_url(url: str) -> str:
    """Adds the path that OTLP prescribes, if it is missing."""
    bare = url.rstrip("/")
    return bare if urlsplit(bare).path.endswith(PATH) else bare + PATH


def as_otlp(families: Iterable[Metric], time_ns: int) -> MetricsData:
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    host = socket.gethostname()
    resource = Resource({"service.name": "hakmem", "service.instance.id": host, "host.name": host})
    metrics = [_metric(family, time_ns) for family in families if family.samples]
    scope = ScopeMetrics(InstrumentationScope("hakmem", __version__), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Metric, time_ns: int) -> OtlpMetric:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, NumberDataPoint, Sum
    from opentelemetry.sdk.metrics.export import Metric as OtlpMetric

    name = family.samples[0].name  # that of hakmem_info differs from its family's
    points = [NumberDataPoint(one.labels, UNKNOWN_START, time_ns, float(one.value)) for one in family.samples]
    unit = next((unit for suffix, unit in UNITS.items() if family.name.endswith(suffix)), "")
    if family.type == "counter":
        data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        return OtlpMetric(name.removesuffix(TOTAL), family.documentation, unit, data)
    return OtlpMetric(name, family.documentation, unit, Gauge(points))
