"""`hakmem export URL` to the real OpenTelemetry Collector, built from its Go modules (with PACKAGES)."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from results import captured
from tool.forked import tool_environment
from tool.processes import TOOL, answers, free_port, running, wait_until

pytestmark = [
    pytest.mark.skipif(not os.environ.get("PACKAGES"), reason="takes minutes: make test-packages"),
    pytest.mark.timeout(2000),
]
SOURCE = Path(__file__).parent / "collector"
PATIENCE_S = 120.0
CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{debug: {{verbosity: detailed}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{metrics: {{receivers: [otlp], exporters: [debug]}}}}
"""


@pytest.fixture(scope="module")
def collector(root: Path) -> Path:
    """In build/tests, as Go's own cache makes a second build quick."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is missing")
    made = root / "build" / "tests" / "collector"
    made.parent.mkdir(parents=True, exist_ok=True)
    words = [go, "build", "-mod=readonly", "-o", made, "."]
    step = captured(words, cwd=SOURCE, timeout=1800)
    if "proxy.golang.org" in step.stderr or "requires go" in step.stderr:
        pytest.skip(f"the collector's modules cannot be had: {step.stderr.strip()[-200:]}")
    assert step.returncode == 0, step.stderr
    return made


def test_the_real_collector_takes_every_metric(collector: Path, lib: Path, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    port, config, log = free_port(), tmp_path / "config.yaml", tmp_path / "log"
    config.write_text(CONFIG.format(port=port))
    with (
        running(["/bin/sh", "-c", "echo ready; exec sleep 1000"], lib) as process,
        log.open("w") as text,
        subprocess.Popen([collector, "--config", f"file:{config}"], stderr=text, stdout=text) as server,
    ):
        try:
            wait_until(lambda: answers(port) or server.poll(), "the collector does not answer", PATIENCE_S)
            assert server.poll() is None, log.read_text()
            step = captured(
                [*TOOL, "export", f"http://127.0.0.1:{port}", "--detail", "counters"],
                env=tool_environment(),
                timeout=PATIENCE_S,
            )
            assert step.returncode == 0, step.stderr
            wait_until(lambda: "Name: hakmem_exporter_read_seconds" in log.read_text(), "it is not there")
        finally:
            server.kill()
        said = log.read_text()
    assert f"pid: Str({process.pid})" in said
    assert re.search(r"Name: hakmem_refills\n(?:.*\n){2}.*DataType: Sum\n.*IsMonotonic: true", said)
    assert re.search(r"Name: hakmem_live_bytes\n.*\n.*Unit: By\n.*DataType: Gauge", said)
