import json

import pytest

from louvain_um.core.ledger import GROUPS
from louvain_um.errors import OptionError
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import KINDS, POLICY_NAMES, Placement, Policy, register

# Dinçer, Table 4.5, row by row: Graph's CSR, Hash Tables, Community Info., Others.
TABLE = {
    "base": "- - - -",
    "adv1": "x x x x",
    "adv2": "x - - -",
    "adv3": "- x - -",
    "adv4": "- - x -",
    "adv5": "- - - x",
    "adv6": "x - x -",
    "adv7": "x - - x",
    "adv8": "- - x x",
    "adv9": "x - x x",
}


@pytest.mark.parametrize("name", TABLE)
def test_advised_groups_are_those_of_the_table(name):
    marks = dict(zip(GROUPS, TABLE[name].split(), strict=True))
    kinds = {"x": "host_mapped", "-": "managed"}
    placements = find_policy(name).placements
    assert {g: p.kind for g, p in placements.items()} == {g: kinds[m] for g, m in marks.items()}


def test_every_policy_of_the_design_is_there_and_says_what_it_does():
    assert set(POLICY_NAMES) >= {*TABLE, "device", "zero_copy", "auto"}
    assert all(find_policy(name).about for name in POLICY_NAMES)
    assert {p.kind for p in find_policy("device").placements.values()} == {"device"}
    graph, *rest = find_policy("zero_copy").placements.values()
    assert graph.kind == "host_mapped"
    assert {p.kind for p in rest} == {"device"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_placement_reads_back_as_it_is_written(kind):
    placement = Placement(kind, 0.25) if kind == "split" else Placement(kind)
    assert Placement.parse(str(placement)) == placement


@pytest.mark.parametrize(
    "text", ["gpu", "split", "split(2)", "split(-0.1)", "split(nan)", "split(1.2.3)", "", 3, None,
             "device(0.5)", "split(0.5) managed"]
)  # fmt: skip
def test_what_is_no_placement_is_refused(text):
    with pytest.raises(OptionError):
        Placement.parse(text)


@pytest.mark.parametrize(("kind", "fraction"), [("device", 0.5), ("split", True), ("mapped", 1.0)])
def test_fractions_belong_to_splits(kind, fraction):
    with pytest.raises(OptionError):
        Placement(kind, fraction)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": "a b"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "mine", "placements": {"edges": "device"}}, "group"),
        ({"name": "mine", "placements": {"graph": "there"}}, "policy mine"),
        ({"name": "mine", "arrays": {"targets.0": "split"}}, "policy mine"),
        ({"name": "mine", "arrays": ["targets.0"]}, "mapping"),
    ],
)
def test_bad_policies_are_named(values, said):
    with pytest.raises(OptionError, match=said):
        Policy(**values)


def test_an_array_may_leave_its_group():
    policy = Policy(name="mine", arrays={"targets.0": "split(0.5)"})
    assert policy.placement_of("targets.0", "graph") == Placement("split", 0.5)
    assert policy.placement_of("offsets.0", "graph") == Placement("device")


def test_only_policies_are_registered():
    with pytest.raises(OptionError, match="not 'adv2'"):
        register("adv2")


def test_registered_policies_are_found_but_never_replace_others_by_accident():
    mine = register(Policy(name="test-registered"), replace=True)
    assert find_policy("test-registered") is mine
    assert find_policy(mine) is mine
    with pytest.raises(OptionError, match="already"):
        register(Policy(name="test-registered"))
    with pytest.raises(OptionError, match="comes with the package"):
        register(Policy(name="base"), replace=True)


def test_files_are_found_by_path_and_by_name(tmp_path, monkeypatch):
    for folder in ("policies", "listed", "config/louvain-um/policies"):
        (tmp_path / folder).mkdir(parents=True)
    text = 'others = "managed"\ngraph = "split(0.5)"\n[arrays]\n"offsets.0" = "device"\n'
    (tmp_path / "policies/here.toml").write_text(text)
    (tmp_path / "listed/listed.toml").write_text('about = "é"\nothers = "device"\n')
    (tmp_path / "config/louvain-um/policies/from-config.toml").write_text(
        'name = "other"\ngraph = "device"\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUVAIN_UM_POLICIES", str(tmp_path / "listed"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    here = find_policy("here")
    assert here == find_policy("policies/here.toml") == find_policy(here)
    assert here.name == "here"
    assert here.placements["graph"] == Placement("split", 0.5)
    assert here.placements["scratch"] == Placement("managed")
    assert here.placement_of("offsets.0", "graph") == Placement("device")
    assert find_policy("listed").about == "é"
    assert find_policy("from-config").name == "other"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("graph = ", "not a policy"),
        ("edges = 'device'", "'edges'"),
        ("graph = 3", "placement"),
        ("arrays = 3", "mapping"),
        ("others = 'anywhere'", "placement"),
        ("name = 'adv1'\ngraph = 'device'", "comes with the package"),
        ("name = 7\ngraph = 'device'", "name"),
        ("[graph]\nkind = 'split'", "placement"),
        ("graph = " + "[" * 20_000, "nested too deeply"),
        ("a." * 100_000 + "a = 1", "longer than"),
    ],
)
def test_bad_files_are_named(tmp_path, text, said):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(OptionError, match=said) as caught:
        find_policy(str(path))
    assert str(path) in str(caught.value)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("graph = 'pinned'", encoding="utf-8-sig")
    assert find_policy(str(path)).placements["graph"] == Placement("pinned")


@pytest.mark.parametrize("name", ["nothing", "", "../secret", "no such.toml", "Base"])
def test_unknown_names_list_what_there_is(name):
    with pytest.raises(OptionError, match=r"no memory policy|no such file"):
        find_policy(name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("ADV2", "adv2"), ("adv2 ", "adv2"), ("zero-copy", "zero_copy"), ("zerocopy", "zero_copy"),
     ("bse", "base"), ("autoo", "auto")],
)  # fmt: skip
def test_a_near_miss_gets_a_suggestion(name, meant):
    with pytest.raises(OptionError, match=rf"did you mean {meant}\? Or name one of base"):
        find_policy(name)


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"", "is empty"), (b"# to be written\n", "is empty"),
     (b'name = "x"\nabout = "a machine"\n', "is empty; say where one of graph"),
     (b"[arrays]\n[roles]\n", "is empty; say where one of graph"),
     (b'graph = "caf\xe9"\n', "not UTF-8 text")],
)  # fmt: skip
def test_a_file_that_says_nothing_is_no_policy(tmp_path, data, said):
    path = tmp_path / "mine.toml"
    path.write_bytes(data)
    with pytest.raises(OptionError, match=said):
        find_policy(str(path))


@pytest.mark.parametrize("pages", [0, 11, True, 2.0, "3"])
def test_pages_per_warp_outside_the_papers_range_are_refused(tmp_path, pages):
    path = tmp_path / "mine.toml"
    path.write_text(f'graph = "managed"\npages_per_warp = {json.dumps(pages)}\n')
    for make in (lambda: Policy(name="mine", pages_per_warp=pages), lambda: find_policy(path)):
        with pytest.raises(OptionError, match="pages_per_warp of policy mine must lie in 1 … 10"):
            make()
