"""The container that a process runs in, by the path of its cgroup: no container engine is asked.

/system.slice/docker-ID.scope, /docker/ID                            Docker
/machine.slice/libpod-ID.scope/container                             Podman
/kubepods.slice/…/kubepods-burstable-podUID.slice/cri-containerd-ID.scope   Kubernetes (crio-ID.scope …)
/kubepods/burstable/podUID/ID                                        Kubernetes without systemd
/ecs/TASK/ID                                                         ECS"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from hakmem.target.cgroup import groups_of

# 64 hexadecimal digits after the engine's name; ECS on Fargate: 32, and a number.
CONTAINER = re.compile(r"(?:.*[-:])?([0-9a-f]{64}|(?<![0-9a-f])[0-9a-f]{32}-[0-9]{8,12})(?:\.scope)?")
# With systemd the dashes of the UID are underscores; those of static pods have none.
POD = re.compile(r"(?:.*-)?pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?")
OUTSIDE = "/.."  # the path leads out of the reader's own cgroup namespace
CONTROLLERS = ("memory", "", "name=systemd")  # whose path counts: v1's, v2's, that of services


class Container(NamedTuple):
    """A process outside containers has empty ids."""

    id: str
    pod_uid: str
    cgroup: str  # the path of the container's cgroup; of a process in none, of its own


def container_of(membership: Path) -> Container:
    """Read from /proc/PID/cgroup; the path is empty if the process is gone or there are no cgroups."""
    groups = groups_of(membership)
    paths = [groups[name] for name in CONTROLLERS if name in groups] or list(groups.values())
    path = next((path for path in paths if path != "/"), "/" if paths else "")
    return parse(os.fsencode(path).decode(errors="replace"))


def parse(path: str) -> Container:
    """The innermost container counts: of a container in a container, its own."""
    while path == OUTSIDE or path.startswith(OUTSIDE + "/"):
        path = path.removeprefix(OUTSIDE) or "/"
    parts = path.split("/")
    found, pod, end = "", "", len(parts)
    for number, part in enumerate(parts, start=1):
        if match := POD.fullmatch(part.partition(":")[0]):  # slice:engine:ID, in one name
            pod, found, end = match[1].replace("_", "-"), "", len(parts)
        if match := CONTAINER.fullmatch(part):
            found, end = match[1], number
    return Container(found, pod, "/".join(parts[:end]))
