"""What messages advise can be done: arguments, functions and options that they name exist."""

import ast
import importlib
import inspect
import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import networkx as nx
import numpy as np
import pytest
import typer.main
from scipy.sparse import csr_array

import louvain_um as lu
from louvain_um.analysis.store_comparison import Comparison
from louvain_um.cli import app
from louvain_um.cli.terminal import with_flags
from louvain_um.distributed.run import detect_on_rank
from louvain_um.errors import install_hint
from louvain_um.placement.policy.policy import register
from louvain_um.profiling.record import profiler
from louvain_um.profiling.session.storage import save as save_session
from louvain_um.profiling.simulator import simulate
from louvain_um.results.communities import Communities
from tests.paths import ROOT

SOURCES = [
    path
    for room in ("louvain_um", "placement", "profiling")
    for path in sorted((ROOT / room).rglob("*.py"))
    if not {"placement", "profiling"} & set(path.relative_to(ROOT / room).parts)
]
FUNCTIONS = (
    lu.read_graph, lu.as_graph, lu.louvain, lu.plan, lu.profile, lu.write_graph, Communities.load,
    Communities.save, register, save_session, simulate, lu.DynamicGraph, lu.DynamicGraph.apply,
    lu.DynamicGraph.add_vertices, lu.read_stream, detect_on_rank, Comparison,
)  # fmt: skip
PYTHON_ONLY = {
    "store='bal'",
    "replace=True",
    "record=True",
    "graph=...",
    "missing='count'",
    "reuse=True",
    "sort=True",
    "exchange='host'",
    "store='rows'",
    "reserve=…",
    "ahead=…",
}
OTHER_TOOLS = {
    "--type", "--trace", "--std", "--fmad", "--generate-line-info", "--relocatable-device-code",
    "--duration",
}  # fmt: skip
OTHER_PREFIXES = ("--cuda-um-", "--gpu-architecture")
ARGUMENT = re.compile(r"(?<![\w.?&])([a-z]\w*)=(True|False|'[^']*'|…|\.\.\.)")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]+")
DOTTED = re.compile(r"\blouvain_um(?:\.\w+)+")


@cache
def messages():
    """Return place and text of every string that is no docstring, f-strings whole."""
    found = []
    for path in SOURCES:
        tree = ast.parse(path.read_text("utf-8"))
        plain = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr | ast.JoinedStr)
            for part in ([node.value] if isinstance(node, ast.Expr) else node.values)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = node.values
                text = "".join(p.value if isinstance(p, ast.Constant) else "…" for p in parts)
            elif isinstance(node, ast.Constant) and id(node) not in plain:
                text = str(node.value)
            else:
                continue
            found.append((f"{path.relative_to(ROOT)}:{node.lineno}", text))
    return found


def flags():
    """Return every option of every command and of the notebook's magic."""
    command = typer.main.get_command(app)
    found, left = set(re.findall(r"--[\w-]+", inspect.getsource(profiler))), [command]
    while left:
        one = left.pop()
        if hasattr(one, "list_commands"):
            left += [one.get_command(None, name) for name in one.list_commands(None)]
        for parameter in one.params:
            found |= {*parameter.opts, *parameter.secondary_opts}
    # Commands of `generate` are made when they are called.
    return found | {"--help"} | {text for _, text in messages() if FLAG.fullmatch(text)}


def test_arguments_in_messages_exist_and_have_options():
    known = {name for function in FUNCTIONS for name in inspect.signature(function).parameters}
    known |= {"ahead", "reserve"}  # of stores, in their names
    seen = set()
    for where, text in messages():
        for found in ARGUMENT.finditer(text):
            assert found[1] in known, f"{where}: {found[0]}"
            if found[0] not in PYTHON_ONLY:
                assert found[0] not in with_flags(text), f"{where}: {with_flags(text)}"
            seen.add(found[1])
    assert {"symmetrize", "weighted", "device", "memory", "force", "format"} <= seen


def test_options_in_messages_exist():
    known = flags() | OTHER_TOOLS
    shown = [(where, flag) for where, text in messages() for flag in FLAG.findall(with_flags(text))]
    assert len(shown) > 50
    for where, flag in shown:
        assert flag in known or flag.startswith(OTHER_PREFIXES), f"{where}: {flag}"


def test_functions_in_messages_exist():
    for where, text in messages():
        for name in DOTTED.findall(text):
            module, _, attribute = name.rpartition(".")
            assert exists(module, attribute), f"{where}: {name}"


def exists(module, attribute):
    try:
        return hasattr(importlib.import_module(module), attribute) or bool(
            importlib.import_module(f"{module}.{attribute}")
        )
    except ImportError:
        return module.count(".") > 0 and exists(*module.rpartition(".")[::2])


def directed_inputs(folder):
    (folder / "d.csv").write_text("Source,Target,Type\na,b,Directed\nb,c,Directed\n")
    (folder / "d.gml").write_text(
        "graph [ directed 1 node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ] ]"
    )
    (folder / "d.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n"
    )
    (folder / "d.graph").write_text("3 2\n2 3\n\n\n")
    one_way = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    paths = {path.name: path for path in folder.iterdir()}
    return paths | {
        "networkx": nx.DiGraph([(0, 1), (1, 2)]), "matrix": one_way, "sparse": csr_array(one_way),
    }  # fmt: skip


