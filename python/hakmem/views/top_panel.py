"""The text of `hakmem top` above its table of sites, and the threads that read, switch and name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from rich.text import Text
from textual.message import Message
from textual.widgets import Static
from textual.worker import get_current_worker

from hakmem.base.errors import ProcessGoneError
from hakmem.views.top_sites import Sites


class SitesPanel(Static):
    """The profiled process.  One thread at a time works on it, and tells the app by `Changed`."""

    class Changed(Message):
        """There are new figures, or names."""

    def __init__(self) -> None:
        super().__init__(id="sites")
        self.sites: Sites | None = None
        self.is_busy = self.wants_turn = False

    def follow(self, sites: Sites) -> None:
        """Another process from now on; what was switched on in the last one is switched off."""
        if self.sites is not None:
            self.run_worker(self.sites.close, thread=True)
        self.sites, self.wants_turn = sites, False
        self.say()

    def tick(self, interval_s: float, is_paused: bool) -> None:
        """Does what was asked for, reads the profile when it is time, or takes in names that were found."""
        sites = self.sites
        if sites is None or self.is_busy:
            return
        if self.wants_turn:
            self.wants_turn = False
            self.begin(sites.turn)
        elif sites.is_due and not is_paused:
            self.begin(partial(sites.read, interval_s))
        elif sites.has_new_names:
            self.begin(sites.work_out)

    def turn(self) -> None:
        """Switches the profile on or off with the next tick."""
        self.wants_turn = True

    def count_from_now(self) -> None:
        if self.sites is not None and not self.is_busy:
            self.sites.count_from_now()
            self.begin(self.sites.work_out)

    def begin(self, act: Callable[[], None]) -> None:
        self.is_busy = True
        self.run_worker(partial(self.work, act), thread=True)

    def work(self, act: Callable[[], None]) -> None:
        """Runs in a thread of its own."""
        with suppress(ProcessGoneError):  # the next poll of the app says so
            act()
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self.finish)

    def finish(self) -> None:
        self.is_busy = False
        if self.is_attached:
            self.say()
            self.post_message(self.Changed())

    def say(self) -> None:
        self.update(Text(self.sites.note if self.sites is not None else ""))
