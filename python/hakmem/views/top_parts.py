"""Parts of `hakmem top`: the gauges, and the choice of a process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from hakmem.base.errors import HakmemError
from hakmem.base.sizes import bytes_text, sparkline
from hakmem.target.target import Target
from hakmem.views.screen import one_line
from hakmem.views.watching import HISTORY, Gauge, Moment

COMMAND_SHOWN = 70
STYLE = """
#head { height: auto; padding: 0 1; background: $panel; }
#gauges { layout: grid; grid-gutter: 0 2; height: 4; padding: 0 1; }
.gauge { width: 1fr; height: auto; }
#views { height: auto; padding: 0 1; }
#keys { height: auto; padding: 0 1; dock: bottom; background: $panel; color: $text-muted; }
#sites { display: none; height: auto; padding: 0 1; color: $text-muted; }
#sites.shown { display: block; }
#beyond { display: none; height: auto; padding: 0 1; color: $text-muted; }
#beyond.shown { display: block; }
#ended { display: none; height: auto; padding: 0 1; background: $warning; color: $background; }
#ended.shown { display: block; }
DataTable { height: 1fr; background: $background; }
DataTable > .datatable--cursor { background: $panel; color: $text; text-style: none; }
ChooseProcess, Help { align: center middle; }
Help #help { width: 90%; max-width: 78; height: auto; max-height: 90%; }
Help #help { padding: 1 2; background: $panel; }
ChooseProcess OptionList { width: 90%; max-height: 60%; }
ChooseProcess #question { width: 90%; padding: 0 1; background: $panel; }
"""


class GaugeTile(Static):
    def __init__(self, gauge: Gauge) -> None:
        super().__init__(classes="gauge")
        self.gauge = gauge

    def show(self, history: Sequence[Moment], is_flat: bool) -> None:
        """The newest value, and bars that fill the width; `is_flat`: one line, without bars."""
        values = [self.gauge.pick(moment) for moment in history]
        width = max(1, min(HISTORY, self.content_size.width))
        text = Text(f"{self.gauge.name}{' ' if is_flat else chr(10)}", style="dim")
        text.append(self.gauge.text(values[-1]), style="bold not dim")
        if not is_flat:
            text.append(f"\n{sparkline(values, width)}", style="cyan not dim")
        self.update(text)


def keys(tables: int) -> list[Text]:
    """The keys and their effects; `tables`: how many there are."""
    words = (
        "? help",
        "q quit",
        "b processes",
        f"Tab 1-{tables} tables",
        "← → scroll",
        "s sort",
        "r reverse",
        "p pause",
        "+ - interval",
        "o profile",
        "z growth from now",
    )
    return [Text(word) for word in words]


def flowed(pieces: Sequence[Text], between: str, width: int) -> Text:
    """The pieces in lines, none of them broken."""
    text, used = Text(), 0
    for piece in pieces:
        if used and used + len(between) + piece.cell_len > width:
            text.append("\n")
            used = 0
        elif used:
            text.append(between, style="dim")
            used += len(between)
        text.append(piece)
        used += piece.cell_len
    return text


class Help(ModalScreen[None]):
    """Each key, and each figure above the tables."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.quit", "Quit"),
        Binding("escape,question_mark,h", "dismiss", "Back"),
    ]

    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self.rows = rows

    def compose(self) -> ComposeResult:
        text = Table.grid(padding=(0, 2))
        for name, meaning in self.rows:
            text.add_row(Text(name, style="bold"), meaning)
        with VerticalScroll(id="help"):
            yield Static(text)


class ChooseProcess(ModalScreen[Target | None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.quit", "Quit"),
        Binding("escape,b", "back", "Back"),
    ]

    def __init__(self, targets: Sequence[Target], current: Target | None = None) -> None:
        """`current`: the process that Escape goes back to."""
        super().__init__()
        sizes = [(rss_of(target), target) for target in targets]
        self.choices = sorted(sizes, key=lambda choice: (choice[0] is None, -(choice[0] or 0), choice[1].pid))
        self.current = current

    def compose(self) -> ComposeResult:
        back = "Escape goes back" if self.current else "Escape or q quits"
        yield Static(f"Choose a process (sorted by RSS): ↑ ↓ and Enter; {back}", id="question")
        yield OptionList(*(Option(option_text(size, target)) for size, target in self.choices))

    def on_mount(self) -> None:
        """Selects the process that was watched, if any."""
        pids = [target.pid for _, target in self.choices]
        if self.current is not None and self.current.pid in pids:
            self.query_one(OptionList).highlighted = pids.index(self.current.pid)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self.choices[event.option_index][1])

    def action_back(self) -> None:
        self.dismiss(None)


def rss_of(target: Target) -> int | None:
    """None if it has ended."""
    try:
        return target.process.figures().rss_bytes if target.process else None
    except HakmemError:
        return None


def option_text(rss_bytes: int | None, target: Target) -> Text:
    size = "ended" if rss_bytes is None else bytes_text(rss_bytes)
    return Text(f"{target.pid:>8}  {size:>9}  {one_line(target.command, COMMAND_SHOWN)}")
