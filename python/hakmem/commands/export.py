"""hakmem export: metrics for Prometheus and OpenTelemetry."""

from __future__ import annotations

import re
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from hakmem.base.errors import HakmemError
from hakmem.base.signals import Stopped, ignore_broken_pipes, stoppable
from hakmem.commands.arguments import OUTPUT_OR_DASH, Parsed, duration, option, options_as, say

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from hakmem.census.snapshot import Detail
    from hakmem.views.metrics_rows import By

DEFAULT_HOST = "127.0.0.1"
PORT_MAX = 65535
PORT = re.compile("[0-9]{1,5}")


def parse_address(word: str) -> tuple[str, int]:
    """HOST:PORT, :PORT or [IPv6]:PORT."""
    host, colon, port = word.rpartition(":")
    if not colon or not PORT.fullmatch(port) or int(port) > PORT_MAX:
        raise ValueError(f"{word!r} is not an address; examples: 127.0.0.1:19100, :19100")
    return host.strip("[]") or DEFAULT_HOST, int(port)


def parse_url(word: str) -> str:
    """http://HOST:PORT or https://…, with or without a path."""
    try:
        parts = urlsplit(word)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none
        is_url = False
    if not is_url or parts.query or parts.fragment:
        raise ValueError(f"{word!r} is not the URL of a collector; example: http://127.0.0.1:4318")
    return word


@dataclass(frozen=True)
class Asked:
    listen: tuple[str, int] | None = option(
        "--listen",
        type=Parsed("address", parse_address),
        help="Serve GET /metrics at HOST:PORT, until Ctrl-C.",
    )
    textfile: Path | None = option(
        "--textfile",
        type=OUTPUT_OR_DASH,
        help="Write the metrics to this file, atomically; - is standard output.",
    )
    otlp_url: str | None = option(
        "--otlp",
        type=Parsed("url", parse_url),
        help="Send the metrics to an OpenTelemetry collector: http://HOST:4318 (needs hakmem[otlp]).",
    )
    every_s: float | None = option(
        "--every",
        type=duration(0.1),
        help="With --textfile or --otlp: repeat at this interval, until Ctrl-C.",
    )
    by: By = option(
        "--by",
        type=click.Choice(["process", "command", "container"]),
        default="process",
        help="Series for each process, or sums of all processes of a command or of a container.",
    )
    top: int | None = option(
        "--top",
        type=click.IntRange(min=1),
        help="Series for the N with most RSS; all others are one sum, labelled (others).",
    )
    quick: bool = option("--quick", help="Omit figures that need a walk of all slabs: for large heaps.")
    sites_shown: int = option(
        "--sites",
        type=click.IntRange(0, 100),
        default=20,
        help="Call sites of each process whose heap profile is on; 0: none.",
    )
    heaps_shown: int = option(
        "--heaps",
        type=click.IntRange(0, 100),
        default=20,
        help="Heaps of each process that it has made or named, by name and tag; 0: none.",
    )
    classes: bool = option("--classes", help="Also series for each size class: up to 500 for each process.")
    switches_on: bool = option(
        "--profile", help="Switch heap profiles on in these processes, and off at the end."
    )


@click.command("export")
@options_as(Asked)
def command(asked: Asked) -> None:
    """Export metrics of all hakmem processes of this machine to Prometheus or OpenTelemetry.

    The processes need no preparation. Those of other users are visible only with sudo.

    On machines with many processes --by and --top bound the number of series; sums still add up to the
    machine's.

    While a heap profile is on in a process (`hakmem profile PID --on`, or --profile here), the call sites
    that hold most are metrics too.

    \b
    Examples:
      hakmem export --listen 127.0.0.1:19100
      hakmem export --listen 127.0.0.1:19100 --by command --top 50
      hakmem export --listen 127.0.0.1:19100 --profile
      hakmem export --textfile /var/lib/node_exporter/hakmem.prom --every 15s
      hakmem export --otlp http://127.0.0.1:4318 --every 15s
    """
    from hakmem.views.metrics import HakmemCollector, registry
    from hakmem.views.metrics_rows import Grouping
    from hakmem.views.metrics_sites import SiteMetrics

    check(asked)
    sites = SiteMetrics(asked.sites_shown, switches_on=asked.switches_on, waits=asked.listen is None)
    grouping = Grouping(asked.by, asked.top, asked.sites_shown)
    detail: Detail = "counters" if asked.quick else "full"
    metrics = registry(HakmemCollector(detail, sites, grouping, asked.heaps_shown, asked.classes))
    try:
        if asked.listen is not None:
            _listen(asked.listen, metrics)
        elif asked.textfile is not None:
            _write(asked.textfile, metrics, asked.every_s)
        elif asked.otlp_url is not None:
            _send(asked.otlp_url, metrics, asked.every_s)
    except Stopped as stopped:
        if stopped.number != signal.SIGINT:
            raise
    finally:
        sites.close()


def check(asked: Asked) -> None:
    if sum(where is not None for where in (asked.listen, asked.textfile, asked.otlp_url)) != 1:
        raise click.UsageError("give one of --listen ADDRESS, --textfile FILE, --otlp URL")
    if asked.every_s is not None and asked.listen is not None:
        raise click.UsageError(
            "--every needs --textfile or --otlp; with --listen Prometheus sets the interval"
        )
    if asked.switches_on and asked.listen is None and asked.every_s is None:
        raise click.UsageError("--profile needs time to sample: give it with --listen, or with --every")
    if asked.switches_on and not asked.sites_shown:
        raise click.UsageError("--profile is for sites: leave out --sites 0")


def _listen(address: tuple[str, int], metrics: CollectorRegistry) -> None:
    from hakmem.views.metrics import serve

    ignore_broken_pipes()
    port = serve(*address, metrics)
    click.echo(f"listening on http://{authority(address[0], port)}/metrics; stop with Ctrl-C", err=True)
    with stoppable():
        threading.Event().wait()


def _write(path: Path, metrics: CollectorRegistry, every_s: float | None) -> None:
    from hakmem.views.metrics import write_textfile

    write_textfile(path, metrics)
    with stoppable():
        while every_s is not None:
            time.sleep(every_s)
            write_textfile(path, metrics)


def _send(url: str, metrics: CollectorRegistry, every_s: float | None) -> None:
    """Reports a collector that does not answer once, and tries it again."""
    from hakmem.views.metrics_otlp import TIMEOUT_MAX_S, OtlpSender

    ignore_broken_pipes()
    sender = OtlpSender(url, every_s or TIMEOUT_MAX_S)
    if every_s is None:
        sender.send(metrics)
        return
    click.echo(f"sending to {sender.url}; stop with Ctrl-C", err=True)
    failed = False
    with stoppable():
        while True:
            try:
                sender.send(metrics)
                if failed:
                    click.echo(f"{sender.url} takes the metrics again", err=True)
                failed = False
            except HakmemError as error:
                if not failed:
                    say(f"{error}; trying again")
                failed = True
            time.sleep(every_s)


def authority(host: str, port: int) -> str:
    """As in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