CALLS: dict[str, Callable[[Any], Any]] = {
    "louvain": lambda g: lu.louvain(g, device="cpu"),
    "leiden": lambda g: lu.leiden(g, device="cpu"),
    "plan": lu.plan,
    "profile": lambda g: lu.profile(g, device="cpu"),
    "modularity": lambda g: (
        lu.modularity(g, [0, 0, 0][: lu.as_graph(g).n_vertices])
        if isinstance(g, lu.Graph)
        else lu.modularity(g, [0, 0, 0])
    ),
    "as_graph": lu.as_graph,
    "fit": lambda g: lu.Louvain(device="cpu").fit(g),
}
NAMES = ("d.csv", "d.gml", "d.mtx", "d.graph", "networkx", "matrix", "sparse")


@pytest.mark.parametrize(
    ("call", "name"),
    [(call, name) for call in CALLS for name in NAMES if call != "profile" or name == "sparse"],
)
def test_advice_on_directed_graphs_works(call, name, tmp_path):
    graph = directed_inputs(tmp_path)[name]
    with pytest.raises(lu.GraphError) as caught:
        CALLS[call](graph)
    follow(str(caught.value), CALLS[call], graph)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "source,target,weight\n0,1,0.5\n1,2,much\n"),
        ("b.txt", "0 1 0.5\n1 2 nan\n"),
        ("d.noidea", "0 1\n1 2\n"),
    ],
)
@pytest.mark.parametrize("call", ["louvain", "plan", "as_graph", "fit"])
def test_advice_on_files_works(call, name, text, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(lu.GraphError) as caught:
        CALLS[call](tmp_path / name)
    follow(str(caught.value), CALLS[call], tmp_path / name)


def follow(message, call, graph):
    """Do what a message advises."""
    assert "\n" not in message
    advice = re.search(r"(as_graph|read_graph)\(…, (\w+)=([^)]+)\)", message)
    if advice:
        value = {"…": "edges"}.get(advice[3], advice[3] == "True")
        graph = getattr(lu, advice[1])(graph, **{advice[2]: value})
        call(graph)
        return
    found = ARGUMENT.search(message)
    assert found, message
    if "fit" in message or call is CALLS["fit"]:
        lu.Louvain(device="cpu", **{found[1]: True}).fit(graph)
    else:
        assert call is CALLS["as_graph"]
        lu.as_graph(graph, **{found[1]: True})


def test_options_of_reading_are_not_options_of_a_run():
    for call in (lu.louvain, lu.leiden):
        with pytest.raises(TypeError, match=r"'symmetrize'; pass as_graph\(…, symmetrize=…\)$"):
            call(nx.DiGraph([(0, 1)]), symmetrize=True)
        with pytest.raises(TypeError, match=r"'weighted'; pass as_graph\(…, weighted=…\)$"):
            call("graph.csv", weighted=False)
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'speed'$"):
            call("graph.csv", speed=2)


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("random_state", 3, "seed"),
        ("resolution_parameter", 2.0, "resolution"),
        ("initial_membership", [0] * 34, "initial"),
        ("is_membership_fixed", [True] * 34, "fixed"),
        ("max_comm_size", 5, "max_size"),
        ("objective_function", "cpm", "objective"),
        ("n_jobs", 1, "threads"),
        ("resolutoin", 2.0, "resolution"),
        ("max_levels", 1, "max_level"),
    ],
)
def test_names_of_other_libraries_and_typos_lead_to_options(name, value, advice):
    with pytest.raises(TypeError, match=f"'{name}'; pass {advice}=…$"):
        lu.leiden(nx.karate_club_graph(), **{name: value})
    lu.leiden(nx.karate_club_graph(), device="cpu", **{advice: value})


def test_options_by_position_and_lists_of_weights_are_answered():
    louvain = lu.louvain
    with pytest.raises(TypeError, match=r"pass options by name, as in resolution=…$"):
        louvain(nx.karate_club_graph(), 1.2)
    with pytest.raises(TypeError, match=r"'weights'; pass as_graph\(…, weight=…\)$"):
        louvain(nx.karate_club_graph(), weights="weight")
    with pytest.raises(TypeError, match=r"'max_iter'; pass n_iterations=…$"):
        louvain(nx.karate_club_graph(), max_iter=3)
    with pytest.raises(TypeError, match=r"'n_clusters'$"):
        louvain(nx.karate_club_graph(), n_clusters=3)


def test_advice_on_saving_works(tmp_path):
    result = lu.louvain(nx.karate_club_graph(), device="cpu")
    with pytest.raises(lu.LouvainUmError) as caught:
        result.save(tmp_path / "labels.csv")
    advice = re.search(r"(louvain_um[\w.]*)\.(\w+)\(result, path\)$", str(caught.value))
    assert advice
    getattr(importlib.import_module(advice[1]), advice[2])(result, tmp_path / "labels.csv")
    assert (tmp_path / "labels.csv").exists()


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'louvain-um[charts]'"),
        ({"url": "file:///a%20b/clone", "dir_info": {"editable": True}}, "-e '/a b/clone[charts]'"),
        ({"url": "file:///a/b.whl", "archive_info": {}}, "'louvain-um[charts] @ file:///a/b.whl'"),
        (
            {"url": "https://x/y", "vcs_info": {"vcs": "git"}},
            "'louvain-um[charts] @ git+https://x/y'",
        ),
    ],
)
def test_extras_are_installed_from_where_the_package_was(monkeypatch, tmp_path, origin, command):
    about = tmp_path / "louvain_um-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: louvain-um\nVersion: 0.1.0\n")
    if origin:
        (about / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)
    assert install_hint("charts").endswith(command)
