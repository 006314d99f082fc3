"""The entry point of the console script.

Before the signal handlers are set, nothing is imported that the interpreter has not loaded anyway: until then
Ctrl-C would print a traceback.  `main` is the one place where an error becomes a line and an exit status."""

import _signal  # type: ignore[import-not-found]  # typeshed has it under its public name
import sys

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
_signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)  # `| head` ends it quietly, as it ends other tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Runs the tool; its exit status."""
    from hakmem.base.signals import Stopped, die_of

    try:
        return guarded(lambda: command_line(arguments))
    except Stopped as stopped:
        die_of(stopped.number)


def command_line(arguments: "Sequence[str] | None") -> int:
    """The commands, from their arguments on."""
    from hakmem.cli import main as commands

    try:
        commands(args=list(arguments) if arguments is not None else None, prog_name="hakmem")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def guarded(run: "Callable[[], int]") -> int:
    """The status of `run`; every error is a line on standard error."""
    from hakmem.base import streams

    streams.set_up()
    try:
        status = run()
    except Exception as error:  # the net
        status = told(error)
    unwritten = streams.finish()
    if unwritten is None:
        return status
    return status or told(unwritten)


def told(error: Exception) -> int:
    """Reports what went wrong: our own errors are sentences; others are bugs, or a lack of memory."""
    import os

    from hakmem.base.errors import DEBUG_VARIABLE, ExitCode, HakmemError
    from hakmem.base.streams import HARMLESS

    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        traceback.print_exception(error)
    print(f"hakmem: {' '.join(sentence_of(error).translate(HARMLESS).split())}", file=sys.stderr)
    return int(error.exit_code if isinstance(error, HakmemError) else ExitCode.FAILED)


def sentence_of(error: Exception) -> str:
    """The fault, then the remedy."""
    from hakmem import __version__
    from hakmem.base.errors import DEBUG_VARIABLE, HakmemError

    if isinstance(error, HakmemError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory; raise the limit (ulimit -v), or free some memory"
    if isinstance(error, ImportError) and error.name == "numpy":
        return "numpy is not installed, which this command needs: pip install 'hakmem[numpy]'"
    if isinstance(error, ImportError):
        return f"cannot load a part of the tool: {error}; reinstall it: pipx install './python[numpy]'"
    return (
        f"this is a bug in the tool (hakmem {__version__}, {place_of(error)}): {type(error).__name__}: "
        f"{error}. Please report it with the command line; {DEBUG_VARIABLE}=1 shows the traceback"
    )


def place_of(error: Exception) -> str:
    """The innermost line of the tool in the traceback."""
    trace, place = error.__traceback__, "?"
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "hakmem" in name:
            place = f"{name.rsplit('/', 1)[-1]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
