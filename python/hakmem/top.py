"""`hakmem top` in a terminal: gauges with their recent course, and tables to switch among."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from hakmem.durations import duration_text
from hakmem.errors import HakmemError, ProcessGoneError
from hakmem.sizes import bytes_text, sparkline
from hakmem.target import Target
from hakmem.watching import GAUGES, HISTORY, VIEWS, Gauge, Moment, Watch

INTERVAL_MIN_S, INTERVAL_MAX_S = 0.1, 60.0
INTERVAL_STEP = 2.0
COMMAND_SHOWN = 70


class GaugeTile(Static):
    """A figure, its value, its course."""

    def __init__(self, gauge: Gauge) -> None:
        super().__init__(classes="gauge")
        self.gauge = gauge

    def show(self, history: Sequence[Moment]) -> None:
        """The newest value, and bars as wide as there is room for."""
        values = [self.gauge.pick(moment) for moment in history]
        width = max(1, min(HISTORY, self.content_size.width))
        text = Text(self.gauge.name, style="dim")
        text.append(f"\n{self.gauge.text(values[-1])}", style="bold not dim")
        self.update(text.append(f"\n{sparkline(values, width)}", style="cyan not dim"))


class ChooseProcess(ModalScreen[Target | None]):
    """Asks which process to watch."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,escape", "leave", "Leave")]

    def __init__(self, targets: Sequence[Target]) -> None:
        super().__init__()
        self.targets = targets

    def compose(self) -> ComposeResult:
        yield Static("Which process?  ↑ ↓ and Enter; q leaves", id="question")
        yield OptionList(*(Option(option_text(target)) for target in self.targets))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self.targets[event.option_index])

    def action_leave(self) -> None:
        self.dismiss(None)


def option_text(target: Target) -> str:
    """A process in the list."""
    try:
        size = bytes_text(target.process.figures().rss_bytes) if target.process else ""
    except ProcessGoneError:
        size = "ended"
    return f"{target.pid:>8}  {size:>9}  {' '.join(target.command)[:COMMAND_SHOWN]}"


