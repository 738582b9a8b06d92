"""``louvain-um resolution``: many resolutions, and the plateaus between which to choose."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from louvain_um.cli import common, terminal
from louvain_um.cli import reading as graphs
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import going_on, has_packages, with_exit_code
from louvain_um.cli.reading import DEFAULT_READING, GraphArgument, Reading
from louvain_um.cli.terminal import echo, with_flags
from louvain_um.errors import OptionError
from louvain_um.options import Options

if TYPE_CHECKING:
    from louvain_um.analysis.resolution import ResolutionProfile
    from louvain_um.graph.graph import Graph

PICTURE: Final = "profile.svg"


@with_exit_code
def resolution(
    graph: GraphArgument,
    output: Annotated[
        Path | None,
        option(
            "--output -o DIR",
            "Folder for tables, JSON and a picture; an interrupted search continues there.",
        ),
    ] = None,
    low: Annotated[
        float | None,
        option("X", "Lowest resolution.  [default: 0.1; with cpm by the graph's density]"),
    ] = None,
    high: Annotated[
        float | None, option("X", "Highest resolution.  [default: 10; with cpm by the weights]")
    ] = None,
    points: Annotated[int, option("N", "Maximum number of resolutions to try.")] = 40,
    runs: Annotated[int, option("N", "Runs with different seeds at each resolution.")] = 3,
    warm_starts: Annotated[
        bool,
        option(
            "--warm-starts",
            "At each resolution, also start from the best communities of others, on the CPU.",
        ),
    ] = False,
    top: Annotated[int, option("N", "Plateaus to print.", min=0)] = common.TOP,
    method: common.MethodToRun = "louvain",
    detecting: common.Detecting = common.Detecting(),
    writing: common.Writing = common.Writing(),
    reading: Reading = DEFAULT_READING,
) -> None:
    """Detect communities at many resolutions; print the plateaus to choose from."""
    from louvain_um.cli.progress import counted_steps

    common.refuse_top(top, json=writing.json)
    options = Options(method=method, **asdict(detecting))
    drawn = False
    if output is not None:
        from louvain_um.core.run_folder import check_folder

        if output.suffix in (".svg", ".png", ".pdf", ".csv", ".json", ".html"):
            raise OptionError(
                "output",
                str(output),
                f"pass its name without {output.suffix}; it gets tables and profile.svg",
                problem="the output is a folder",
            )
        check_folder(output, force=writing.force)
        drawn = has_packages(PICTURE, "charts", "matplotlib", quiet=writing.quiet)
    with counted_steps(quiet=writing.quiet) as steps:
        steps(0, 0, f"reading {graph}")
        loaded = reading.suited_to(options.objective).read(graph)
        asked = {"low": low, "high": high, "points": points, "runs": runs,
                 "warm_starts": warm_starts}  # fmt: skip
        profile = search(loaded, options, asked, output, steps, force=writing.force)
        if output is not None and drawn:
            draw(profile, output / PICTURE)
    graphs.print_notes({graph: loaded}, quiet=writing.quiet)
    if writing.json:
        from louvain_um.analysis.profile import summary

        common.print_json(summary(profile) | {"notes": [with_flags(note) for note in loaded.notes]})
    else:
        show(profile, graph, output, top, quiet=writing.quiet)


def search(
    graph: Graph, options: Options, asked: dict[str, Any], output: Path | None, steps: Any,
    *, force: bool,
) -> ResolutionProfile:  # fmt: skip
    """Return the profile; with a folder, keep each point there, and write tables."""
    from louvain_um.analysis.profile import ProfileStore
    from louvain_um.analysis.resolution import resolution_profile
    from louvain_um.profiling.sweep.points import digest_of

    sought = {"objective": options.objective, "effort": options.effort,
              "n_iterations": options.n_iterations, "best_of": options.best_of}  # fmt: skip
    run = {"method": options.method, "seed": options.seed, "device": options.device,
           "threads": options.threads, **sought, "progress": steps}  # fmt: skip
    if output is None:
        return resolution_profile(graph, **asked, **run)
    # Fewer points are a part of more: neither these nor the device change what was found.
    setup = {name: value for name, value in asked.items() if name != "points"}
    setup |= {"method": options.method, "seed": options.seed}
    # A folder names only those that differ from the default, as older ones know none of them.
    usual = Options()
    setup |= {name: value for name, value in sought.items() if value != getattr(usual, name)}
    setup |= {"vertices": graph.n_vertices, "arcs": graph.n_arcs, "weight": graph.total_weight}
    setup["digest"] = digest_of(graph)
    with going_on(force=force), ProfileStore(output, setup, force=force) as store:
        profile = resolution_profile(graph, **asked, **run, known=store.points, on_point=store.add)
        store.write(profile)
    return profile


def draw(profile: ResolutionProfile, path: Path) -> None:
    """Write the picture."""
    from louvain_um.drawing.plots import figure, save_figure

    drawn, axes = figure("sizes")
    profile.plot(ax=axes)
    save_figure(drawn, path, force=True)


def show(
    profile: ResolutionProfile, source: str, output: Path | None, top: int, *, quiet: bool
) -> None:
    """Print the widest plateaus, by ascending resolution."""
    from louvain_um.results.display import count, score

    plateaus = profile.plateaus
    widest = sorted(plateaus, key=lambda plateau: -plateau.octaves)[:top]
    if not quiet:
        echo(terminal.graph_line(profile.graph, source))
    tried = f"{len(profile.points)} resolutions from {profile.low:g} to {profile.high:g}"
    many = count(len(plateaus), "plateau", "plateaus")
    if len(widest) < len(plateaus):
        many += f", the widest {len(widest)} shown; --top {len(plateaus)} shows all"
    echo(f"{tried}: {many}")
    if widest:
        table = terminal.new_table("from", "to", "octaves", "communities", "value", "stability",
                                 "detect with")  # fmt: skip
        objective = profile.options.objective
        also = "" if objective == "modularity" else f"--objective {objective} "
        for plateau in sorted(widest, key=lambda plateau: plateau.low):
            table.add_row(
                f"{plateau.low:.3g}",
                f"{plateau.high:.3g}",
                f"{plateau.octaves:.2f}",
                f"{plateau.communities:,}",
                score(plateau.value),
                f"{plateau.stability:.2f}",
                f"{also}--resolution {plateau.resolution:.3g}",
            )
        echo("")
        terminal.print_table(table)
    if output is not None and not quiet:
        made = f"tables and {PICTURE}" if (output / PICTURE).exists() else "tables"
        echo(f"\n{made} are in {output}")
