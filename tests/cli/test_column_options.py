"""Columns chosen on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run

ORDERS = "order_id,buyer,seller,price\n1,ann,bob,2.5\n2,bob,cid,1\n3,cid,ann,4\n"


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders.csv"
    path.write_text(ORDERS)
    return path


def test_columns_are_chosen_by_name_or_number(run: Run, orders: Path) -> None:
    for options in (
        ("--source", "buyer", "--target", "seller", "--weight", "price"),
        ("--source", "2", "--target", "3", "--weight", "4"),
    ):
        graph = run("detect", orders, "--device", "cpu", "--json", *options).json["graph"]
        assert (graph["vertices"], graph["edges"], graph["weighted"]) == (3, 3, True)


def test_notes_are_printed_once_with_options(run: Run, orders: Path) -> None:
    done = run("detect", orders, "--device", "cpu")
    notes = [line for line in done.out.splitlines() if "'price', the only numeric one" in line]
    assert len(notes) == 1
    assert notes[0].endswith("--unweighted reads none")
    assert "only numeric" not in done.err


def test_errors_name_the_option(run: Run, orders: Path) -> None:
    wrong = run("detect", orders, "--source", "bayer", "--target", "3")
    assert wrong.code == 1
    complaint = wrong.complaint()
    assert "no column 'bayer' among order_id, buyer, seller, price" in complaint
    assert "--source …" in complaint
    wrong = run("detect", orders, "--weight", "price", "--unweighted")
    assert wrong.code == 2
    complaint = wrong.complaint()
    assert "--weight" in complaint
    assert "=" not in complaint


def test_bipartite_keeps_users_and_items_apart(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n5,5,1\n5,7,2\n6,5,3\n")
    done = run("detect", path, "--device", "cpu")
    assert "--one-mode reads them as one" in done.err
    out = tmp_path / "labels.csv"
    run("detect", path, "--device", "cpu", "--bipartite", "-o", out)
    assert {line.split(",")[0] for line in out.read_text().split()[1:]} == {
        "user:5", "user:6", "item:5", "item:7"
    }  # fmt: skip


def test_the_time_is_told_to_be_unused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    path.write_text("from,to,seconds,value\n1,2,30,9\n2,3,40,9\n")
    done = run("detect", path, "--device", "cpu", "--time", "value")
    assert "column 4 ('value') holds times" in done.err


def test_headers_are_no_members_of_labels(run: Run, tmp_path: Path) -> None:
    known, found = tmp_path / "known.csv", tmp_path / "found.csv"
    known.write_text("user,planted\nann,red\nbob,red\ncid,blue\n")
    found.write_text("user,cluster\nann,0\nbob,0\ncid,1\n")
    compared = run("compare", known, found, "--json").json
    assert compared["vertices"] == 3
    assert compared["nmi"] == 1.0


def test_a_header_of_labels_in_doubt_is_noted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "roles.csv"
    path.write_text("actor,role\nann,hero\nbob,hero\ncid,fool\ndan,fool\n")
    assert "if it is a header, delete it" in run("compare", path, path).err


def test_words_in_the_third_column_are_not_offered_as_weights(run, tmp_path):
    path = tmp_path / "follows.csv"
    path.write_text("follower,followee,since\na,b,May\nb,c,June\nc,a,July\n")
    notes = " ".join(run("detect", path, "--json").json["notes"])
    assert "'since') is not a weight and is not read" in notes
    assert "--weighted" not in notes
    path.write_text("follower,followee,likes\na,b,3\nb,c,4\nc,a,5\n")
    assert "--unweighted reads none" in run("detect", path, "--json").json["notes"][-1]