class TopApp(App[None]):
    """Watches one process."""

    TITLE = "hakmem top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: 1; padding: 0 1; background: $panel; }
    #gauges { height: 4; padding: 0 1; }
    .gauge { width: 1fr; margin: 0 2 0 0; }
    #views { height: 1; padding: 0 1; }
    #ended { display: none; height: auto; padding: 0 1; background: $warning; color: $background; }
    #ended.shown { display: block; }
    DataTable { height: 1fr; background: $background; }
    DataTable > .datatable--cursor { background: $panel; color: $text; text-style: none; }
    ChooseProcess { align: center middle; }
    ChooseProcess OptionList { width: 90%; max-height: 60%; }
    ChooseProcess #question { width: 90%; padding: 0 1; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Leave"),
        Binding("ctrl+c", "quit", "Leave", show=False, priority=True),
        Binding("tab,right", "next_view(1)", "Next view", key_display="Tab", priority=True),
        Binding("shift+tab,left", "next_view(-1)", "View before", show=False, priority=True),
        *(Binding(str(n + 1), f"view({n})", view.name, show=False) for n, view in enumerate(VIEWS)),
        Binding("s", "sort", "Sort by next column"),
        Binding("r", "reverse", "Reverse"),
        Binding("p,space", "pause", "Pause"),
        Binding("plus,equals_sign", "pace(0.5)", "Faster", key_display="+"),
        Binding("minus", "pace(2.0)", "Slower", key_display="-"),
    ]

    def __init__(self, targets: Sequence[Target], interval_s: float) -> None:
        super().__init__()
        self.targets = targets
        self.interval_s = interval_s
        self.watch_: Watch | None = None
        self.view_number = 0
        self.sort_columns = [view.sorted_by for view in VIEWS]
        self.is_reversed = [False for _ in VIEWS]
        self.is_paused = self.is_looking = False
        self.ended_why: str | None = None
        self.began_s = time.monotonic()

    # ---- layout ----

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        yield Static(id="ended")
        with Horizontal(id="gauges"):
            for gauge in GAUGES:
                yield GaugeTile(gauge)
        yield Static(id="views")
        yield DataTable(cursor_type="row", zebra_stripes=False)
        yield Footer()

    def on_mount(self) -> None:
        self.timer = self.set_interval(self.interval_s, self.tick)
        self.query_one(DataTable).focus()
        self.show_head()
        self.show_views()
        if len(self.targets) == 1:
            self.begin(self.targets[0])
        else:
            self.push_screen(ChooseProcess(self.targets), self.begin)

    def begin(self, target: Target | None) -> None:
        """Watches this process from now on; without one there is nothing to do."""
        if target is None:
            self.exit()
            return
        self.watch_, self.began_s = Watch(target), time.monotonic()
        self.show_head()
        self.tick()

    # ---- looking ----

    def tick(self) -> None:
        """Starts the next look, unless one is under way: the screen stays alive meanwhile."""
        if self.watch_ is None or self.is_paused or self.is_looking or self.ended_why:
            return
        self.is_looking = True
        self.run_worker(self.look, thread=True)

    def look(self) -> None:
        """In a thread of its own."""
        assert self.watch_ is not None
        try:
            moment = self.watch_.look()
        except ProcessGoneError:
            self.tell(self.end, f"Process {self.watch_.target.pid} has ended")
        except HakmemError as error:
            self.tell(self.end, str(error))
        else:
            self.tell(self.show, moment)

    def tell(self, method: Callable[..., None], what: Moment | str | None) -> None:
        """Goes on in the app's own thread, unless the user has left meanwhile."""
        if not get_current_worker().is_cancelled:
            self.call_from_thread(method, what)

    def show(self, moment: Moment | None) -> None:
        """A new moment is there."""
        self.is_looking = False
        if self.is_closing:
            return
        if moment is None:
            self.set_timer(min(self.interval_s, 0.3), self.tick)  # the first rates come soon
            return
        self.show_all()

    def end(self, why: str) -> None:
        """The process is gone: what was seen last stays."""
        self.is_looking = False
        if self.is_closing:
            return
        self.ended_why = why
        watched = duration_text(time.monotonic() - self.began_s)
        bar = self.query_one("#ended", Static)
        bar.update(f"{why}, after {watched} of watching. The last figures stay here; q leaves.")
        bar.add_class("shown")
        self.show_head()

    @property
    def is_closing(self) -> bool:
        """Whether the user has left while a look was under way: nothing is there to show it in."""
        return not self.query("#head")

    # ---- showing ----

    def show_all(self) -> None:
        """Everything that the last moment changes."""
        if self.watch_ is None or not self.watch_.history:
            return
        self.show_head()
        for tile in self.query(GaugeTile):
            tile.show(self.watch_.history)
        self.show_table()

    def show_head(self) -> None:
        """Which process, how it is, how often we look."""
        if self.watch_ is None:
            self.query_one("#head", Static).update("hakmem top")
            return
        target = self.watch_.target
        state = (
            "ended"
            if self.ended_why
            else "paused"
            if self.is_paused
            else f"every {duration_text(self.interval_s)}"
        )
        text = Text(f"{target.pid} ", style="bold").append(
            " ".join(target.command)[:COMMAND_SHOWN], style="not bold"
        )
        text.append(f"  hakmem {target.schema.version} · {state}", style="dim")
        if self.watch_.history and (process := self.watch_.history[-1].snapshot.process):
            cpu = self.watch_.history[-1].rates.cpu_share
            text.append(f" · {process.threads} threads · {cpu:.0%} CPU", style="dim")
        self.query_one("#head", Static).update(text)

    def show_views(self) -> None:
        """The names of the tables; the columns of the one that is shown."""
        text = Text()
        for number, view in enumerate(VIEWS):
            style = "reverse" if number == self.view_number else "dim"
            text.append(f" {number + 1} {view.name} ", style=style).append(" ")
        self.query_one("#views", Static).update(text)
        table = self.query_one(DataTable)
        table.clear(columns=True)
        for place, name in enumerate(VIEWS[self.view_number].columns):
            mark = (
                ("▲" if self.is_reversed[self.view_number] else "▼")
                if place == self.sort_columns[self.view_number]
                else ""
            )
            table.add_column(
                Text(name.removeprefix("<") + mark, justify="left" if name.startswith("<") else "right")
            )

    def show_table(self) -> None:
        """The rows of the last moment; the place where the reader is stays."""
        if self.watch_ is None or not self.watch_.history:
            return
        number, table = self.view_number, self.query_one(DataTable)
        view, place = VIEWS[number], table.scroll_offset
        cursor = table.cursor_row
        rows = view.sorted_rows(
            self.watch_.history[-1],
            self.watch_.target.schema.counter_meta,
            self.sort_columns[number],
            not self.is_reversed[number],
        )
        table.clear()
        for row in rows:
            table.add_row(
                *(
                    Text(cell, justify="left" if name.startswith("<") else "right")
                    for cell, name in zip(row, view.columns, strict=True)
                )
            )
        table.move_cursor(row=min(cursor, max(0, len(rows) - 1)), scroll=False)
        table.scroll_to(place.x, place.y, animate=False)

    # ---- keys ----

    def action_view(self, number: int) -> None:
        """Shows another table."""
        self.view_number = number
        self.show_views()
        self.show_table()

    def action_next_view(self, step: int) -> None:
        """Shows the table beside this one."""
        self.action_view((self.view_number + step) % len(VIEWS))

    def action_sort(self) -> None:
        """Sorts by the next column."""
        columns = len(VIEWS[self.view_number].columns)
        self.sort_columns[self.view_number] = (self.sort_columns[self.view_number] + 1) % columns
        self.action_view(self.view_number)

    def action_reverse(self) -> None:
        """Smallest first, or largest first again."""
        self.is_reversed[self.view_number] = not self.is_reversed[self.view_number]
        self.action_view(self.view_number)

    def action_pause(self) -> None:
        """Stops looking, or goes on."""
        self.is_paused = not self.is_paused
        self.show_head()

    def action_pace(self, factor: float) -> None:
        """Looks more often, or less."""
        self.interval_s = min(INTERVAL_MAX_S, max(INTERVAL_MIN_S, self.interval_s * factor))
        self.timer.stop()
        self.timer = self.set_interval(self.interval_s, self.tick)
        self.show_head()
