"""hakmem export: metrics for Prometheus."""

from __future__ import annotations

import re
import signal
import threading
import time
from pathlib import Path

import click

from hakmem.base.durations import Duration

DEFAULT_HOST = "127.0.0.1"
PORT_MAX = 65535
PORT = re.compile("[0-9]{1,5}")


class Address(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has none
    """HOST:PORT, :PORT or [IPv6]:PORT."""

    name = "address"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Called by click."""
        if isinstance(value, tuple):
            return value
        host, colon, port = value.rpartition(":")
        if not colon or not PORT.fullmatch(port) or int(port) > PORT_MAX:
            self.fail(f"{value!r} is not an address; examples: 127.0.0.1:9100, :9100", param, ctx)
        return host.strip("[]") or DEFAULT_HOST, int(port)


@click.command("export")
@click.option("--listen", type=Address(), help="Serve GET /metrics at HOST:PORT, until Ctrl-C.")
@click.option(
    "--textfile",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="Write the metrics to this file, atomically; - is standard output.",
)
@click.option(
    "--every", "every_s", type=Duration(0.1), help="With --textfile: write at this interval, until Ctrl-C."
)
@click.option("--quick", is_flag=True, help="Omit what needs a walk over all slabs: for very large heaps.")
@click.option(
    "--sites",
    "sites_shown",
    type=click.IntRange(0, 100),
    default=20,
    show_default=True,
    help="Call sites of each process whose heap profile is on; 0: none.",
)
@click.option(
    "--profile",
    "switches_on",
    is_flag=True,
    help="Switch heap profiles on in these processes, and off at the end.",
)
def command(
    listen: tuple[str, int] | None,
    textfile: Path | None,
    every_s: float | None,
    quick: bool,
    sites_shown: int,
    switches_on: bool,
) -> None:
    """Export metrics of all hakmem processes of this machine in the Prometheus and OpenMetrics formats.

    The processes need no preparation. Those of other users are visible only with sudo.

    While a heap profile is on in a process (`hakmem profile PID --on`, or --profile here), the call sites
    that hold most are metrics too.

    \b
    Examples:
      hakmem export --listen 127.0.0.1:9100
      hakmem export --listen 127.0.0.1:9100 --profile
      hakmem export --textfile /var/lib/node_exporter/hakmem.prom --every 15s
    """
    from hakmem.base.signals import Stopped, ignore_broken_pipes, stoppable
    from hakmem.views.metrics import registry, serve, write_textfile
    from hakmem.views.metrics_sites import SiteMetrics

    if (listen is None) == (textfile is None):
        raise click.UsageError("give either --listen ADDRESS or --textfile FILE")
    if every_s is not None and textfile is None:
        raise click.UsageError("--every needs --textfile; with --listen Prometheus sets the interval")
    if switches_on and listen is None and every_s is None:
        raise click.UsageError("--profile needs time to sample: give it with --listen, or with --every")
    if switches_on and not sites_shown:
        raise click.UsageError("--profile is for sites: leave out --sites 0")
    sites = SiteMetrics(sites_shown, switches_on=switches_on, waits=textfile is not None)
    metrics = registry("counters" if quick else "full", sites)
    try:
        if listen is not None:
            ignore_broken_pipes()
            port = serve(*listen, metrics)
            click.echo(
                f"listening on http://{authority(listen[0], port)}/metrics; stop with Ctrl-C", err=True
            )
            with stoppable():
                threading.Event().wait()
        elif textfile is not None:
            write_textfile(textfile, metrics)
            with stoppable():
                while every_s is not None:
                    time.sleep(every_s)
                    write_textfile(textfile, metrics)
    except Stopped as stopped:
        if stopped.number != signal.SIGINT:
            raise
    finally:
        sites.close()


def authority(host: str, port: int) -> str:
    """As in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
