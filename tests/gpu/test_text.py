"""Text parsed on a device, or by emulated kernels: the host's graph, notes and errors."""

import gzip
import random
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import GraphError
from louvain_um.formats import graph_file, line_lists, read_graph, reading
from louvain_um.formats.edge_list import edges as edge_list
from louvain_um.formats.edge_list import first_lines, sniff
from louvain_um.formats.edge_list.edges import PARSE_THERE
from louvain_um.gpu.building import edges, text
from louvain_um.gpu.building.build import PARTIALS, Builder
from louvain_um.gpu.building.device_rows import building_bytes
from louvain_um.gpu.building.text import Site, TextThere
from louvain_um.gpu.graph import FetchedGraph
from louvain_um.options import Options
from louvain_um.placement.memory import copies
from tests.gpu.test_build import Copies, unequal
from tests.gpu_emulated.emulated_device import Counted, DeviceArray, Emulated

LINES = {
    "csv": "{u},{v}",
    "spaced commas": "{u} , {v}",
    "blanks": "{u} {v}",
    "tabs": "  {u}\t{v} \t",
    "bars": "{u}|{v}",
    "integers": "{u},{v},{w}",
    "decimals": "{u} {v} {w}.{f:02d}",
    "many decimals": "{u};{v};0.{f:019d}{w}",
    "points": "{u} {v} {w}. ",
    "a word behind": "{u},{v},{w},abc",
}
"""How lines are written: ids, a weight and its decimals."""

UNUSUAL = {
    "comment": "# more",
    "blank": "",
    "signed": "+3{s}4",
    "negative": "-3{s}4",
    "zero in front": "03{s}4",
    "name": "ann{s}bob",
    "quoted": '"3"{s}"4"',
    "missing": "3",
    "more": "3{s}4{s}1{s}2{s}x",
    "exponent": "3{s}4{s}1e2",
    "infinite": "3{s}4{s}inf",
    "negative weight": "3{s}4{s}-1",
    "large weight": "3{s}4{s}9007199254740993",
    "many digits": "3{s}4{s}0.1234567890123456789",
    "two points": "3{s}4{s}1.2.3",
    "NUL": "3{s}4\0",
    "33 bits": "4294967296{s}4",
    "18 digits": "3{s}999999999999999999",
    "20 digits": "3{s}99999999999999999999",
    "long": "3{s}4" + 6000 * " ",
    "not UTF-8": "\udcff{s}4",
    "empty first field": "\t3{s}4{s}5",
    "unit": "3{s}4{s}5 km{s}7",
    "blank in a number": "3{s}4{s}5 000",
    "quote that is not closed": '3{s}4{s}5{s}"x',
    "quotes within one": '3{s}4{s}5{s}"x, ""y"z',
    "doubled quotes": '3{s}4{s}5{s}"x{s} ""y',
    "quotes that are closed": '3{s}4{s}5{s}"x, ""y""" "z{s}"w"',
    "quote within a field": '3{s}4{s}5{s}x"y',
}
"""Lines that a device leaves to the host, which may refuse them."""


@contextmanager
def sending(nbytes):
    """Read to where the values are to be: the emulated device has the host's memory."""

    def send(target, count, read):
        assert count <= nbytes
        place = (np.ctypeslib.ctypes.c_uint8 * count).from_address(target)
        return read(np.ctypeslib.as_array(place))

    yield send


@pytest.fixture(params=["emulated", pytest.param("gpu", marks=pytest.mark.gpu)])
def read_there(request, monkeypatch):
    """Return what reads a file on a device, and the lines that files are to have.

    It returns the graph, or the error, and what parsed it.
    """
    monkeypatch.setattr(text, "FIRST_BYTES", 40)
    monkeypatch.setattr(text, "PARTS", 3)
    monkeypatch.setattr(text, "READERS", 2)
    if request.param == "emulated":
        monkeypatch.setattr(text, "PIECE_BYTES", 200)
        monkeypatch.setattr(text, "LINE_BYTES", 48)
        for module in (first_lines, graph_file, sniff):
            monkeypatch.setattr(module, "SAMPLE_BYTES", 200)
        for module in (reading, line_lists):
            monkeypatch.setattr(module, "HEAD", 200)
        device, lines = Emulated(request.getfixturevalue("emulated"), 2), 300
        device.xp = Counted()
        monkeypatch.setattr(copies, "fetched", np.array)
        there = SimpleNamespace(sent=Copies.sent, fetched=np.array, sending=sending)
        site = Site(device=device, copies=there, room=lambda *_: 1 << 40)
    else:
        request.getfixturevalue("gpu")
        # The reader's guesses are made from the first 64 KiB, which the host parses.
        monkeypatch.setattr(text, "PIECE_BYTES", 2000)
        site, lines = edges._site(Options(device="cuda"), ExitStack()), 30_000

    def read(path, site=site, ready=lambda: True, **options):
        made = []

        def parse(file, line_format):
            made.append(TextThere(file.plain_bytes(), ready, lambda: site))
            return made[-1]

        before = PARSE_THERE.set(parse)
        try:
            return read_graph(path, **options), made
        except (GraphError, UserWarning) as error:
            return error, made
        finally:
            PARSE_THERE.reset(before)

    read.lines, read.site = lines, site
    return read


