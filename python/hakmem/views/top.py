"""`hakmem top` in a terminal: gauges with their recent history, and tables to switch between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import DataTable, Static
from textual.worker import get_current_worker

from hakmem.base.durations import duration_text
from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.base.sizes import counted
from hakmem.target.target import Target
from hakmem.views.screen import one_line
from hakmem.views.top_panel import SitesPanel
from hakmem.views.top_parts import COMMAND_SHOWN, STYLE, ChooseProcess, GaugeTile, Help, flowed, keys
from hakmem.views.top_sites import SITES, Sites
from hakmem.views.top_tables import TABLES, Tables
from hakmem.views.watching import GAUGES, Moment, Watch, beyond_rss

INTERVAL_MIN_S, INTERVAL_MAX_S = 0.1, 60.0
GAUGE_COLUMNS, GAUGE_LINES = 15, 3  # "remote frees", and a gap
SITES_EVERY_S = 0.2  # whether it is time for a reading

ListTargets = Callable[[], Sequence[Target]]


class TopApp(App[None]):
    TITLE = "hakmem top"
    ENABLE_COMMAND_PALETTE = False
    CSS = STYLE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,h", "help", "This help", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
        Binding("tab", "next_view(1)", "Next table; 1, 2 …: that one", priority=True, key_display="Tab"),
        Binding("shift+tab", "next_view(-1)", "Previous table", priority=True, key_display="Shift Tab"),
        Binding("right", "scroll(1)", "Scroll a wide table", priority=True, key_display="→"),
        Binding("left", "scroll(-1)", "Scroll back", priority=True, key_display="←"),
        Binding("b", "choose", "Choose another process"),
        *(Binding(str(n + 1), f"view({n})", view.name, show=False) for n, view in enumerate(TABLES)),
        Binding("s", "sort", "Sort by next column"),
        Binding("r", "reverse", "Reverse"),
        Binding("p,space", "pause", "Pause"),
        Binding("plus,equals_sign", "pace(0.5)", "Faster", key_display="+"),
        Binding("minus", "pace(2.0)", "Slower", key_display="-"),
        Binding("o", "profile", "Switch a heap profile on or off"),
        Binding("z", "count_from_now", "Count growth from now on"),
    ]

    def __init__(
        self, targets: Sequence[Target], interval_s: float, list_targets: ListTargets | None = None
    ) -> None:
        """`list_targets` lists the current processes when the user chooses another one."""
        super().__init__()
        self.targets = targets
        self.list_targets = list_targets or (lambda: list(targets))
        self.stopped_by: int | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.interval_s = interval_s
        self.watch_: Watch | None = None
        self.tables = Tables()
        self.is_paused = self.is_polling = False
        self.sites: Sites | None = None
        self.ended_why: str | None = None
        self.began_s = time.monotonic()

    # ---- layout ----

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        yield Static(id="ended")
        with Container(id="gauges"):
            for gauge in GAUGES:
                yield GaugeTile(gauge)
        yield Static(id="beyond")
        yield Static(id="views")
        yield SitesPanel()
        yield DataTable(cursor_type="row", zebra_stripes=False, fixed_columns=1)
        yield Static(id="keys")

    def on_mount(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.timer = self.set_interval(self.interval_s, self.tick)
        self.set_interval(SITES_EVERY_S, self.tick_sites)
        self.main.query_one(DataTable).focus()
        self.show_head()
        self.show_views()
        if len(self.targets) == 1:
            self.start(self.targets[0])
        else:
            self.push_screen(ChooseProcess(self.targets), self.start)

    def stop(self, number: int) -> None:
        """Called on a signal, at any moment in the main thread."""
        self.stopped_by = number
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.exit)

    def _print_error_renderables(self) -> None:
        """Drops textual's tracebacks: the tool reports errors itself, in one line."""
        self._exit_renderables.clear()

    def raise_error(self) -> None:
        """Raises an error from inside the app, after the terminal is restored."""
        if self._exception is not None:
            raise self._exception

    def start(self, target: Target | None) -> None:
        """Watches this process from now on; None: the previous one, or exits without one."""
        if target is None:
            if self.watch_ is None:
                self.exit()
            return
        if self.watch_ is not None and target is self.watch_.target and not self.ended_why:
            return
        self.watch_, self.began_s = Watch(target), time.monotonic()
        self.ended_why = None
        self.sites = Sites(target)
        self.main.query_one(SitesPanel).follow(self.sites)
        self.main.query_one("#ended").remove_class("shown")
        self.tables.follow()
        self.show_table_of_choice()
        self.show_head()
        self.tick()

    # ---- polling ----

    def tick(self) -> None:
        """Starts the next poll, unless one is running: the screen stays responsive."""
        if self.watch_ is None or self.is_paused or self.is_polling or self.ended_why:
            return
        self.is_polling = True
        self.run_worker(self.poll, thread=True)

    def poll(self) -> None:
        """Runs in a thread of its own."""
        watch = self.watch_
        assert watch is not None
        moment, why = None, ""
        try:
            moment = watch.poll()
        except ProcessGoneError:
            why = f"Process {watch.target.pid} has ended"
        except HakmemError as error:
            why = str(error)
        self.tell(self.show, watch, moment, why)

    def tell(self, method: Callable[..., None], *what: object) -> None:
        """Continues in the app's thread, unless the user has quit meanwhile."""
        if not get_current_worker().is_cancelled:
            self.call_from_thread(method, *what)

    def show(self, watch: Watch, moment: Moment | None, why: str) -> None:
        """`why`: the reason why there is no moment."""
        self.is_polling = False
        if self.is_closing:
            return
        if watch is not self.watch_:  # of the previous process
            self.tick()
        elif why:
            self.end(why)
        elif moment is None:
            self.set_timer(min(self.interval_s, 0.3), self.tick)  # the first rates follow soon
        else:
            if self.tables.notice(moment):
                self.show_names()
            self.show_all()

    def end(self, why: str) -> None:
        """The process is gone: the last figures stay."""
        self.ended_why = why
        watched = duration_text(time.monotonic() - self.began_s)
        bar = self.main.query_one("#ended", Static)
        said = f"{why}, after {watched} of watching; the last figures stay."
        bar.update(Text(f"{said} q quits, b lists other processes."))
        bar.add_class("shown")
        self.show_head()

    # ---- the profile ----

    def tick_sites(self) -> None:
        """The profile is read while its table is shown."""
        if self.tables.is_at_sites and not self.ended_why and not self.is_closing:
            self.main.query_one(SitesPanel).tick(self.interval_s, self.is_paused)

    def on_sites_panel_changed(self) -> None:
        if self.tables.is_at_sites and not self.is_closing:
            self.show_table()

    def leave_sites(self) -> None:
        """Switches off what was switched on here: after the app has ended."""
        if self.sites is not None:
            self.sites.close()

    # ---- state ----

    @property
    def main(self) -> Screen[object]:
        """The screen with the figures, even while the choice of a process covers it."""
        return self.screen_stack[0]

    @property
    def is_closing(self) -> bool:
        """Whether the user has quit during a poll: there is nothing to show it in."""
        return not self.is_running or not self.main.query("#head")

    # ---- showing ----

    def show_all(self) -> None:
        if self.watch_ is None or not self.watch_.history:
            return
        self.show_head()
        for tile in self.main.query(GaugeTile):
            tile.show(self.watch_.history, self.gauge_columns == 1)
        said = beyond_rss(self.watch_.history[-1])
        line = self.main.query_one("#beyond", Static)
        line.update(said)
        line.set_class(bool(said), "shown")
        self.show_table()

    @property
    def gauge_columns(self) -> int:
        """As many as fit side by side."""
        return next((n for n in (6, 3, 2) if self.size.width >= n * GAUGE_COLUMNS + 2), 1)

    def on_resize(self) -> None:
        """The app's own handler, which runs next, makes the new size known."""
        self.call_later(self.arrange)

    def arrange(self) -> None:
        """Gauges are in one or more rows, or, in a very narrow terminal, one per line."""
        if self.is_closing:
            return
        gauges, columns = self.main.query_one("#gauges"), self.gauge_columns
        gauges.styles.grid_size_columns = columns
        rows = -(-len(GAUGES) // columns)
        gauges.styles.height = rows if columns == 1 else rows * GAUGE_LINES + 1
        self.show_names()
        self.show_all()

    def show_head(self) -> None:
        if self.watch_ is None:
            self.main.query_one("#head", Static).update("hakmem top")
            return
        target = self.watch_.target
        pace = f"every {duration_text(self.interval_s)}"
        state = "ended" if self.ended_why else "paused" if self.is_paused else pace
        text = Text(f"{target.pid} ", style="bold")
        text.append(one_line(target.command, COMMAND_SHOWN), style="not bold")
        text.append(f"  hakmem {target.schema.version} · {state}", style="dim")
        if self.watch_.history and (process := self.watch_.history[-1].snapshot.process):
            cpu = self.watch_.history[-1].rates.cpu_share
            text.append(f" · {counted(process.threads, 'thread')} · {cpu:.0%} CPU", style="dim")
        self.main.query_one("#head", Static).update(text)

    def show_views(self) -> None:
        self.show_names()
        table = self.main.query_one(DataTable)
        table.clear(columns=True)
        for head in self.tables.heads():
            table.add_column(head)

    def show_names(self) -> None:
        """The names of views and keys, on as many lines as needed."""
        width = self.size.width - 2
        self.main.query_one("#views", Static).update(flowed(self.tables.names(), " ", width))
        self.main.query_one("#keys", Static).update(flowed(keys(len(self.tables.all)), " · ", width))

    def show_table(self) -> None:
        """The rows of the last moment; the scroll position stays."""
        if self.watch_ is None or not self.watch_.history:
            return
        table = self.main.query_one(DataTable)
        place, cursor = (table.scroll_target_x, table.scroll_target_y), table.cursor_row
        sites = self.sites.shown if self.sites is not None else None
        moment = replace(self.watch_.history[-1], sites=sites)
        rows = self.tables.rows(moment)
        table.clear()
        for row in rows:
            table.add_row(*row)
        table.move_cursor(row=min(cursor, max(0, len(rows) - 1)), scroll=False)
        table.scroll_to(*place, animate=False)

    # ---- keys ----

    def action_view(self, number: int) -> None:
        self.tables.show(number)
        self.show_table_of_choice()

    def show_table_of_choice(self) -> None:
        self.show_views()
        self.main.query_one(SitesPanel).set_class(self.tables.is_at_sites, "shown")
        self.show_table()

    def action_next_view(self, step: int) -> None:
        self.action_view((self.tables.number + step) % len(self.tables.all))

    def action_scroll(self, step: int) -> None:
        """Scrolls sideways; the first column stays."""
        table = self.main.query_one(DataTable)
        wanted = table.scroll_target_x + step * max(8, table.size.width // 3)
        table.scroll_to(x=min(table.max_scroll_x, max(0, wanted)), animate=False)

    def action_help(self) -> None:
        bindings = [one for one in self.BINDINGS if isinstance(one, Binding) and one.show]
        shown = [(one.key_display or one.key.split(",")[0], one.description) for one in bindings]
        self.push_screen(Help([*shown, ("", ""), *((gauge.name, gauge.meaning) for gauge in GAUGES)]))

    def action_choose(self) -> None:
        if not isinstance(self.screen, ChooseProcess):
            self.notify("Searching for processes …", timeout=2)
            self.run_worker(self.find_choices, thread=True, exclusive=True, group="choices")

    def find_choices(self) -> None:
        """Runs in a thread of its own: it examines every process."""
        try:
            targets: Sequence[Target] = self.list_targets()
        except HakmemError as error:
            self.tell(self.notify, str(error))
            return
        self.tell(self.offer, targets)

    def offer(self, targets: Sequence[Target]) -> None:
        if not self.is_closing and not isinstance(self.screen, ChooseProcess):
            current = self.watch_.target if self.watch_ else None
            self.push_screen(ChooseProcess(targets, current), self.start)

    def action_sort(self) -> None:
        self.tables.sort_by_next()
        self.show_table_of_choice()

    def action_reverse(self) -> None:
        self.tables.reverse()
        self.show_table_of_choice()

    def action_pause(self) -> None:
        self.is_paused = not self.is_paused
        self.show_head()

    def action_pace(self, factor: float) -> None:
        self.interval_s = min(INTERVAL_MAX_S, max(INTERVAL_MIN_S, self.interval_s * factor))
        self.timer.stop()
        self.timer = self.set_interval(self.interval_s, self.tick)
        self.show_head()

    def action_profile(self) -> None:
        """Switches the heap profile on or off; from another table, shows that of sites first."""
        if not self.tables.is_at_sites:
            self.action_view(TABLES.index(SITES))
            return
        self.main.query_one(SitesPanel).turn()

    def action_count_from_now(self) -> None:
        if self.tables.is_at_sites:
            self.main.query_one(SitesPanel).count_from_now()
