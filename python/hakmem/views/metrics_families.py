"""Metric families that grow value by value, in the form that Prometheus's client library prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from hakmem.census.catalogue import Figure

PREFIX = "hakmem_"


class Families:
    """Metric families by name, created with their first value; a counter's name gets _total."""

    def __init__(self) -> None:
        self._families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}

    def add(self, figure: Figure, values: Sequence[str], value: float) -> None:
        """One value; `values`: of the figure's labels."""
        if figure.name not in self._families:
            kind = CounterMetricFamily if figure.role == "counter" else GaugeMetricFamily
            made = kind(PREFIX + figure.name, figure.help, labels=list(figure.labels))
            self._families[figure.name] = made
        self._families[figure.name].add_metric(values, value)

    def add_all(self, figures: Iterable[Figure], record: object, values: Sequence[str]) -> None:
        """The figures of a record that are known."""
        for figure in figures:
            value = figure.of(record)
            if value is not None:
                self.add(figure, values, value)

    def all(self) -> list[Metric]:
        return list(self._families.values())