def read_here(path, **options):
    try:
        return read_graph(path, **options)
    except (GraphError, UserWarning) as error:
        return error


def same(made, right):
    """Return whether two graphs, or two errors, are equal."""
    if isinstance(right, Exception):
        return type(made) is type(right) and str(made) == str(right)
    return not isinstance(made, Exception) and unequal(made, right) == []


def text_of(line, count, seed, ids=50):
    """Return lines, which follow each other at random."""
    draw = random.Random(seed)
    return [
        line.format(
            u=draw.randrange(ids), v=draw.randrange(ids), w=draw.randrange(9), f=draw.randrange(100)
        )
        for _ in range(count)
    ]


@pytest.mark.filterwarnings("ignore::louvain_um.errors.GraphWarning")
@pytest.mark.parametrize("kind", LINES)
def test_text_makes_the_graph_of_the_host(read_there, kind, tmp_path):
    path = tmp_path / "g.txt"
    heads = ("", "source,target,weight\n", "# Nodes: 60\n# more\n", "# Nodes: 20\n", "7 9\n")
    for number in range(10):
        lines = text_of(LINES[kind], read_there.lines, number, ids=(50, 10**6)[number % 2])
        end, last = ("\n", "\r\n")[number // 5], ("", "\n")[number % 3 == 0]
        head = heads[number % 5].replace(",", LINES[kind].replace(" ", "")[3])
        path.write_bytes((head.replace("\n", end) + end.join(lines) + last).encode())
        options = {"duplicates": (None, "once", "sum")[number % 3]}
        made, parsed = read_there(path, **options)
        right = read_here(path, **options)
        assert same(made, right), (number, made, right)
        if not isinstance(right, Exception) and kind != "many decimals":
            assert [each.held > 0 for each in parsed] == [True]
            assert isinstance(made, FetchedGraph), number


@pytest.mark.filterwarnings("ignore::louvain_um.errors.GraphWarning")
@pytest.mark.parametrize("kind", ["csv", "blanks", "integers", "decimals"])
@pytest.mark.parametrize("odd", UNUSUAL)
def test_unusual_lines_are_read_by_the_host(read_there, odd, kind, tmp_path):
    path, separator = tmp_path / "g.txt", "," if kind in ("csv", "integers") else " "
    line = UNUSUAL[odd].format(s=separator)
    for seed, place in enumerate((0.1, 0.5, 0.55, 0.6, 0.99)):
        lines = text_of(LINES[kind], read_there.lines, seed)
        lines[int(place * len(lines))] = line
        path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
        made, parsed = read_there(path)
        assert same(made, read_here(path)), (place, made, read_here(path))
        assert place < 0.2 or parsed[0].held > 0


@pytest.mark.parametrize("kind", ["csv", "decimals"])
def test_reading_stays_within_the_budget(read_there, kind, tmp_path):
    path = tmp_path / "g.txt"
    path.write_text("\n".join(text_of(LINES[kind], read_there.lines, 3)))
    right, parsed = read_here(path), []
    edges, least = read_there.lines, text.CHUNKS * text._chunk_bytes()
    whole = building_bytes(edges, 50, weighted=kind != "csv") + 16 * edges + least
    for room in (whole, whole * 3 // 4, least + edges, least - 1):
        site = replace(read_there.site, room=lambda *_, room=room: room)
        before = DeviceArray.peak = DeviceArray.live
        made, found = read_there(path, site)
        assert DeviceArray.peak - before <= room
        assert same(made, right), room
        parsed.append(found[0].held > 0)
        del made, found
    assert parsed[0]
    assert not parsed[-1]


def test_more_lines_than_expected_stay_within_the_budget(read_there, tmp_path):
    path, room = tmp_path / "g.txt", 90_000
    # The first lines are long, so that few are expected.
    lines = [f"{i},{i + 1}" + 90 * " " for i in range(4)]
    path.write_text("\n".join(lines + text_of(LINES["csv"], 12_000, 3, ids=5000)))
    before = DeviceArray.peak = DeviceArray.live
    made, _ = read_there(path, replace(read_there.site, room=lambda *_: room))
    assert same(made, read_here(path))
    assert DeviceArray.peak - before <= room + 8 * PARTIALS


def test_integers_that_a_device_has_no_room_for_are_made_by_the_host(
    read_there, tmp_path, monkeypatch
):
    path, convert, left = tmp_path / "g.txt", edge_list.use_integer_weights, []
    path.write_text("\n".join(text_of(LINES["integers"], read_there.lines, 3)))
    right = read_here(path)

    def full(found, written):
        left.append(found.there)
        if found.there is not None:
            raise MemoryError
        convert(found, written)

    monkeypatch.setattr(edge_list, "use_integer_weights", full)
    assert same(read_there(path)[0], right)
    assert left[0] is not None


def test_reading_that_is_cut_short_holds_no_memory(read_there, tmp_path, monkeypatch):
    path, calls, running, left = tmp_path / "g.txt", [], [], []
    path.write_text("\n".join(text_of(LINES["csv"], read_there.lines, 4)))

    @contextmanager
    def cut(nbytes):
        def send(*given):
            running.append(given)
            time.sleep(0.01)
            try:
                return there(*given)
            finally:
                running.remove(given)

        with read_there.site.copies.sending(nbytes) as there:
            try:
                yield send
            finally:
                left.append(len(running))

    def interrupted(*given, **how):
        calls.append(given[1].size)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return parsed(*given, **how)

    parsed = Builder.parsed
    monkeypatch.setattr(Builder, "parsed", interrupted)
    copies = SimpleNamespace(**vars(read_there.site.copies) | {"sending": cut})
    before = DeviceArray.live
    with pytest.raises(KeyboardInterrupt):
        read_there(path, replace(read_there.site, copies=copies))
    assert left == [0]
    assert DeviceArray.live == before


def test_runs_let_their_device_parse_long_files(read_there, tmp_path, monkeypatch):
    monkeypatch.setattr(edges, "LEAST_BYTES", 1000)
    monkeypatch.setattr(edges, "_site", lambda *_: read_there.site)
    monkeypatch.setattr(edges, "has_begun", lambda: True)
    began, blocks = [], text.TextThere.blocks
    monkeypatch.setattr(
        text.TextThere, "blocks", lambda there, *given: began.append(there) or blocks(there, *given)
    )
    lines = "\n".join(text_of(LINES["csv"], read_there.lines, 5)).encode()
    files = {"g.csv": lines, "g.csv.gz": gzip.compress(lines), "short.csv": lines[:999]}
    for name, content in files.items():
        path = tmp_path / name
        path.write_bytes(content)
        right = read_here(path)
        for memory in ("auto", "base"):
            began.clear()
            with edges.rows_made_on(Options(device="cuda", memory=memory)):
                assert same(read_here(path), right)
            assert [each.held > 0 for each in began] == [True] * (
                (name, memory) == ("g.csv", "auto")
            )


@pytest.mark.parametrize("options", [{"directed": True}, {"bipartite": True}, {"one_based": False}])
def test_options_that_the_host_must_see_to(read_there, options, tmp_path):
    path = tmp_path / "g.txt"
    path.write_text("\n".join(text_of(LINES["csv"], read_there.lines, 6)))
    made, parsed = read_there(path, **options)
    assert same(made, read_here(path, **options))
    assert parsed == []


def test_the_host_parses_until_the_device_is_ready(read_there, tmp_path):
    path, held = tmp_path / "g.txt", []
    path.write_text("\n".join(text_of(LINES["integers"], read_there.lines, 6)))
    right = read_here(path)
    for busy in (0, 3, 10**6):
        asked = Mock(side_effect=(number >= busy for number in range(10**6)))
        made, parsed = read_there(path, ready=asked)
        assert same(made, right), busy
        held.append(parsed[0].held)
    assert held[0] > held[1] > held[2] == 0


def test_ids_of_64_bits_are_parsed_there(read_there, tmp_path):
    path = tmp_path / "g.txt"
    lines = text_of("9{u}123456789012,{v}", read_there.lines, 7)
    path.write_text("\n".join(lines))
    made, parsed = read_there(path)
    assert same(made, read_here(path))
    assert parsed[0].held > 8 * read_there.lines
    path.write_text("\n".join([*text_of(LINES["csv"], read_there.lines // 2, 8), *lines]))
    made, parsed = read_there(path)
    assert same(made, read_here(path))
    assert parsed[0].held > 8 * read_there.lines


def test_a_run_parses_long_text_on_its_device(gpu, tmp_path, monkeypatch):
    path, made = tmp_path / "g.csv", []
    path.write_text("\n".join(text_of(LINES["csv"], 50_000, 9, ids=5000)))
    monkeypatch.setattr(edges, "LEAST_BYTES", 1 << 14)
    monkeypatch.setattr(edges, "has_begun", lambda: True)
    graph = text.TextThere.graph
    monkeypatch.setattr(
        text.TextThere, "graph", lambda *given: made.append(graph(*given)) or made[-1]
    )
    found = lu.louvain(path, device=str(gpu))
    assert isinstance(made[0], FetchedGraph)
    assert np.array_equal(found.labels, lu.louvain(path, device="cpu").labels)
