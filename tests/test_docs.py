"""The guide builds without warnings, its links are valid, and its examples run."""

import html.parser
import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest

from louvain_um.core.atomic_files import lock
from tests.paths import ROOT
from tests.profiling.views import browser

HOUSE = ROOT
DOCS = ROOT / "docs"
PAGES = sorted(path for folder in ("", "howto", "guide") for path in (DOCS / folder).glob("*.md"))


def rows_of(page):
    """Return the rows of a page's tables, by their first cells."""
    lines = [line for line in (DOCS / page).read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells}


TEXTS = [HOUSE / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md")]

FRIENDS = "source,target\nann,bob\nbob,cid\ncid,ann\ndan,eve\neve,fay\nfay,dan\ncid,dan\n"
HALF = """graph = "device"\ncommunity = "prefetched"\n[arrays]\n"targets.0" = "split(0.5)"\n"""


def relative(path):
    return str(path.relative_to(HOUSE))


class Page(html.parser.HTMLParser):
    """The links of a page, and its anchors."""

    def __init__(self, text):
        super().__init__()
        self.links: list[str] = []
        self.anchors = {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            elif name in ("id", "name") and value is not None:
                self.anchors.add(value)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Return the folder of the guide, built once by all processes, with warnings as errors."""
    for needed in ("sphinx", "myst_parser", "numpydoc", "furo"):
        pytest.importorskip(needed)
    of_run = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        of_run = of_run.parent
    folder = of_run / "site"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", DOCS, folder / "making"]
    with open(of_run / "site.lock", "w") as alone:
        lock(alone.fileno(), wait=True)
        if not (folder / "html").exists():
            done = subprocess.run(
                [*command, "-d", folder / "doctrees"], capture_output=True, text=True, check=False,
                env={**os.environ, "PYTHONWARNINGS": ""},
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            (folder / "making").rename(folder / "html")
    return folder / "html"


@pytest.mark.site
def test_links_of_the_guide_are_valid(site):
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    assert len(pages) > len(PAGES)
    checked = 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert parts.scheme in ("https", "mailto", "data"), (path, link)
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), (path.name, link)
            if target.suffix == ".html" and parts.fragment:
                known = pages[target].anchors
                assert unquote(parts.fragment) in known, (path.name, link)
            checked += 1
    assert checked > 500


@pytest.mark.site
def test_nothing_is_fetched_from_elsewhere(site):
    for path in site.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r'<(?:script|img|iframe)[^>]+src="https?:', text), path
        assert not re.search(r'<link[^>]+rel="stylesheet"[^>]+href="https?:', text), path


@pytest.mark.site
def test_search_finds_pages(site, tmp_path):
    program = browser.find()
    if program is None:
        pytest.skip("no Chromium")
    page = browser.Browser(program, tmp_path)
    try:
        page.send("Page.navigate", url=f"{(site / 'search.html').as_uri()}?q=significance")
        found = "[...document.querySelectorAll('#search-results li a')].map(a => a.textContent)"
        for title in ("louvain_um.Communities.significance", "Choose a resolution, and trust"):
            page.wait(f"{found}.some(each => each.startsWith('{title}'))")
    finally:
        page.close()


@pytest.mark.site
def test_every_public_name_has_an_entry(site):
    import louvain_um

    text = "".join(path.read_text() for path in (site / "reference").glob("*.html"))
    for name in louvain_um.__all__:
        home = getattr(louvain_um, name).__module__
        places = (f'id="louvain_um.{name}"', f'id="{home}.{name}"')
        assert any(place in text for place in places), name


def test_every_command_has_an_entry():
    from typer.main import get_command

    from louvain_um.cli import app

    text = (DOCS / "reference/command_line.md").read_text()
    for name in get_command(app).commands:
        assert f"```{{helptext}} {name}\n" in text, name


@pytest.mark.parametrize("page", [*TEXTS, *PAGES], ids=relative)
def test_links_to_files_are_valid(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if not link.startswith(("https://", "#")):
            assert (page.parent / link.partition("#")[0]).exists(), link


def run_command(line):
    """Run a command of a page; without a GPU, exit code 3 is accepted if it needs one."""
    from typer.testing import CliRunner

    from louvain_um.cli import app

    words = shlex.split(line, comments=True)
    if not words:
        return
    assert words[0] == "louvain-um", line
    done = CliRunner().invoke(app, words[1:])
    needs_gpu = "--device cuda" in line or words[1] == "calibrate"
    assert done.exit_code in ((0, 3) if needs_gpu else (0,)), (line, done.stderr)


@pytest.mark.site
@pytest.mark.parametrize(
    "page", [p for p in PAGES if re.search(r"```(sh|python)\n", p.read_text())],
    ids=relative,
)  # fmt: skip
def test_examples_of_pages_run(page, tmp_path, monkeypatch, capsys):
    """All examples of a page run in order, in one folder and one Python namespace.

    Graphs of 100,000 vertices have a fifth of them here.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUVAIN_UM_MACHINES", str(tmp_path / "machines"))
    Path("friends.csv").write_text(FRIENDS)
    Path("policies").mkdir()
    Path("policies/half.toml").write_text(HALF)
    known = {}
    text = page.read_text().replace("lfr 100000 ", "lfr 20000 ")
    for kind, block in re.findall(r"```(sh|python)\n(.*?)```", text, re.DOTALL):
        if kind == "python":
            exec(compile(block, page.name, "exec"), known)
        else:
            for line in block.replace("\\\n", " ").splitlines():
                run_command(line)


def test_every_record_of_a_benchmark_is_listed_with_what_writes_it():
    folder = HOUSE / "benchmarks"
    page = (folder / "README.md").read_text(encoding="utf-8")
    listed, scripts = list[str](), set[str]()
    for script, records in re.findall(r"^\|[^|]+\| (`[^|]*`) \| (`[^|]*`) \|$", page, re.MULTILINE):
        listed += re.findall(r"`([^`]+)`", records)
        scripts |= set(re.findall(r"`(\w+\.py)`", script))
    assert sorted(listed) == sorted(path.stem for path in (folder / "results").glob("*.json"))
    helpers = {"allocator.py", "common.py", "kinds.py", "on_operators.py", "paper_graphs.py"}
    helpers |= {"supply.py"}  # no record yet
    assert scripts | helpers == {path.name for path in folder.glob("*.py")}


def test_results_are_made_from_the_records(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    records = importlib.import_module("records")
    blocks = re.findall(
        r"^:::\{record\} (\S+) (\S+)$", (DOCS / "results.md").read_text(), re.MULTILINE
    )
    assert all(records.rows_at(records.load(name), path) for name, path in blocks)
    unshown = {path.stem for path in records.RESULTS.glob("*.json")} - {name for name, _ in blocks}
    assert unshown == {"machine_h200"}
    rows = [{"a": 1, "b": "x", "c": 2.0}, {"a": 1, "b": "y", "c": None}, {"a": 2, "b": "x", "c": 4}]
    columns = [["A", "a"], ["{} %", "c", ".1f"]]
    assert records.table({}, rows, columns, "b", summary=True) == [
        ["A", "x %", "y %"], ["1", "2.0", "–"], ["2", "4.0", "–"], ["median", "3.0", "–"],
        ["largest", "4.0", "–"],
    ]  # fmt: skip


def test_charts_of_results_show_every_point_and_the_front(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    records = importlib.import_module("records")
    rows = [
        {"g": "a", "p": "ours, fast", "s": 0.1, "q": 0.5},
        {"g": "a", "p": "ours, best", "s": 2, "q": 0.9},
        {"g": "a", "p": "other", "s": 10, "q": 0.7},
        {"g": "b", "p": "other", "s": 1, "q": 0.4},
        {"g": "b", "p": "<new>", "s": None, "q": None},
    ]
    panels = records.by_panel(rows, "g", "s", "q", "p")
    assert panels["a"]["ours"] == [(0.1, 0.5, "fast"), (2, 0.9, "best")]
    html = records.fronts(panels, ("Time (s)", "Quality"))
    drawn = ElementTree.fromstring(f"<body>{html}</body>")
    titles = [each.text for each in drawn.iter("title")]
    assert titles == [
        "ours fast: 0.1, 0.5000", "ours best: 2, 0.9000", "other : 10, 0.7000", "other : 1, 0.4000",
    ]  # fmt: skip
    # Two of the first panel's points are on the front: a step up between them.
    front = next(each for each in drawn.iter("polyline") if "stroke-dasharray" in each.attrib)
    assert len(front.attrib["points"].split()) == 3
    words = {each.text for each in drawn.iter("text")}
    assert {"a", "b", "ours", "other", "fast", "best", "Time (s)", "Quality"} <= words


def test_environment_variables_are_documented():
    found = set()
    for room in ("louvain_um", "placement", "profiling"):
        for path in (HOUSE / room).rglob("*.py"):
            found |= set(re.findall(r"LOUVAIN_UM_[A-Z]+", path.read_text()))
    assert found <= set(rows_of("reference/command_line.md"))
