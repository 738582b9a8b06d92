"""The house as its plan says: rooms, arrows, packaging, and pages that tell the truth."""

import ast
import functools
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import networkx as nx
import pytest

import louvain_um
from tests.paths import ROOT

HOUSE = ROOT
PROJECT = tomllib.loads((HOUSE / "pyproject.toml").read_text())
README = (HOUSE / "README.md").read_text()
OUTSIDE = ("placement", "profiling")


def tracked():
    """Return the project's files, as version control lists them."""
    done = subprocess.run(
        ["git", "-C", HOUSE, "ls-files", "-z"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    return [HOUSE / name for name in done.stdout.split("\0") if name and (HOUSE / name).exists()]


def modules():
    """Return every module of the package, named as it is imported."""
    roots = [("louvain_um", HOUSE / "louvain_um")]
    roots += [(f"louvain_um.{name}", HOUSE / name) for name in OUTSIDE]
    found = []
    for name, root in roots:
        for path in sorted(root.rglob("*.py")):
            inside = path.relative_to(root)
            if name == "louvain_um" and inside.parts[0] in OUTSIDE:
                continue
            parts = [p for p in inside.with_suffix("").parts if p != "__init__"]
            found.append((".".join([name, *parts]), path))
    return found


def imports_in(text):
    """Return the imports anywhere in a module: at its top, in functions, for types."""
    nodes = ast.walk(ast.parse(text))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


@functools.cache
def import_nodes(path):
    return imports_in(path.read_text("utf-8"))


def imports(path):
    """Return what a module imports, with each name taken from a package."""
    found = set()
    for node in import_nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("name", OUTSIDE)
def test_links_lead_to_the_rooms_at_the_top(name):
    link = HOUSE / "louvain_um" / name
    assert link.is_symlink()
    assert link.readlink() == Path("..") / name
    assert not (HOUSE / "louvain_um" / name / name).exists()


def test_packages_and_their_files_are_shipped():
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["*"]
    for path in tracked():
        if path.relative_to(HOUSE).parts[0] not in ("louvain_um", *OUTSIDE) or path.is_symlink():
            continue
        # A folder without __init__.py is no package.
        assert (path.parent / "__init__.py").exists(), path
        assert path.suffix == ".py" or any(fnmatch(path.name, p) for p in patterns), path
    assert (HOUSE / "louvain_um/py.typed").exists()


def test_one_version():
    assert PROJECT["project"]["version"] == louvain_um.__version__
    assert f"## {louvain_um.__version__}" in (HOUSE / "CHANGELOG.md").read_text()


def test_extras():
    extras = PROJECT["project"]["optional-dependencies"]
    assert {"cuda12", "cuda13", "formats", "notebooks", "test", "dev"} <= set(extras)
    names = {re.split(r"[<>=;\[ ]", text)[0] for text in PROJECT["project"]["dependencies"]}
    assert names == {"numpy", "scipy", "numba", "typer", "rich"}


FORBIDDEN = {
    "louvain_um.cpu": ("cupy", "cupyx", "cuda", "louvain_um.placement", "louvain_um.profiling",
                       "louvain_um.gpu", "louvain_um.api", "louvain_um.cli"),
    "louvain_um.gpu": ("louvain_um.cpu", "louvain_um.profiling", "louvain_um.api",
                       "louvain_um.cli"),
    "louvain_um.placement": ("louvain_um.profiling", "louvain_um.cpu", "louvain_um.gpu",
                             "louvain_um.api", "louvain_um.cli"),
    "louvain_um.profiling": ("louvain_um.cli",),
    "louvain_um.api": ("louvain_um.cli",),
    "louvain_um.dynamic": ("louvain_um.api", "louvain_um.profiling", "louvain_um.cli"),
    "louvain_um.formats": ("louvain_um.api", "louvain_um.cli", "louvain_um.cpu", "louvain_um.gpu"),
}  # fmt: skip


def test_arrows():
    crossed = []
    for name, path in modules():
        for room, forbidden in FORBIDDEN.items():
            if f"{name}.".startswith(f"{room}."):
                walls = tuple(f"{wall}." for wall in forbidden)
                crossed += [f"{name}: {i}" for i in imports(path) if f"{i}.".startswith(walls)]
    assert crossed == []


OUTSIDE_WORLD = (
    "_ctypes", "_posixsubprocess", "_socket", "asyncio", "cffi", "cloudpickle", "code", "ctypes",
    "dask", "dill", "distributed", "fcntl", "fsspec", "ftplib", "http", "joblib", "marshal",
    "mpi4py", "multiprocessing", "pickle", "pty", "requests", "runpy", "shelve", "socket",
    "socketserver", "ssl", "subprocess", "urllib", "webbrowser", "xmlrpc",
)  # fmt: skip
"""Libraries that start processes, open connections, call into other libraries or run what they
read."""

STARTS = re.compile(
    r"os\.(system|popen|fork|forkpty|startfile|(posix_)?spawn\w*|exec\w+)\b"
    r"|\bProcessPoolExecutor\b|\bctypeslib\b|\ballow_pickle=True|\bload_library\b"
    r"|(?<![\w.])(eval|exec|__import__)\("
)

IMPORTS_BY_NAME = re.compile(r'(?:import_module|require)\("(\w+)')

GOES_OUTSIDE = {
    "louvain_um.cli.commands.warmup": {"subprocess"},
    "louvain_um.cli": {"ctypes"},
    "louvain_um.core.atomic_files": {"ctypes", "fcntl"},
    "louvain_um.core.compiled": {"pickle"},
    "louvain_um.core.headroom": {"ctypes"},
    "louvain_um.distributed.carriers.dask_rank": {"asyncio", "distributed"},
    "louvain_um.distributed.carriers.dask_session": {"asyncio", "distributed"},
    "louvain_um.distributed.carriers.mpi": {"mpi4py"},
    "louvain_um.distributed.cluster": {"distributed", "mpi4py"},
    "louvain_um.distributed.files.part_folder": {"fsspec"},
    "louvain_um.distributed.partition": {"pickle"},
    "louvain_um.formats.cells": {"fcntl", "subprocess"},
    "louvain_um.gpu.runtime.device": {"ctypes"},
    "louvain_um.placement.machine.calibrate": {"ctypes"},
    "louvain_um.placement.machine.profiles": {"ctypes"},
    "louvain_um.placement.memory.host": {"ctypes", "ctypeslib"},
    "louvain_um.placement.memory.copies": {"ctypes"},
    "louvain_um.profiling.attach.program": {"ctypes", "subprocess"},
    "louvain_um.profiling.attach.policy": {"socket"},
    "louvain_um.profiling.attach.sites": {"subprocess"},
    "louvain_um.profiling.attach.tracing": {"subprocess"},
    "louvain_um.profiling.sources.cupti": {"ctypes"},
    "louvain_um.profiling.sources.cupti_records": {"ctypes"},
    "louvain_um.profiling.simulator.driver.user_functions": {"runpy"},
    "louvain_um.profiling.sources.uvm_driver": {"ctypes"},
}


def test_only_these_modules_start_processes_or_open_connections():
    found = {}
    for name, path in modules():
        used = (each for each in imports(path) if not each.startswith("urllib.parse"))
        roots = {each.partition(".")[0] for each in used} & {*OUTSIDE_WORLD}
        text = path.read_text()
        roots |= {match[0] for match in STARTS.finditer(text)}
        roots |= {*IMPORTS_BY_NAME.findall(text)} & {*OUTSIDE_WORLD}
        if roots:
            found[name] = roots
    assert found == GOES_OUTSIDE


def test_only_these_modules_change_settings_of_the_process():
    # Other threads have them, too, and two that change them at once leave them changed.
    settings = r"catch_warnings|simplefilter|field_size_limit|rc_context|chdir|umask|setlocale"
    found = {name for name, path in modules() if re.search(settings, path.read_text())}
    assert {name for name in found if not name.startswith("louvain_um.cli.")} == {
        "louvain_um.drawing.plots",  # one thread at a time
        "louvain_um.formats.labels.text",  # one thread at a time
        "louvain_um.results.given_labels",  # results of Infomap
    }


@functools.cache
def names_in(module):
    """Return the names that a module's text binds, and the modules in it."""
    path = dict(modules())[module]
    nodes = list(ast.walk(ast.parse(path.read_text())))
    found = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    found |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and module == "louvain_um":
            found.add(str(node.value))  # names of the package are imported when asked for
    inside = {name.removeprefix(f"{module}.") for name, _ in modules() if name != module}
    return found | {name for name in inside if "." not in name}


def code_of(path):
    """Return the code of a script, or of a notebook's cells."""
    if path.suffix == ".py":
        return path.read_text()
    cells = json.loads(path.read_text())["cells"]
    lines = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code").split("\n")
    return "\n".join("" if line.startswith(("%", "!")) else line for line in lines)


@pytest.mark.parametrize("folder", ["benchmarks", "notebooks"])
def test_what_is_imported_elsewhere_is_there(folder):
    # Most of these need a device, or minutes: no test runs them after each change.
    known = {name for name, _ in modules()}
    paths = [p for p in tracked() if folder in p.parts and p.suffix in (".py", ".ipynb")]
    assert paths
    for path in paths:
        for node in ast.walk(ast.parse(code_of(path))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("louvain_um"):
                assert node.module in known, f"{path.name} imports {node.module}"
                missing = {alias.name for alias in node.names} - names_in(node.module)
                assert not missing, f"{path.name} imports {missing} of {node.module}"


def test_the_rule_needs_nothing():
    assert {i.split(".")[0] for i in imports(HOUSE / "louvain_um/core/rules.py")} <= {
        "__future__",
        "typing",
    }


def test_readme_opens_with_two_commands():
    block = re.search(r"```sh\n(.*?)```", README, re.DOTALL)[1]
    lines = [shlex.split(line, comments=True) for line in block.strip().splitlines()]
    assert lines == [
        ["python3", "run.py", "louvain-um", "detect", "example:les-miserables"],
        ["python3", "run.py", "pytest"],
    ]
    # What is promised to a newcomer is what a change must pass.
    assert "\npython3 run.py pytest\n" in (HOUSE / ".ci/run").read_text()


def test_readme_shows_what_the_first_command_prints():
    from typer.testing import CliRunner

    from louvain_um.cli import app

    shown = re.search(r"prints\n\n```\n(.*?)```", README, re.DOTALL)[1]
    arguments = ["detect", "example:les-miserables", "--device", "cpu"]
    printed = CliRunner().invoke(app, arguments).stdout

    def reported(text):
        return [re.sub(r"\d+\.\d+ s on \S+", "… s", line).strip() for line in text.splitlines()]

    assert reported(printed) == reported(shown)


def test_readme_commands_run(tmp_path, monkeypatch):
    from typer.main import get_command
    from typer.testing import CliRunner

    from louvain_um.cli import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUVAIN_UM_MACHINES", str(tmp_path / "machines"))
    edges = "source,target\nann,bob\nbob,cid\ncid,ann\n"
    Path("friends.csv").write_text(edges)
    Path("people.csv").write_text("id,team\nann,red\nbob,red\ncid,blue\n")
    Path("calls.csv").write_text("caller,callee,date\nann,bob,2026-01-31\nbob,cid,2026-02-02\n")
    ran = set()
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)[1:]:
        for line in block.splitlines():
            piped = line.rpartition("| ")[2]
            words = shlex.split(piped, comments=True)
            if words[0] != "louvain-um":
                continue
            words = [word.replace("100000", "2000") for word in words]
            done = CliRunner().invoke(app, words[1:], input=edges if words[-1] == "-" else None)
            # Where there is no GPU, a command for one says so.
            needs_gpu = "--device cuda" in line or words[1] == "calibrate"
            allowed = (0, 3) if needs_gpu else (0,)
            assert done.exit_code in allowed, (line, done.stderr)
            ran.add(words[1])
    assert ran <= set(get_command(app).commands)
    assert ran >= {"detect", "plan", "simulate", "sweep", "profile", "report"}
    made = sorted(path.name for path in tmp_path.iterdir())
    assert {"found.csv", "calls", "report.html"} <= set(made)
    names = [f"{name}/" if Path(name).is_dir() else name for name in made if name != "machines"]
    assert ignored(names) == set(names)


def ignored(names):
    """Return those of the names at the top of the project that version control ignores."""
    tracked()
    done = subprocess.run(
        ["git", "-C", HOUSE, "check-ignore", "--no-index", *names],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return set(done.stdout.splitlines())


def test_readme_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("friends.csv").write_text("source,target\nann,bob\nbob,cid\ncid,ann\n")
    Path("people.csv").write_text("id,team\nann,red\nbob,red\ncid,blue\n")
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    known = {}
    exec(compile(code, "README.md", "exec"), known)
    assert known["r"].n_communities == 1


@pytest.mark.records
def test_readme_states_what_was_measured():
    kinds = {"lfr": "LFR", "rmat": "R-MAT", "stencil": "27-point stencil"}
    record = json.loads((HOUSE / "benchmarks/results/gpu_detect_h200.json").read_text())
    measured = {
        f"| {kinds[row['graph'].rstrip('0123456789')]} | {row['vertices'] / 1e6:.1f} M "
        f"| {row['arcs'] / 1e6:.0f} M | {row['method'].capitalize()} "
        f"| {1e3 * row['algorithm_median']:.1f} ms ({row['modularity']:.3f}) "
        f"| {row['bytes_taken'] / row['arcs']:.1f} |"
        for row in record["results"]
    }
    shown = re.findall(r"^\| .* \| (?:Louvain|Leiden) \|.*\|$", README, re.MULTILINE)
    assert len(shown) > 5
    assert set(shown) <= measured


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/internals.md"])
def test_pages_name_files_that_exist(page):
    text = (HOUSE / page).read_text()
    places = set(re.findall(r"`([\w./]+(?:\.py|/|\.toml|\.cuh?|\.json))`", text))
    assert len(places) > 10
    # A page may leave out the front of a path: `move/hubs.cuh` stands below `louvain_um/gpu`.
    rooms = {HOUSE, *(path.parent for _, path in modules())}
    for place in places:
        assert any((room / place).exists() for room in [*rooms, HOUSE / "tests"]), place


def test_threats_name_tests_that_exist():
    page = (HOUSE / "docs/guide/threats.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page)
    assert len(named) > 12
    missing = [
        f"{path}::{test}"
        for path, test in named
        if not (HOUSE / path).exists() or f"def {test}" not in (HOUSE / path).read_text()
    ]
    assert not missing


def test_device_sources_have_names_of_their_own():
    # Sources include each other by name alone, wherever they stand.
    names = Counter(path.name for path in tracked() if path.suffix in (".cu", ".cuh"))
    assert [name for name, n in names.items() if n > 1] == []


def test_the_project_speaks_of_itself_alone():
    # Written in parts, so that this file passes its own test.
    words = ["/wo" + "rk/", "shared/" + "DESIGN", "/ho" + "me/", "Clau" + "de", "Anth" + "ropic"]
    for path in tracked():
        if path.is_symlink() or path.suffix in (".npz", ".gz", ".parquet", ".png"):
            continue
        text = path.read_text(errors="replace")
        for word in words:
            assert word not in text, f"{path}: {word}"


def test_ci_can_be_run():
    script = HOUSE / ".ci/run"
    assert script.stat().st_mode & 0o111
    for tool in ("ruff check", "ruff format --check", "mypy", "lint-imports"):
        assert f"python3 run.py {tool}" in script.read_text()


def test_the_launcher_explains_itself():
    def launch(*arguments):
        return subprocess.run(
            [sys.executable, HOUSE / "run.py", *arguments],
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert launch().returncode == 2
    assert "python3 run.py pytest" in launch("--help").stdout


MANY_PARAMETERS = {
    "DynamicGraph.__init__", "Tracker.__init__", "Placer.array", "as_graph", "detect_on_rank",
    "detect_partitioned", "lfr", "lfr_parameters", "plan", "profile", "read_graph", "read_stream",
    "resolution_profile", "smart_malloc", "sweep",
}  # fmt: skip
"""Functions with more than eight parameters: options that callers give by name. So do commands;
compiled functions take arrays one by one."""


def test_functions_take_few_parameters():
    many = set()
    for name, path in modules():
        text = path.read_text("utf-8")
        if ".cli.commands." in name or re.search(r"core\.compiled import .*\bkernel\b", text):
            continue
        tree = ast.parse(text)
        owners = {f: c.name for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for f in c.body}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                found = node.args
                taken = [*found.posonlyargs, *found.args, *found.kwonlyargs]
                if len(taken) - (node in owners) > 8:
                    many.add(f"{owners[node]}.{node.name}" if node in owners else node.name)
    assert many == MANY_PARAMETERS


def test_one_name_of_a_class_has_one_meaning():
    names = Counter(
        node.name
        for _, path in modules()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, n in names.items() if n > 1] == []


def imported(nodes, known):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module


def circles(graph):
    """Return the sets of modules that reach each other; one that imports itself is a circle."""
    arrows = nx.DiGraph(graph)
    return {
        frozenset(found)
        for found in nx.strongly_connected_components(arrows)
        if len(found) > 1 or any(arrows.has_edge(module, module) for module in found)
    }


def test_no_module_imports_itself_by_way_of_others():
    files = dict(modules())
    known = frozenset(files)
    assert len(known) > 200
    graph = {
        module: set(imported(import_nodes(path), known)) & known for module, path in files.items()
    }
    left = circles(graph)
    text = "\n".join(
        f"{module} imports {', '.join(sorted(graph[module] & circle))}"
        for circle in left
        for module in sorted(circle)
    )
    assert not left, f"modules that import each other:\n{text}"


def test_circles_are_found_wherever_an_import_stands():
    sources = {
        "a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import b\n",
        "p.b": "def f():\n    import c\n",
        "c": "from a import x\n",
        "d": "import a\n",
        "e": "from e import y\n",
    }
    known = frozenset(sources)
    graph = {name: set(imported(imports_in(text), known)) & known for name, text in sources.items()}
    assert circles(graph) == {frozenset({"a", "p.b", "c"}), frozenset({"e"})}
