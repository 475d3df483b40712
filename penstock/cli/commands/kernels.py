"""`penstock kernels`: the per-machine caches of compiled kernels and of Spark's classes."""

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
    """Compile the kernels of the fast gear ahead of time, or report whether they are compiled.

    Without compiled kernels the plain gear is used, and the first batch with more than a few
    changes starts compiling them in the background. They are cached for all processes of this user,
    per release and processor. So is an archive of Spark's classes,
    which halves the start time of Java.
    """


@app.command(epilog=epilog("  penstock kernels status\n  penstock kernels status --json"))
def status(as_json: JsonOption = False) -> None:
    """Report whether the kernels are compiled and Spark's classes archived, and where."""
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
    out.say(f"cached in {where}" if where else "there is no writable directory to cache them in")
    out.say(f"the archive of Spark's classes: {archive}")
    if archived_in is not None:
        out.say(f"cached in {archived_in}")


@app.command(epilog=epilog("  penstock kernels prepare"))
def prepare(
    beside: Annotated[
        bool, typer.Option("--beside", help="Compile in the background; do not wait.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compile the kernels and archive Spark's classes now. Skips what already exists or what
    another process is preparing."""
    from penstock.kernels.cache_directory import kernel_directory
    from penstock.kernels.fast_gear import FAST_GEAR
    from penstock.kernels.preparation import kernels_ready, start_preparation

    out = Output(as_json=as_json)
    if kernel_directory() is None:
        raise PenstockError(
            "there is no writable directory for compiled kernels",
            detail="the plain gear is used instead, with the same results",
            hint="set PENSTOCK_KERNEL_CACHE to a directory that only you can write to",
        )
    if not kernels_ready(FAST_GEAR):
        process = start_preparation(FAST_GEAR)
        if process is not None and not beside and process.wait() != 0:
            raise PenstockError(
                "the kernels could not be compiled",
                detail="the plain gear is used instead, with the same results",
                hint="PENSTOCK_GEAR=fast penstock run HOME --once shows the error",
            )
    _prepare_archive(beside)
    archive, _ = _state_of_archive()
    out.result({"ready": kernels_ready(FAST_GEAR), "archive": archive})
    status_of = "compiled" if kernels_ready(FAST_GEAR) else "being compiled"
    out.say(f"the kernels of the fast gear are {status_of}")
    out.say(f"the archive of Spark's classes: {archive}")


def _state_of_archive() -> tuple[str, str | None]:
    """State and directory of the archive of Spark's classes."""
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
        process.wait()  # a failure only slows down Java; `status` reports it
