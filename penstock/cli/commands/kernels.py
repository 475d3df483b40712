"""`penstock kernels`: what is compiled or written down once for this machine, so that work is fast
and Spark starts quickly."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.groups import epilog
from penstock.cli.output import Output
from penstock.cli.parameters import JsonOption
from penstock.errors import PenstockError

PANEL = "Operate"
EXAMPLES = """
  penstock kernels status
  penstock kernels prepare               (compiles them now: a minute or two)
"""

app = typer.Typer(
    add_completion=False, rich_markup_mode="rich", epilog=epilog(EXAMPLES), no_args_is_help=True
)


@app.callback()
def kernels() -> None:
    """Compile the kernels of the fast gear ahead of their use, or say whether they are compiled.

    Until they are, the plain gear serves, and a first batch with more than a few changes has them
    compiled beside it. They are kept for all processes of this user, per release and processor.
    The same holds for an archive of Spark's classes, from which Java starts in half the time.
    """


@app.command(epilog=epilog("  penstock kernels status\n  penstock kernels status --json"))
def status(as_json: JsonOption = False) -> None:
    """Say whether the kernels are compiled and Java's classes archived, and where they are kept."""
    from penstock.kernels.cache_directory import kernel_directory
    from penstock.kernels.fast_gear import FAST_GEAR
    from penstock.kernels.preparation import is_being_compiled, kernels_ready

    directory = kernel_directory()
    is_ready = kernels_ready(FAST_GEAR)
    at_it = not is_ready and directory is not None and is_being_compiled(FAST_GEAR)
    out = Output(as_json=as_json)
    where = None if directory is None else str(directory)
    archive, archived_in = _state_of_archive()
    out.result(
        {
            "ready": is_ready,
            "being_compiled": at_it,
            "directory": where,
            "archive": archive,
            "archive_directory": archived_in,
        }
    )
    state = "compiled" if is_ready else "being compiled" if at_it else "not compiled yet"
    out.say(f"the kernels of the fast gear are {state}")
    out.say(f"kept in {where}" if where else "no directory can be written to keep them in")
    out.say(f"the archive of Spark's classes: {archive}")
    if archived_in is not None:
        out.say(f"kept in {archived_in}")


@app.command(epilog=epilog("  penstock kernels prepare"))
def prepare(
    beside: Annotated[
        bool, typer.Option("--beside", help="Do not wait: compile them in the background.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compile the kernels and archive Spark's classes now. What is there, or made by another
    process, is left alone."""
    from penstock.kernels.cache_directory import kernel_directory
    from penstock.kernels.fast_gear import FAST_GEAR
    from penstock.kernels.preparation import kernels_ready, start_preparation

    out = Output(as_json=as_json)
    if kernel_directory() is None:
        raise PenstockError(
            "no directory can be written to keep compiled kernels in",
            detail="the plain gear goes on serving, with the same results",
            hint="name one that only you may write: PENSTOCK_KERNEL_CACHE=DIR",
        )
    if not kernels_ready(FAST_GEAR):
        process = start_preparation(FAST_GEAR)
        if process is not None and not beside and process.wait() != 0:
            raise PenstockError(
                "the kernels could not be compiled",
                detail="the plain gear goes on serving, with the same results",
                hint="PENSTOCK_GEAR=fast penstock run HOME --once shows the error",
            )
    _prepare_archive(beside)
    archive, _ = _state_of_archive()
    out.result({"ready": kernels_ready(FAST_GEAR), "archive": archive})
    status_of = "compiled" if kernels_ready(FAST_GEAR) else "being compiled"
    out.say(f"the kernels of the fast gear are {status_of}")
    out.say(f"the archive of Spark's classes: {archive}")


def _state_of_archive() -> tuple[str, str | None]:
    """How it stands with the archive of Spark's classes, and where it is."""
    from penstock.pipeline.class_archive import class_archive, failure

    archive = class_archive()
    if archive is None:
        return "none is kept", None
    with archive.being_made() as is_mine:
        if archive.is_ready:
            state = "made"
        elif not is_mine:
            state = "being made"
        else:
            reason = failure(archive)
            state = f"could not be made ({reason})" if reason else "not made yet"
    return state, str(archive.directory)


def _prepare_archive(beside: bool) -> None:
    from penstock.pipeline.class_archive import class_archive, forget_failure, start_making

    archive = class_archive()
    if archive is None:
        return
    forget_failure(archive)
    process = start_making(archive)
    if process is not None and not beside:
        process.wait()  # if it fails, Java starts as before, and the status says why
