"""Sites of node are functions of JavaScript: V8's and node's own frames are skipped, as CPython's are."""

import re
from pathlib import Path

import pytest
from hakmem.profile.folded import to_folded
from hakmem.profile.labels import DEPTH, Labels
from hakmem.profile.model import Frame, Mapping, Profile, Sample
from hakmem.profile.names import _compiled
from hakmem.profile.sites import site_table
from hakmem.views.profile_text import site_text
from real.conftest import Find
from tool.conftest import Tool
from tool.processes import running

APP = "/srv/app/app.js"
FILES = [
    Mapping(0x1000, 0x2000, 0, "/usr/bin/node"),
    Mapping(0x2000, 0x3000, 0, "/usr/lib/x86_64-linux-gnu/libnode.so.115"),
    Mapping(0x3000, 0x4000, 0, "/usr/lib/x86_64-linux-gnu/libuv.so.1.0.0"),
    Mapping(0x4000, 0x5000, 0, "/srv/app/addon.node"),
    Mapping(0x5000, 0x6000, 0, "/usr/lib/libc.so.6"),
]
NAMES = {
    0x1010: "node::Buffer::New",
    0x2010: "v8::internal::BackingStore::Allocate",
    0x2020: "Builtins_JSEntry",
    0x3010: "uv__run_timers",
    0x4010: "addon_work",
    0x5010: "__libc_start_call_main",
    0x9010: f"JS:*serve {APP}:12:7",  # optimised
    0x9020: f"JS:~serve {APP}:12:7",  # interpreted
    0x9030: "JS:^listOnTimeout node:internal/timers:524:25",
    0x9040: f"JS:* {APP}:30:3",
    0x9050: "Builtin:CallApiCallback",
}
OUTER = (0x9040, 0x9030, 0x2020, 0x1010, 0x3010, 0x5010)


def profile_of_stacks(*stacks: tuple[int, ...]) -> Profile:
    made = Profile(mappings=FILES, names={at: (_compiled(name),) for at, name in NAMES.items()})
    made.samples = [Sample(stack, 1, 64, 64, 64.0, 1.0) for stack in stacks]
    return made


def sites_of(profile: Profile, *, with_internals: bool = False) -> list[str]:
    labels = Labels(profile, with_internals=with_internals)
    table = site_table(profile, labels.key(DEPTH))
    return [site_text(labels.site(site.stack, DEPTH)).plain for site in table.sites]


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        (f"JS:*serve {APP}:12:7", Frame("serve", APP, 12)),
        ("LazyCompile:~get value /a b/c.mjs:3:1", None),
        ("LazyCompile:serve file:///srv/a.mjs:3:1", Frame("serve", "file:///srv/a.mjs", 3)),
        ("Function:+a.b node:fs:1:2", Frame("a.b", "node:fs", 1)),
        (f"JS:^ {APP}:6:13", Frame("<anonymous>", APP, 6)),
        ("py::work:/a/b.py", Frame("py::work", "/a/b.py")),
        ("RegExp:a.js:1:2", Frame("RegExp:a.js:1:2")),
        ("Builtin:JS:3:4", Frame("Builtin:JS:3:4")),
    ],
)
def test_names_of_compiled_code(name: str, frame: Frame | None) -> None:
    found = _compiled(name)
    assert found == (frame or Frame("get", "value /a b/c.mjs", 3))


def test_one_leak_is_one_site() -> None:
    """Whatever V8 and node do for one function, and whichever tier has compiled it."""
    inner = ((0x2010, 0x1010), (0x2010,), (0x1010, 0x9050), (0x1010, 0x9030, 0x2020))
    stacks = [(*parts, serve, *OUTER) for parts in inner for serve in (0x9010, 0x9020)]
    profile = profile_of_stacks(*stacks)
    assert sites_of(profile) == ["serve (app.js:12) ← <anonymous>:30 ← __libc_start_call_main"]
    assert sites_of(profile, with_internals=True)[0].startswith("v8::internal::BackingStore::Allocate ← ")
    lines = {line.rpartition(" ")[0] for line in to_folded(profile).splitlines()}
    assert lines == {"__libc_start_call_main;<anonymous> (app.js:30);serve (app.js:12)"}


def test_addons_are_the_programs_own() -> None:
    assert sites_of(profile_of_stacks((0x4010, 0x1010, 0x9010, *OUTER)))[0].startswith(
        "addon_work ← serve:12"
    )


def test_without_functions_of_javascript_nothing_is_skipped() -> None:
    """Or no name of the program's own: node's is better than none."""
    for stack in ((0x2010, 0x1010, 0x3010), (0x2010, 0x9030, 0x2020)):
        assert sites_of(profile_of_stacks(stack))[0].startswith("v8::internal::BackingStore::Allocate ← ")


SCRIPT = """
const kept = [];
function leak(i) {
  kept.push(Buffer.allocUnsafeSlow(50000)); }
for (let i = 0; i < 300; i++) leak(i);
console.log("ready");
setInterval(() => 0, 1000);
"""


def test_a_real_node(tool: Tool, program: Find, tmp_path: Path, lib: Path) -> None:
    script = tmp_path / "leak.js"
    script.write_text(SCRIPT)
    log = ["--no-logfile-per-isolate", f"--logfile={tmp_path / 'v8.log'}"]  # else it is where the tests run
    words = [program("node"), "--perf-basic-prof", "--interpreted-frames-native-stack", *log, script]
    with running(words, lib, {"HAKMEM_PROFILE": "16384"}) as process:
        shown = tool("profile", process.pid, "--depth", "1").stdout
        Path(f"/tmp/perf-{process.pid}.map").unlink(missing_ok=True)
    assert re.search(r"^[\d.]+ MiB .*  leak \(leak.js:3\)", shown, re.MULTILINE), shown
    assert "AllocateUninitialized" not in shown
