"""The dashboard is what Grafana takes: TypeScript's compiler holds it against Grafana's own types, from npm.

Each panel's query is asked of a real Prometheus by tests/tool/test_operators.py.  Nothing is drawn."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from results import captured

DASHBOARD = Path(__file__).resolve().parents[2] / "packaging" / "grafana" / "hakmem.json"
PACKAGES = ("@grafana/schema@11.3.0", "typescript@5.6.3")
COMPILE = (
    "--noEmit --strict --skipLibCheck --moduleResolution bundler --module esnext --target es2022".split()
)
# JSON has the values of Grafana's enums, not their names.  Each kind of panel has its options, with defaults.
TYPES = """import type * as grafana from '@grafana/schema';
type Loose<T> = T extends string ? `${T}` : T extends number | boolean | null | undefined ? T
  : T extends (infer U)[] ? Loose<U>[] : T extends object ? { [K in keyof T]: Loose<T[K]> } : T;
type Some<T> = T extends (infer U)[] ? Some<U>[] : T extends object ? { [K in keyof T]?: Some<T[K]> } : T;
type Options = {
  timeseries: grafana.OptionsWithLegend & grafana.OptionsWithTooltip & grafana.OptionsWithTimezones;
  stat: grafana.SingleStatBaseOptions & {
    graphMode: grafana.BigValueGraphMode; colorMode: grafana.BigValueColorMode;
    justifyMode: grafana.BigValueJustifyMode; textMode: grafana.BigValueTextMode };
};
type OptionsOf<Name extends keyof Options> = Loose<Some<Options[Name]>>;
type Custom = Loose<Some<grafana.GraphFieldConfig>>;
"""

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("PACKAGES"), reason="downloads Grafana's types: make test-packages"
    ),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tsc, beside Grafana's types."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    words = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]
    step = captured(words, cwd=folder, timeout=500)
    if step.returncode != 0:
        pytest.skip(f"{' and '.join(PACKAGES)} cannot be installed: {step.stderr.strip()[-300:]}")
    return folder / "node_modules" / ".bin" / "tsc"


def complaints(compiler: Path, dashboard: dict[str, Any]) -> str:
    lines = [TYPES, f"export const dashboard: Loose<grafana.Dashboard> = {json.dumps(dashboard)};"]
    for number, panel in enumerate(dashboard["panels"]):
        if panel["type"] == "row":
            continue
        kind, custom = panel["type"], panel["fieldConfig"]["defaults"].get("custom", {})
        options = json.dumps(panel.get("options", {}))
        lines.append(f"export const options{number}: OptionsOf<'{kind}'> = {options};")
        lines.append(f"export const custom{number}: Custom = {json.dumps(custom)};")
    source = compiler.parents[2] / "dashboard.ts"
    source.write_text("\n".join(lines))
    words = [compiler, *COMPILE, source.name]
    step = captured(words, cwd=source.parent, timeout=200)
    assert bool(step.stdout) == bool(step.returncode), step.stderr
    return step.stdout


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def test_grafana_takes_it(compiler: Path) -> None:
    assert complaints(compiler, read()) == ""


def test_what_is_wrong_would_be_seen(compiler: Path) -> None:
    """In the dashboard, in a variable, in a panel, in its options."""
    dashboard = read()
    dashboard["refreshes"] = "30s"
    assert "refreshes" in complaints(compiler, dashboard)
    dashboard = read()
    dashboard["templating"]["list"][0]["type"] = "data source"
    assert '"data source"' in complaints(compiler, dashboard)
    dashboard = read()
    chart = next(panel for panel in dashboard["panels"] if panel["type"] == "timeseries")
    chart["gridPos"]["width"] = 4
    assert "width" in complaints(compiler, dashboard)
    dashboard = read()
    chart = next(panel for panel in dashboard["panels"] if panel["type"] == "timeseries")
    chart["options"]["tooltip"] = {"mode": "every"}
    assert "every" in complaints(compiler, dashboard)
