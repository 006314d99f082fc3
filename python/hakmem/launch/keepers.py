"""Keepers: processes that share a program's memory, so that it can be read after the program's end.

    HAKMEM_KEEPER=SOCKET in the program's environment: the library connects, and clones the keeper
    its byte                                         the kernel adds the keeper's PID, as this process sees it
    the keeper waits at the socket; when it is closed here, or the tool is killed, it ends

Whether the program exits, is killed or executes another one: its keeper has the memory as it was last."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from hakmem.base.errors import HakmemError
from hakmem.base.sizes import counted
from hakmem.launch.scratch import Scratch

VARIABLE = "HAKMEM_KEEPER"
BACKLOG = 1024
CREDENTIALS = struct.Struct("=iII")  # struct ucred: PID, user, group
SCM_CREDENTIALS = getattr(socket, "SCM_CREDENTIALS", 2)
NEVER_READ = "it did not allocate on hakmem, or ended before it could be read"
FIRST_BYTE_S = 10.0  # the keeper sends it as soon as it runs, which takes seconds on a busy machine


@dataclass
class Keeper:
    """The keeper of one program in one process."""

    pid: int  # the program's
    keeper_pid: int
    connection: socket.socket

    @property
    def is_alive(self) -> bool:
        """The OOM killer ends it with the program, and so does SIGKILL to all processes."""
        try:
            return bool(self.connection.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return True
        except OSError:  # its end with something unread
            return False

    def answer(self) -> None:
        """A program that is traced waits for it."""
        with suppress(OSError):
            self.connection.send(b"t")

    def release(self) -> None:
        """It ends, and with it the rest of the program's memory."""
        self.connection.close()


def unfollowed(count: int, what: str) -> str:
    """Programs that the one in question has started."""
    processes, were = counted(count, "other process", "other processes"), "was" if count == 1 else "were"
    return f"{processes} on hakmem, started by it, {were} not {what}"


class Listener:
    """Where keepers report, until it is closed."""

    def __init__(self) -> None:
        self._folder = Scratch.make()
        self.path = self._folder.path / "keepers"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self.socket.bind(str(self.path))
            self.socket.listen(BACKLOG)
            self.socket.setblocking(False)
        except OSError as error:
            self.close()
            raise HakmemError(
                f"cannot listen at {self.path}: {error}; set TMPDIR to a folder with a short name"
            ) from None

    def close(self) -> None:
        self.socket.close()
        self._folder.remove()

    def arrivals(self) -> Iterator[Keeper]:
        """Keepers that have reported since."""
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            keeper = self._introduced(connection)
            if keeper is not None:
                yield keeper

    @staticmethod
    def _introduced(connection: socket.socket) -> Keeper | None:
        """The program connected; the keeper sent the byte."""
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            connection.settimeout(FIRST_BYTE_S)
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
            data, extra, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(CREDENTIALS.size))
            pids = [CREDENTIALS.unpack_from(d)[0] for _, kind, d in extra if kind == SCM_CREDENTIALS]
            connection.setblocking(False)
            if data and pids:
                return Keeper(CREDENTIALS.unpack(peer)[0], pids[0], connection)
        except (OSError, struct.error):
            pass
        connection.close()
        return None
