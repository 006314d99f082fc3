"""Metric families that grow value by value, in the form that Prometheus's client library prints."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

PREFIX = "hakmem_"
PROCESS_LABELS = ("pid", "command")


class Families:
    """Metric families by name, created with their first value."""

    def __init__(self) -> None:
        self._families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}

    def gauge(
        self, name: str, help_text: str, labels: Sequence[str], values: Sequence[str], value: float
    ) -> None:
        """Adds one value of a gauge."""
        self._family(GaugeMetricFamily, name, help_text, labels).add_metric(values, value)

    def counter(
        self, name: str, help_text: str, labels: Sequence[str], values: Sequence[str], value: float
    ) -> None:
        """Adds one value of a counter; its name gets _total."""
        self._family(CounterMetricFamily, name, help_text, labels).add_metric(values, value)

    def _family(
        self,
        kind: type[GaugeMetricFamily | CounterMetricFamily],
        name: str,
        help_text: str,
        labels: Sequence[str],
    ) -> GaugeMetricFamily | CounterMetricFamily:
        full = PREFIX + name
        if full not in self._families:
            self._families[full] = kind(full, help_text, labels=list(labels))
        return self._families[full]

    def all(self) -> list[Metric]:
        return list(self._families.values())
