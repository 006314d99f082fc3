"""The bill of materials of a release, as SPDX 2.3: the parts of each file of build/dist that others wrote.

The C library has nothing of others inside, and needs none but the C library of the system.  The Debian
package of the tool carries three Python libraries; the wheel names what pip shall install; the Rust crate
asks for `cc` when it is compiled.  Versions are read where they are decided."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]

# Modules that scripts/deb copies into the package of the tool.
CARRIED = ("platformdirs", "rich", "textual")
DEB_OF_TOOL = re.compile(r"hakmem_.*\.deb")
CRATE_WITH_SOURCES = re.compile(r"hakmem-sys-.*\.crate")
WHEEL = re.compile(r"hakmem-.*\.whl")
SOURCE = re.compile(r"hakmem-.*-source\.tar\.gz")


def identifier(*words: str) -> str:
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", "-".join(words))


def package(name: str, spdx_id: str, version: str, **more: object) -> Json:
    return {
        "name": name,
        "SPDXID": spdx_id,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "MIT",
        "licenseDeclared": "MIT",
        "copyrightText": "NOASSERTION",
        **more,
    }


def of_registry(kind: str, name: str, version: str) -> Json:
    """A library of PyPI's or of crates.io; `version` is empty where the user's machine chooses it."""
    locator = f"pkg:{kind}/{name}" + (f"@{version}" if version else "")
    reference = {
        "referenceCategory": "PACKAGE-MANAGER",
        "referenceType": "purl",
        "referenceLocator": locator,
    }
    found = package(name, identifier(kind, name, version or "any"), version, externalRefs=[reference])
    if not version:
        del found["versionInfo"]
        found |= {"licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION"}
    return found


def carried(root: Path) -> list[Json]:
    pinned = dict(
        re.findall(r"^([\w-]+)==(.+)$", (root / "scripts/requirements.txt").read_text(), re.MULTILINE)
    )
    return [of_registry("pypi", name, pinned[name]) for name in CARRIED]


def asked_for_by_the_wheel(root: Path) -> list[tuple[Json, str]]:
    project = tomllib.loads((root / "python/pyproject.toml").read_text())["project"]
    found = [re.match(r"([\w-]+)(.*)", word) for word in project["dependencies"]]
    return [(of_registry("pypi", match[1], ""), match[2]) for match in found if match]


def asked_for_by_the_crate(root: Path) -> list[tuple[Json, str]]:
    manifest = tomllib.loads((root / "rust/hakmem-sys/Cargo.toml").read_text())
    return [(of_registry("cargo", name, ""), word) for name, word in manifest["build-dependencies"].items()]


class Bill:
    """A document that grows: packages, each once, and what they have to do with each other."""

    def __init__(self) -> None:
        self.packages: dict[str, Json] = {}
        self.relationships: list[Json] = []

    def add(self, one: Json) -> str:
        self.packages[one["SPDXID"]] = one
        return str(one["SPDXID"])

    def relate(self, one: str, kind: str, other: str, comment: str = "") -> None:
        said = {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
        self.relationships.append(said | ({"comment": comment} if comment else {}))


def add_artefact(bill: Bill, root: Path, path: Path, version: str, source: str | None) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    checksums = [{"algorithm": "SHA256", "checksumValue": digest}]
    own = bill.add(
        package(path.name, identifier(path.name), version, packageFileName=path.name, checksums=checksums)
    )
    bill.relate("SPDXRef-DOCUMENT", "DESCRIBES", own)
    if source and source != own:
        bill.relate(own, "GENERATED_FROM", source)
    if DEB_OF_TOOL.fullmatch(path.name):
        for one in carried(root):
            bill.relate(own, "CONTAINS", bill.add(one))
    if WHEEL.fullmatch(path.name):
        for one, versions in asked_for_by_the_wheel(root):
            bill.relate(own, "DEPENDS_ON", bill.add(one), versions)
    if CRATE_WITH_SOURCES.fullmatch(path.name):
        for one, versions in asked_for_by_the_crate(root):
            bill.relate(bill.add(one), "BUILD_DEPENDENCY_OF", own, versions)


def document(root: Path, files: list[Path], version: str, epoch_s: int) -> str:
    """The bill of these files: the same text for the same files."""
    bill = Bill()
    sources = [path for path in files if SOURCE.fullmatch(path.name)]
    source = identifier(sources[0].name) if sources else None
    for path in sorted(files):
        add_artefact(bill, root, path, version, source)
    packages = [bill.packages[key] for key in sorted(bill.packages)]
    digest = hashlib.sha256(json.dumps(packages).encode()).hexdigest()
    said = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"hakmem-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/hakmem-{version}-{digest}",
        "creationInfo": {
            "created": datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: hakmem-scripts-dist-{version}"],
        },
        "packages": packages,
        "relationships": bill.relationships,
    }
    return json.dumps(said, indent=2) + "\n"
