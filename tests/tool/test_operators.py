"""packaging/grafana and packaging/prometheus: every metric that they name is one that `hakmem export` prints,
and Prometheus's own tool reads every query.  With PACKAGES set a real Prometheus answers them."""

import json
import os
import re
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hakmem.census.catalogue import HEAP_COUNTERS, HEAP_GAUGES, LIMITS
from results import Find, captured
from tool.conftest import Start
from tool.forked import tool_environment
from tool.processes import TOOL, free_port, hakmem, running, wait_until
from tool.test_export import families

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "packaging" / "grafana" / "hakmem.json"
ALERTS = ROOT / "packaging" / "prometheus" / "alerts.yml"
GUIDE = ROOT / "docs" / "guides" / "PROMETHEUS.md"
NAME = re.compile(r"\bhakmem_\w+")
# Only of processes whose cgroup has a limit, which a test cannot count on.
OF_CGROUPS = {f"hakmem_{figure.name}" for figure in LIMITS if figure.name.startswith("cgroup")}
# Only of programs that have made heaps; tests/tool/test_heaps.py looks at those.
OF_HEAPS = {f"hakmem_{figure.name}" for figure in HEAP_GAUGES} | {
    f"hakmem_{figure.name}_total" for figure in HEAP_COUNTERS
}
OF_CLASSES = "hakmem_class_"  # with --detail classes only
VARIABLES = {"$instance": ".*", "$command": ".*", "$pid": ".*", "$__rate_interval": "4s"}
PATIENCE_S = 60.0


def panels() -> list[dict[str, Any]]:
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def queries() -> list[tuple[str, str]]:
    """The title of a panel, and a query of it as Grafana sends it."""
    found = []
    for panel in panels():
        for one in panel["targets"]:
            text = one["expr"]
            for name, value in VARIABLES.items():
                text = text.replace(name, value)
            assert "$" not in text, one["expr"]
            found.append((panel["title"], text))
    return found


@pytest.fixture
def limited_sites(sites_program: Path, lib: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has all that can be exported: limits, and sites of a heap profile."""
    limits = {"HAKMEM_LIMIT_SOFT": "512M", "HAKMEM_LIMIT_HARD": "1G"}
    with running([sites_program], lib, limits) as process:
        hakmem("profile", process.pid, "--on")
        yield process


def test_every_metric_is_one_that_is_exported(limited_sites: subprocess.Popen[str], tmp_path: Path) -> None:
    path = tmp_path / "hakmem.prom"

    def exported() -> set[str] | None:
        hakmem("export", path, "--detail", "classes")
        samples = [s for family in families(path.read_text()).values() for s in family.samples]
        ours = {
            s.name for s in samples if s.labels.get("pid", str(limited_sites.pid)) == str(limited_sites.pid)
        }
        return ours if "hakmem_site_live_bytes" in ours else None

    known = wait_until(exported, "no site", PATIENCE_S) | OF_CGROUPS | OF_HEAPS
    named = {
        file.name: set(NAME.findall(text))
        for file, text in (
            (DASHBOARD, " ".join(query for _, query in queries()) + variables_text()),
            (ALERTS, ALERTS.read_text()),
            (GUIDE, GUIDE.read_text()),
        )
    }
    named[GUIDE.name] -= {"hakmem_processes"}  # with --by only
    assert all(len(names) > 10 for names in named.values())
    assert not any(name.startswith(OF_CLASSES) for name in named[ALERTS.name]), "they need --detail classes"
    assert {file: names - known for file, names in named.items() if names - known} == {}


def variables_text() -> str:
    return " ".join(
        one.get("definition", "") for one in json.loads(DASHBOARD.read_text())["templating"]["list"]
    )


def test_panels_say_what_they_show() -> None:
    numbers = [panel["id"] for panel in json.loads(DASHBOARD.read_text())["panels"]]
    assert len(set(numbers)) == len(numbers)
    guide = GUIDE.read_text()
    for panel in panels():
        assert panel["description"], panel["title"]
        assert panel["title"] in guide, panel["title"]
        needs_classes = any(OF_CLASSES in one["expr"] for one in panel["targets"])
        assert needs_classes == ("--detail classes" in panel["description"]), panel["title"]


def test_alerts_are_in_the_guide() -> None:
    names = re.findall(r"- alert: (\w+)", ALERTS.read_text())
    assert len(names) == len(set(names)) >= 10
    guide = GUIDE.read_text()
    assert [name for name in names if f"`{name}`" not in guide] == []


def test_every_query_can_be_read(program: Find, tmp_path: Path) -> None:
    rules = [{"record": f"query_{n}", "expr": text} for n, (_, text) in enumerate(queries())]
    path = tmp_path / "queries.yml"
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))  # JSON is YAML
    promtool(program, "check", "rules", path)


@pytest.mark.long("a second of processor time")
def test_alerts_can_be_read_and_fire_when_they_should(program: Find) -> None:
    promtool(program, "check", "rules", ALERTS)
    promtool(program, "test", "rules", ALERTS.with_name("alerts_test.yml"))


def promtool(program: Find, *words: str | Path) -> None:
    step = captured([program("promtool"), *words], timeout=PATIENCE_S)
    assert step.returncode == 0, step.stdout + step.stderr


# ---- a real Prometheus ---------------------------------------------------------------------------------

SCRAPES = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{alerts}"]
scrape_configs:
  - job_name: hakmem
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""
EMPTY = {"RSS by container"}  # it needs --by container
long_test = pytest.mark.skipif(not os.environ.get("PACKAGES"), reason="takes 10 seconds: make test-packages")


def answer(address: str, path: str, **words: str) -> Any:  # noqa: ANN401 - Prometheus's
    query = urllib.parse.urlencode(words)
    with urllib.request.urlopen(f"{address}/api/v1/{path}?{query}", timeout=PATIENCE_S) as found:
        return json.load(found)["data"]


def is_ready(address: str) -> bool:
    """It listens before it answers."""
    try:
        with urllib.request.urlopen(f"{address}/-/ready", timeout=PATIENCE_S) as found:
            return found.status == 200
    except OSError:
        return False


@long_test
def test_a_real_prometheus_answers_every_query(
    limited_sites: subprocess.Popen[str], with_heaps: Start, program: Find, tmp_path: Path
) -> None:
    heaps, port, own = with_heaps(), free_port(), free_port()  # one of them at its limit
    exporter = ["export", "--detail", "classes", f"127.0.0.1:{port}"]
    config = tmp_path / "prometheus.yml"
    config.write_text(SCRAPES.format(alerts=ALERTS, port=port))
    words = [
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{own}",
    ]
    with (
        subprocess.Popen([*TOOL, *exporter], env=tool_environment()) as tool,
        subprocess.Popen([program("prometheus"), *words], stderr=subprocess.DEVNULL) as server,
    ):
        try:
            address = f"http://127.0.0.1:{own}"
            wait_until(lambda: is_ready(address), "Prometheus does not answer", PATIENCE_S)
            missing = [
                (title, text)
                for title, text in queries()
                if title not in EMPTY and not OF_CGROUPS & set(NAME.findall(text))
            ]
            end_s = time.monotonic() + PATIENCE_S
            while missing and time.monotonic() < end_s:
                missing = [one for one in missing if not answer(address, "query", query=one[1])["result"]]
                time.sleep(0.2)
            assert missing == []
            (group,) = answer(address, "rules")["groups"]
            assert {rule["health"] for rule in group["rules"]} == {"ok"}, group
        finally:
            server.kill()
            tool.kill()
    assert limited_sites.poll() is None
    assert heaps.process.poll() is None
