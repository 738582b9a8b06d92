"""The page as a reader finds it: opened in a browser, sorted, zoomed, without an error."""

import pytest

from louvain_um.profiling.sweep.results import Sweep
from louvain_um.profiling.views.html import write
from tests.profiling.views.browser import Browser, find
from tests.profiling.views.made import HOSTILE, cpu_run, paged_run, sweep_rows

pytestmark = pytest.mark.site

MAP = '.pagemap[data-map="maps"]'
VIEW = f"document.querySelector('{MAP} canvas').dataset.view"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = find()
    if program is None:
        pytest.skip("no Chromium is installed")
    found = Browser(program, tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


@pytest.fixture
def page(browser, tmp_path):
    path = tmp_path / "report.html"
    write([paged_run(), paged_run(times=1, policy="adv2")], path)
    browser.errors.clear()
    browser.open(path)
    browser.wait(VIEW)
    return browser


def column(browser, table, at):
    found = browser.run(
        f"[...document.querySelectorAll('#{table} tbody tr')].map(r => r.cells[{at}].textContent)"
    )
    return found


def test_a_table_is_sorted(page):
    head = "#by-array thead th:nth-child(3)"
    page.click(f"{head} button")
    assert page.run(f"document.querySelector('{head}').getAttribute('aria-sort')") == "descending"
    names = column(page, "by-array", 0)
    assert names[:4] == ["targets.0", "offsets.0", "table", "labels.0.0"]
    assert names[-1] == "(no array of the run)"  # of unknown size
    page.click(f"{head} button")
    assert column(page, "by-array", 0)[:2] == [HOSTILE, "queue"]
    page.click("#by-array thead th:nth-child(1) button")
    names = column(page, "by-array", 0)
    assert names.index("offsets.0") < names.index("queue") < names.index("targets.0")
    assert page.errors == []


def test_a_map_is_drawn_and_zoomed(page):
    def colours():
        return int(
            page.run(
                f"""(() => {{ const c = document.querySelector('{MAP} canvas');
                const p = c.getContext("2d").getImageData(160, 30, c.width - 170, c.height - 60);
                return new Set(new Uint32Array(p.data.buffer)).size; }})()"""
            )
        )

    whole = page.run(VIEW)
    assert colours() > 1
    x, y = page.middle(f"{MAP} canvas")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-240)
    page.wait(f"{VIEW} !== {whole!r}")
    x0, x1, y0, y1 = map(float, page.run(VIEW).split(","))
    assert 0 < x0 < x1 < 1
    assert y1 - y0 < float(whole.split(",")[3])
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.mouse("mouseMoved", x - 80, y, button="left", buttons=1)
    page.mouse("mouseReleased", x - 80, y, button="left", clickCount=1)
    assert float(page.run(VIEW).split(",")[0]) > x0
    tip = page.run(f"document.querySelector('{MAP} .tip').textContent")
    assert "targets.0 (graph)" in tip
    assert "move 0" in tip
    page.click(f"{MAP} .reset")
    assert page.run(VIEW) == whole
    assert page.errors == []


def test_every_layer_of_both_sessions_is_drawn(page):
    for name in ("maps", "second"):
        box = f'.pagemap[data-map="{name}"]'
        titles = page.run(
            f"[...document.querySelectorAll('{box} .layer option')].map(o => o.textContent)"
        )
        assert titles == ["Accesses", "GPU faults", "Migrations by cause", "CPU faults"]
        for at in range(len(titles)):
            page.run(
                f"""(() => {{ const s = document.querySelector('{box} .layer');
                s.selectedIndex = {at}; s.dispatchEvent(new Event("change")); }})()"""
            )
            page.wait(f"document.querySelector('{box} .evidence').textContent.includes('measured')")
    page.run(
        f"""(() => {{ const s = document.querySelector('{MAP} .layer');
        s.selectedIndex = 2; s.dispatchEvent(new Event("change")); }})()"""
    )
    legend = f"document.querySelector('{MAP} .legend').textContent"
    page.wait(f"{legend}.includes('to the host: eviction')")
    assert page.errors == []


def test_names_are_text_whatever_they_hold(page):
    assert page.run("document.images.length") == 0
    assert HOSTILE in page.run("document.getElementById('by-array').textContent")
    assert HOSTILE in page.run("document.getElementById('kernels').textContent")
    assert page.errors == []


@pytest.mark.parametrize("what", ["cpu", "sweep"])
def test_other_reports_open_as_well(browser, tmp_path, what):
    path = tmp_path / "report.html"
    if what == "cpu":
        write([cpu_run()], path)
    else:
        write(None, path, sweep=Sweep.of(sweep_rows()))
    browser.errors.clear()
    browser.open(path)
    browser.click("table.sortable thead th:nth-child(2) button")
    assert browser.run("document.querySelectorAll('[aria-sort]').length") == 1
    assert browser.run("document.querySelectorAll('svg.chart').length") > 0
    assert browser.errors == []
