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
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.core.atomic_files import check_output, write_text
from louvain_um.errors import LouvainUmError
from louvain_um.options import Budget
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import Policy

if TYPE_CHECKING:
    from louvain_um.profiling.attach.policy import Advice
    from louvain_um.profiling.session import SessionData


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
        option(
            "--output -o SESSION",
            "Session to write: .npz, or .parquet (a folder).  [default: PROGRAM.npz]",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        option(
            "FILE|auto",
            "Place managed memory by call site, as a TOML file says; auto decides from the "
            "run in --from, else from this run's first launches, and writes the file and a C "
            "snippet next to the session.",
        ),
    ] = None,
    recorded: Annotated[
        Path | None,
        option("--from SESSION", "Session of an earlier run of the program, for --policy auto."),
    ] = None,
    machine: Annotated[
        str, option("PROFILE", "For --policy auto: a profile, as for simulate.")
    ] = "h200",
    device_budget: common.Budget = None,
    trace: Annotated[
        bool,
        option(
            "--trace",
            "Count every access of kernels that come as PTX, by page and time: they are "
            "instrumented when the program loads them, and run slower.",
        ),
    ] = False,
    allow_driver_eviction: Annotated[
        bool,
        option(
            "--allow-driver-eviction",
            "Let managed memory exceed what the device has free. The driver then evicts, "
            "which can hang the GPU for all its users until the machine is restarted.",
            common.GPU,
        ),
    ] = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
) -> None:
    """Run a CUDA program unchanged; record and place its memory by call site."""
    from louvain_um.profiling.attach.program import find, run
    from louvain_um.profiling.session.storage import check_target

    path = find(program[0])
    target = output or Path(f"{Path(path).stem}.npz")
    check_target(target, force=force)
    advice = None
    if policy == "auto":
        # The driver evicts only what the device itself has no room for.
        evicts = allow_driver_eviction and device_budget is None
        advice = decided(
            recorded, target, machine, device_budget, evicts=evicts, force=force, quiet=quiet
        )
    elif policy is not None:
        advice = named(policy)
    if policy != "auto":
        common.refuse_given(
            "attach without --policy auto",
            {"--from": recorded is not None, "--device-budget": device_budget is not None,
             "--machine": machine != "h200"},
        )  # fmt: skip
    ended = run(program, advice, allow_driver_eviction=allow_driver_eviction, trace=trace)
    if ended.session is None:
        if not quiet:
            print_note(f"no session of {program[0]} was written: {ended.missing}")
    else:
        ended.session.save(target, force=force)
        if advice is not None and advice.launches:
            write(advice.policy, ended.session, target, force=force)
        if not quiet:
            print_note(*ended.session.notes)
            print_note(f"session written to {target}; to view it: louvain-um report {target}")
    if ended.refused:
        raise LouvainUmError(ended.refused)
    end_as(ended.code)


def named(policy: str) -> Advice:
    """Return a policy by name or file."""
    from louvain_um.profiling.attach.policy import Advice, check

    found = find_policy(policy)
    check(found)
    return Advice(found)


def decided(
    recorded: Path | None, target: Path, machine: str, budget: str | None, *, evicts: bool,
    force: bool, quiet: bool,
) -> Advice:  # fmt: skip
    """Return advice from a recorded run, written as TOML and C; else what decides in the run."""
    from louvain_um.cli.progress import progress_reporter
    from louvain_um.core.compiled import announced
    from louvain_um.placement.machine.profiles import load_machine
    from louvain_um.profiling import load
    from louvain_um.profiling.attach.policy import Advice, decide, policy_name

    profile, name = load_machine(machine), policy_name(target)
    for suffix in (".toml", ".c"):
        check_output(target.with_suffix(suffix), force=force)
    if recorded is None:
        Budget.parse(budget)
        return Advice(Policy(name=name, others="managed"), profile, budget)  # type: ignore[arg-type]
    session = load(recorded)
    with progress_reporter(quiet=quiet) as reporter, announced(reporter):
        reporter.step("comparing policies")
        found = decide(session, profile, budget, name, evicts=evicts)
    write(found, session, target, force=force)
    return Advice(found)


def write(policy: Policy, session: SessionData, target: Path, *, force: bool) -> None:
    """Write a policy as TOML and as C, next to a session."""
    from louvain_um.profiling.attach.policy import snippet, write_toml

    write_toml(policy, target.with_suffix(".toml"), force=force)
    write_text(target.with_suffix(".c"), snippet(policy, session), force=force)


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
