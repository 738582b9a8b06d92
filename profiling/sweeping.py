"""``lu.sweep``: policies × budgets of graphs and of programs, in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from louvain_um.core.atomic_files import temporary_folder
from louvain_um.errors import OptionError, checks_kinds
from louvain_um.options import Budget, Method, Options
from louvain_um.placement.policy.policy import Policy
from louvain_um.placement.program import Program

if TYPE_CHECKING:
    from louvain_um.profiling.sweep.points import Settings, Subject
    from louvain_um.profiling.sweep.results import Sweep

BUDGETS = ("100%", "90%", "70%", "50%", "30%")


@checks_kinds
def sweep(
    graph: Any = None,
    *,
    program: Program | str | None = None,
    policies: str | Path | Policy | Sequence[str | Path | Policy] = "all",
    budgets: int | str | Budget | Sequence[int | str | Budget] = BUDGETS,
    machine: str | Sequence[str] = (),
    device: str = "auto",
    method: Method = "louvain",
    seed: int = 0,
    energy: bool = False,
    ballast: int | str | None = None,
    allow_driver_eviction: bool = False,
    folder: str | Path | None = None,
    force: bool = False,
) -> Sweep:
    """Run or simulate every policy with every budget of device memory.

    Parameters
    ----------
    graph : Graph, anything `as_graph` takes, or mapping of str to these, optional
        Whose communities are detected; a mapping names several. A program of one's own may come
        first, too, as in `plan`.
    program : Program or str, optional
        Instead of a graph, a program of one's own, whose declared accesses are simulated; or, with
        a graph, the name of an algorithm such as "bfs".
    policies : str, path or Policy, or sequence of these
        Memory policies; "all" stands for `base`, `adv1` … `adv9` and `auto`. Of policies, budgets
        and machines, a text may name several with commas between them, as on the command line.
    budgets : str, int or Budget, or sequence of these
        Shares of the in-core footprint, such as "70%"; of a program of one's own also bytes.
    machine : str or sequence of str
        Machines to simulate, as in `plan`.
    device : str
        "cuda" or "cuda:N" measures, "cpu" simulates; "auto" measures if there is a GPU and no
        `machine`. Programs of one's own are simulated.
    method : {"louvain", "leiden"}
    seed : int
    energy : bool
        Repeat each measured run for 2 s, to measure its joules, too.
    ballast : int or str, optional
        Device memory to occupy during measured runs, such as "100GiB".
    allow_driver_eviction : bool
        Continue where the ballast makes the driver evict, which can hang the GPU for all its users.
    folder : path, optional
        Keeps tables, report and recordings; an interrupted sweep continues there.
    force : bool
        Start again in a folder that has results.

    Returns
    -------
    Sweep
        `to_frame()` has one row per run: seconds, bytes moved, faults, and whether the policy can
        keep to the budget.

    Raises
    ------
    OptionError
        Neither graph nor program, or an unknown policy, budget or machine.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.placement.program import Phase, Program, ProgramArray, Stream
    >>> data = ProgramArray(name="data", shape=1 << 20, reads=Stream(8), from_host=1)
    >>> scan = Program(name="scan", arrays=[data], phases=[Phase(name="run", passes=4)])
    >>> found = lu.sweep(program=scan, policies=["base", "auto"], budgets=["100%", "50%"],
    ...                  machine="h200")
    >>> frame = found.to_frame().set_index(["policy", "oversubscription"])
    >>> bool(frame.seconds["auto", 50.0] <= frame.seconds["base", 50.0])
    True
    """
    from louvain_um.profiling.sweep.run import sweep as run

    if isinstance(graph, Program) and program is None:
        graph, program = None, graph
    subjects = _subjects(graph, program)
    settings = _settings(
        subjects, policies, budgets, machine, device, method=method, seed=seed, energy=energy,
        ballast=ballast, allow_driver_eviction=allow_driver_eviction,
    )  # fmt: skip
    if folder is not None:
        return run(subjects, settings, folder, force=force)
    with temporary_folder("louvain-um-sweep") as temporary:
        return run(subjects, settings, temporary / "points")


def _subjects(graph: Any, program: Program | str | None) -> list[Subject]:
    from louvain_um.formats import as_graph
    from louvain_um.profiling.sweep.points import Subject, subject_of

    if isinstance(program, Program):
        if graph is not None:
            raise OptionError(remedy="pass a graph or a program of your own, not both")
        return [Subject(name=program.name, graph=program)]
    if graph is None or (isinstance(graph, Mapping) and not graph):
        raise OptionError(remedy="pass a graph, or a Program of your own as program")
    if program is not None:
        from louvain_um.algorithms.programs import check_name

        check_name(program)
    several = graph if isinstance(graph, Mapping) else {"graph": graph}
    return [subject_of(str(name), as_graph(each), program) for name, each in several.items()]


def _settings(
    subjects: Sequence[Subject], policies: Any, budgets: Any, machine: Any,
    device: str, **how: Any,
) -> Settings:  # fmt: skip
    from louvain_um.profiling.access.recorded_plans import peak_of
    from louvain_um.profiling.simulator import Driver
    from louvain_um.profiling.sweep.points import Settings, parse_policies, places_of, rates_of

    declared = subjects[0].record if isinstance(subjects[0].graph, Program) else None
    machines = _listed("machine", machine)
    Options(device=device)  # checks it
    gpus, measured = places_of(machines, "cpu" if declared and device == "auto" else device)
    given = _listed("budgets", budgets, int, Budget)
    sizes = tuple(Budget.parse(budget) for budget in given)
    if any(budget.fraction is not None and budget.fraction > 1 for budget in sizes):
        raise OptionError("budgets", budgets, "must be sizes or shares of at most 100%")
    named = policies if isinstance(policies, str) else _listed("policies", policies, Path, Policy)
    for option, values in (("budgets", given), ("policies", named)):
        if not values:
            raise OptionError(option, values, "must name at least one")
    both = measured and machines and all(s.record is None for s in subjects)
    return Settings(
        policies=parse_policies(named) if isinstance(named, str) else tuple(named),
        rates=rates_of(sizes, None if declared is None else peak_of(declared())),
        gpus=gpus,
        device=measured,
        **how,
        driver=Driver(eviction="program" if both else "driver"),
    )


def _listed(option: str, given: Any, *single: type) -> list[Any]:
    """Return what was given as a list: one of the types, a text with commas, or several."""
    if isinstance(given, str):
        return [part for each in given.split(",") if (part := each.strip())]
    if isinstance(given, single):
        return [given]
    try:
        return list(given)
    except TypeError:
        raise OptionError(option, given, "must be text, or a list") from None
