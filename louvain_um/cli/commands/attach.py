"""``louvain-um attach``: record and place any CUDA program."""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from louvain_um.cli import common
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.errors import LouvainUmError, OptionError

if TYPE_CHECKING:
    from louvain_um.placement.policy.policy import Policy


@with_exit_code
def attach(
    program: Annotated[
        list[str],
        typer.Argument(
            metavar="-- PROGRAM [ARGUMENTS]",
            help="The program, after --: ./solver input.dat, or python script.py.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="SESSION",
            help="Session to write: .npz, or .parquet (a folder).  [default: PROGRAM.npz]",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|auto",
            help="Place managed memory by call site, as a TOML file says; auto decides from the "
            "run in --from and writes the file and a C snippet beside the session.",
            show_default=False,
        ),
    ] = None,
    recorded: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="SESSION",
            help="Session of an earlier run of the program, for --policy auto.",
            show_default=False,
        ),
    ] = None,
    machine: Annotated[
        str,
        typer.Option(metavar="PROFILE", help="For --policy auto: a profile, as for simulate."),
    ] = "h200",
    device_budget: common.Budget = None,
    allow_driver_eviction: Annotated[
        bool,
        typer.Option(
            "--allow-driver-eviction",
            help="Let managed memory exceed what the device has free. The driver then evicts, "
            "which can hang the GPU for all its users until the machine is restarted.",
            rich_help_panel=common.GPU,
        ),
    ] = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
) -> None:
    """Run a CUDA program unchanged; record, and place, its memory by call site."""
    from louvain_um.profiling.attach.program import find, run
    from louvain_um.profiling.session.storage import check_target

    path = find(program[0])
    target = output or Path(f"{Path(path).stem}.npz")
    check_target(target, force=force)
    chosen = None
    if policy == "auto":
        chosen = decided(recorded, target, machine, device_budget, force=force)
    elif policy is not None:
        chosen = named(policy)
    if policy != "auto":
        common.refuse_given(
            "attach without --policy auto",
            {"--from": recorded is not None, "--device-budget": device_budget is not None},
        )
    ended = run(program, chosen, allow_driver_eviction=allow_driver_eviction)
    if ended.session is None:
        if not quiet:
            print_note(f"{program[0]} used no CUDA; no session was written")
    else:
        ended.session.save(target, force=force)
        if not quiet:
            for text in ended.session.notes:
                print_note(text)
            print_note(f"session written to {target}; to view it: louvain-um report {target}")
    if ended.refused:
        raise LouvainUmError(ended.refused)
    end_as(ended.code)


def named(policy: str) -> Policy:
    """Return a policy by name or file."""
    from louvain_um.placement.policy.find import find_policy
    from louvain_um.profiling.attach.policy import check

    found = find_policy(policy)
    check(found)
    return found


def decided(
    recorded: Path | None, target: Path, machine: str, budget: str | None, *, force: bool
) -> Policy:
    """Return the policy that a recorded run leads to; it is written as TOML and as C."""
    from louvain_um.core.atomic_files import check_output, replacing
    from louvain_um.placement.machine.profiles import load_machine
    from louvain_um.profiling import load
    from louvain_um.profiling.attach.policy import decide, policy_name, snippet, write_toml

    if recorded is None:
        raise OptionError(
            remedy="--policy auto needs a recorded run: attach without a policy first, then pass "
            "--from SESSION"
        )
    files = target.with_suffix(".toml"), target.with_suffix(".c")
    for file in files:
        check_output(file, force=force)
    session = load(recorded)
    found = decide(session, load_machine(machine), budget, policy_name(files[0]))
    write_toml(found, files[0], force=force)
    with replacing(files[1], force=force) as part:
        part.write_text(snippet(found, session), encoding="utf-8")
    return found


def end_as(code: int) -> None:
    """End as the program did: with its exit code, or by its signal."""
    if code < 0:
        sys.stdout.flush()
        sys.stderr.flush()
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with suppress(OSError):  # some signals cannot be handled
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    raise typer.Exit(code)
