"""``louvain-um ensemble``: how far seeds agree, and a consensus."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from louvain_um.cli import common, terminal
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.cli.reading import DEFAULT_READING, GraphArgument, Reading
from louvain_um.cli.terminal import echo, with_flags
from louvain_um.errors import GraphWarning, OptionError
from louvain_um.formats import write_graph
from louvain_um.formats.file_types import holds_communities

if TYPE_CHECKING:
    from louvain_um.analysis.ensemble import Ensemble


@with_exit_code
def ensemble(
    graph: GraphArgument,
    output: Annotated[
        Path | None,
        option(
            "--output -o LABELS",
            "File for the consensus community of each vertex, with its certainty: .csv, "
            ".tsv, .parquet, .npz or .json; or the graph with both: .gexf, .graphml or .cyjs.",
        ),
    ] = None,
    runs: Annotated[int, option("N", "Runs with different seeds.")] = 20,
    top: Annotated[int, option("N", "Number of communities to print.", min=0)] = common.TOP,
    method: common.MethodToRun = "louvain",
    resolution: common.Resolution = 1.0,
    threshold: common.Threshold = 1e-7,
    detecting: common.Detecting = common.Detecting(),
    safe_csv: common.SafeCsv = False,
    writing: common.Writing = common.Writing(),
    reading: Reading = DEFAULT_READING,
) -> None:
    """Detect with many seeds; print their agreement and a consensus."""
    from louvain_um.cli.detection import check_output
    from louvain_um.cli.progress import counted_steps

    common.refuse_top(top, json=writing.json)
    if output is not None:
        check_output(output, graph, hierarchy=False, safe_csv=safe_csv, force=writing.force)
    elif safe_csv:
        raise OptionError(remedy="--safe-csv needs a file to write: add -o labels.csv")
    with counted_steps(quiet=writing.quiet) as steps, warnings.catch_warnings():
        from louvain_um.analysis.ensemble import ensemble as find

        # The notes say what the warning does.
        warnings.simplefilter("ignore", GraphWarning)
        steps(0, 0, f"reading {graph}")
        loaded = reading.suited_to(detecting.objective).read(graph)
        found = find(
            loaded, runs=runs, method=method, resolution=resolution, threshold=threshold,
            **asdict(detecting), progress=steps,
        )  # fmt: skip
        if output is not None:
            steps(runs, runs, f"writing {output}")
            write(output, found, force=writing.force, safe_csv=safe_csv)
    notes = (*loaded.notes, *found.notes)
    if not writing.quiet:
        print_note(*notes)
    if writing.json:
        common.print_json(summary(found) | {"notes": [with_flags(note) for note in notes]})
    else:
        show(found, graph, output, top, quiet=writing.quiet)


def write(output: Path, found: Ensemble, *, force: bool, safe_csv: bool) -> None:
    """Write the consensus with the certainty of each vertex."""
    from louvain_um.formats.labels import write_labels

    extra = {"certainty": found.certainty}
    if holds_communities(str(output)):
        write_graph(output, found.consensus, attributes=extra, force=force)
    else:
        write_labels(found.consensus, output, more=extra, force=force, safe_csv=safe_csv)


def summary(found: Ensemble) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    consensus = found.consensus
    return {
        "schema": 1,
        "graph": terminal.graph_numbers(found.graph),
        "options": found.consensus.provenance["options"],
        "runs": [
            {"seed": seed, "communities": int(labels.max(initial=0)) + 1, "value": value}
            for seed, labels, value in zip(
                found.seeds, found.partitions, found.values.tolist(), strict=True
            )
        ],
        "stability": found.stability,
        "agreement": found.agreement.tolist(),
        "consensus": {
            "communities": consensus.n_communities,
            "objective": consensus.objective,
            "value": consensus.value,
            "modularity": consensus.modularity,
            "sizes": consensus.sizes.tolist(),
            "rounds": found.rounds,
            "converged": found.converged,
        },
        "certainty": {
            "mean": float(found.certainty.mean()) if len(found.certainty) else 1.0,
            "below_half": int((found.certainty < 0.5).sum()),
        },
    }


def show(found: Ensemble, source: str, output: Path | None, top: int, *, quiet: bool) -> None:
    """Print the runs' agreement, and the largest communities of the consensus."""
    import numpy as np

    from louvain_um.results.display import count, objective_name, objective_text, score

    result = found.consensus
    if not quiet:
        echo(terminal.graph_line(found.graph, source))
    shown = "{:.6g}".format if result.objective == "cpm" else score
    low, high = shown(float(found.values.min())), shown(float(found.values.max()))
    echo(
        f"{count(found.runs, 'run', 'runs')}: stability {found.stability:.2f} (mean adjusted Rand "
        f"index), {objective_name(result)} {low} to {high}"
    )
    many = count(result.n_communities, "community", "communities")
    echo(f"consensus: {many}, {objective_text(result)}")
    if result.n_communities and top:
        sums = np.bincount(result.labels, found.certainty)
        room = max(20, terminal.safe_console().width - 30)
        table = terminal.new_table("#", "size", "certainty", "<members")
        for c, members in enumerate(terminal.largest(result, room, top)):
            size = int(result.sizes[c])
            listed = terminal.listing(members, size, room)
            table.add_row(str(c), f"{size:,}", f"{sums[c] / size:.2f}", listed)
        echo("")
        terminal.print_table(table)
    if output is not None and not quiet:
        vertices = count(result.n_vertices, "vertex", "vertices")
        echo(f"\ncommunities of {vertices} written to {output}")
