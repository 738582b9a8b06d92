"""``louvain-um draw``: a picture of a graph's communities, or a page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from louvain_um.cli import common
from louvain_um.cli import reading as graphs
from louvain_um.cli.common import option, refuse_given
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.cli.reading import DEFAULT_READING, GraphArgument, Reading, refuse_two_inputs
from louvain_um.cli.terminal import echo
from louvain_um.core.atomic_files import check_output, write_text
from louvain_um.errors import OptionError, require_packages
from louvain_um.options import Method, Options

if TYPE_CHECKING:
    from louvain_um.graph.graph import Graph
    from louvain_um.results.communities import Communities
    from louvain_um.results.description import Description

SUFFIXES = (".png", ".svg", ".pdf", ".html")


PictureKind = Literal["auto", "graph", "communities", "sizes", "dendrogram"]


@with_exit_code
def draw(
    graph: GraphArgument,
    output: Annotated[
        Path,
        option(
            "--output -o PICTURE",
            "File to write: .png, .svg, .pdf, or .html for a page to explore offline.",
        ),
    ],
    kind: Annotated[
        PictureKind,
        option(
            "",
            "What a picture shows: each vertex (graph), each community, a histogram of sizes, "
            "or the hierarchy. auto is graph up to 1,500 vertices, else communities. A page shows "
            "both.",
        ),
    ] = "auto",
    labels: Annotated[
        str | None,
        option("--labels LABELS", "Label file with the communities to draw.  [default: detected]"),
    ] = None,
    nodes: Annotated[
        Path | None,
        option(
            "TABLE",
            "For a page: CSV, TSV or Parquet file with a row for each vertex; the page says "
            "what distinguishes each community.",
        ),
    ] = None,
    method: Annotated[Method, option("", "Method that detects communities.")] = "louvain",
    resolution: common.Resolution = 1.0,
    detecting: common.Detecting = common.Detecting(),
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
    reading: Reading = DEFAULT_READING,
) -> None:
    """Draw a graph with its communities."""
    from louvain_um.cli.progress import progress_reporter

    options = Options(method=method, resolution=resolution, **asdict(detecting))
    if output.suffix.lower() not in SUFFIXES:
        raise OptionError("output", output.name, f"must end in {', '.join(SUFFIXES)}")
    if output.suffix.lower() == ".html" and kind != "auto":
        raise OptionError(remedy="a page shows graph and communities; leave out --kind")
    page = output.suffix.lower() == ".html"
    if labels is not None:
        seeded = kind not in ("sizes", "dendrogram")  # positions
        refuse_given(
            "--labels, which draws what was detected before,",
            {"--method": options.method != "louvain", "--effort": options.effort != "default",
             "--n-iterations": options.n_iterations is not None, "--best-of": options.best_of != 1,
             "--device": options.device != "auto", "--seed": options.seed != 0 and not seeded},
        )  # fmt: skip
    refuse_two_inputs(graph, labels, nodes)
    if nodes is not None and not page:
        raise OptionError(remedy="--nodes is for pages: name an output that ends in .html")
    springs = () if kind in ("sizes", "dendrogram") else ("networkx",)
    require_packages("drawing", "jinja2" if page else "matplotlib", *springs)
    if nodes is not None:
        require_packages("--nodes", "pandas")
        from louvain_um.formats.attributes import table_of

        attributes = table_of(nodes)
    graphs.refuse_same(graph, output)
    check_output(output, force=force)
    with progress_reporter(quiet=quiet) as reporter:
        from louvain_um.api import run
        from louvain_um.core.compiled import announced

        reporter.step(f"reading {graph}")
        with announced(reporter):
            loaded = reading.suited_to(options.objective).read(graph)
            given = None if labels is None else read_given(labels, loaded, options)
        result = run(loaded, options, reporter) if given is None else given
        described = None
        if nodes is not None:
            described = result.describe(attributes)
        reporter.step(f"drawing {output}")
        name = graphs.name_of(graph)
        with announced(reporter):
            drawn = (
                write_page(output, result, described, name, options.seed, force=force)
                if page
                else write_picture(output, result, kind, name, options.seed, force=force)
            )
    graphs.print_notes({graph: loaded}, quiet=quiet)
    if not quiet:
        print_note(*(() if described is None else described.notes))
        echo(f"{drawn} drawn to {output}")


def read_given(path: str, graph: Graph, options: Options) -> Communities:
    """Return the communities in a label file, as a result of the graph."""
    from louvain_um.formats.labels import read_labels
    from louvain_um.results.communities import Communities

    labels = read_labels(path)
    given = dict(zip(labels.vertices.tolist(), labels.communities.tolist(), strict=True))
    if graph.names is not None and graph.names.dtype.kind not in "iu":
        given = {str(vertex): community for vertex, community in given.items()}
    return Communities.of(graph, given, resolution=options.resolution, objective=options.objective)


def write_page(
    output: Path,
    result: Communities,
    described: Description | None,
    name: str,
    seed: int,
    *,
    force: bool,
) -> str:
    """Write the page; return what it shows."""
    from louvain_um.drawing.reports import page
    from louvain_um.results.display import count

    labels = None if described is None else described.labels
    text = page(result, result.require_graph(), name, seed, labels)
    write_text(output, text, force=force)
    return count(result.n_communities, "community", "communities")


def write_picture(
    output: Path, result: Communities, kind: PictureKind, name: str, seed: int, *, force: bool
) -> str:
    """Write the picture; return what it shows."""
    from louvain_um.drawing.plots import figure, kind_for, save_figure
    from louvain_um.results.display import count

    graph = result.require_graph()
    many = count(result.n_communities, "community", "communities")
    chosen = kind_for(graph) if kind == "auto" else kind
    drawn, axes = figure(chosen)
    result.plot(chosen, ax=axes, seed=seed)
    axes.set_title(f"{name}: {axes.get_title()}", fontsize=11, parse_math=False)
    save_figure(drawn, output, force=force)
    what = {"sizes": "sizes", "dendrogram": "hierarchy"}.get(chosen)
    return f"{what} of {many}" if what else many
