"""hakmem export: metrics for Prometheus."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakmem.base.signals import Stopped, stoppable
from hakmem.commands.arguments import OUTPUT_OR_DASH, Parsed, argument, duration, option, options_as

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from hakmem.census.snapshot import Detail
    from hakmem.views.metrics_rows import By

DEFAULT_HOST = "127.0.0.1"
PORT_MAX = 65535
Address = tuple[str, int]


def parse_destination(word: str) -> Address | Path:
    """HOST:PORT, :PORT or [IPv6]:PORT; else a file."""
    if "://" in word:
        raise ValueError("give HOST:PORT: an OpenTelemetry collector fetches by its prometheus receiver")
    host, colon, port = word.rpartition(":")
    if "/" in word or not port.isdecimal():
        return Path(OUTPUT_OR_DASH.convert(word, None, None))
    if not colon or int(port) > PORT_MAX:
        raise ValueError(f"{word!r} is not an address; examples: 127.0.0.1:19100, :19100; a file is ./{word}")
    return host.strip("[]") or DEFAULT_HOST, int(port)


@dataclass(frozen=True)
class Asked:
    destination: Address | Path = argument(
        type=Parsed("destination", parse_destination), metavar="HOST:PORT|FILE"
    )
    every_s: float | None = option(
        "--every",
        type=duration(0.1),
        help="With a file: repeat at this interval, until Ctrl-C.",
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
    detail: str = option(
        "--detail",
        type=click.Choice(["counters", "full", "classes"]),
        default="full",
        help="counters: omit figures that need a walk of all slabs, for large heaps; classes: also series "
        "for each size class, up to 500 for each process.",
    )
    shown: int = option(
        "--each",
        type=click.IntRange(0, 100),
        default=20,
        help="Sites of each process whose heap profile is on, and heaps that it has made or named; 0: none.",
    )
    switches_on: bool = option(
        "--profile", help="Switch heap profiles on in these processes, and off at the end."
    )


@click.command("export")
@options_as(Asked)
def command(asked: Asked) -> None:
    """Export metrics of all hakmem processes of this machine to Prometheus.

    HOST:PORT serves GET /metrics until Ctrl-C. FILE is written atomically, - is standard output.

    The processes need no preparation. Those of other users are visible only with sudo.

    On machines with many processes --by and --top bound the number of series; sums still add up to the
    machine's.

    While a heap profile is on in a process (`hakmem profile PID --on`, or --profile here), the call sites
    that hold most are metrics too.

    \b
    Examples:
      hakmem export 127.0.0.1:19100
      hakmem export 127.0.0.1:19100 --by command --top 50
      hakmem export 127.0.0.1:19100 --profile
      hakmem export /var/lib/node_exporter/hakmem.prom --every 15s
    """
    from hakmem.views.metrics import HakmemCollector, registry
    from hakmem.views.metrics_rows import Grouping
    from hakmem.views.metrics_sites import SiteMetrics

    check(asked)
    destination = asked.destination
    sites = SiteMetrics(asked.shown, switches_on=asked.switches_on, waits=not isinstance(destination, tuple))
    grouping = Grouping(asked.by, asked.top, asked.shown)
    detail: Detail = "counters" if asked.detail == "counters" else "full"
    metrics = registry(HakmemCollector(detail, sites, grouping, asked.detail == "classes"))
    try:
        if isinstance(destination, tuple):
            _listen(destination, metrics)
        else:
            _write(destination, metrics, asked.every_s)
    except Stopped as stopped:
        if stopped.number != signal.SIGINT:
            raise
    finally:
        sites.close()


def check(asked: Asked) -> None:
    is_served = isinstance(asked.destination, tuple)
    if asked.every_s is not None and is_served:
        raise click.UsageError("--every is for a file; at HOST:PORT Prometheus sets the interval")
    if asked.switches_on and not is_served and asked.every_s is None:
        raise click.UsageError("--profile needs time to sample: give it with HOST:PORT, or with --every")
    if asked.switches_on and not asked.shown:
        raise click.UsageError("--profile is for sites: leave out --each 0")


def _listen(address: tuple[str, int], metrics: CollectorRegistry) -> None:
    from hakmem.views.metrics import serve

    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a client that hangs up must not end it
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


def authority(host: str, port: int) -> str:
    """As in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
