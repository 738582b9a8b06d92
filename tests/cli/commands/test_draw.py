from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

BEGINS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".html": b"<!DOCTYPE html>"}


@pytest.mark.parametrize("suffix", BEGINS)
def test_pictures_of_every_kind_of_file(run, two_triangles, tmp_path, suffix):
    out = tmp_path / f"picture{suffix}"
    done = run("draw", two_triangles, "-o", out)
    assert done.code == 0
    assert done.out == f"2 communities drawn to {out}\n"
    assert out.read_bytes().startswith(BEGINS[suffix])
    other = tmp_path / f"again{suffix}"
    assert run("draw", two_triangles, "-o", other, "-q").out == ""
    assert other.read_bytes() == out.read_bytes()
    refused = run("draw", two_triangles, "-o", out)
    assert (refused.code, "--force" in refused.complaint()) == (1, True)
    assert run("draw", two_triangles, "-o", out, "--force").code == 0


@pytest.mark.parametrize("kind", ["graph", "communities", "sizes", "dendrogram"])
def test_every_kind_of_picture(run, two_triangles, tmp_path, kind):
    done = run("draw", two_triangles, "-o", tmp_path / "a.svg", "--kind", kind)
    assert done.code == 0
    assert "2 communities drawn to" in done.out
    names = ("ann", "fay") if kind in ("graph", "dendrogram") else ("friends",)
    assert all(name in (tmp_path / "a.svg").read_text() for name in names)


def test_given_labels_are_drawn(run, two_triangles, tmp_path):
    labels, out = tmp_path / "labels.csv", tmp_path / "a.html"
    labels.write_text("vertex,community\n" + "".join(f"{n},{n in 'ann bob'}\n" for n in
                      ("ann", "bob", "cid", "dan", "eve", "fay")))  # fmt: skip
    assert run("draw", two_triangles, "--labels", labels, "-o", out).code == 0
    assert "ann, bob" in out.read_text()
    labels.write_text("vertex,community\nann,1\n")
    refused = run("draw", two_triangles, "--labels", labels, "-o", tmp_path / "b.png")
    assert (refused.code, "has no community" in refused.complaint()) == (1, True)
    assert not (tmp_path / "b.png").exists()


def test_numbered_vertices_with_given_labels(run, tmp_path):
    graph, labels = tmp_path / "g.txt", tmp_path / "labels.txt"
    graph.write_text("7 9\n9 12\n")
    labels.write_text("7 1\n9 1\n12 2\n")
    assert run("draw", graph, "--labels", labels, "-o", tmp_path / "a.png").code == 0


def test_bad_options_are_refused_before_reading(run, two_triangles, tmp_path):
    refused = run("draw", "missing.txt", "-o", tmp_path / "a.gif")
    assert (refused.code, "must end in .png" in refused.complaint()) == (2, True)
    refused = run("draw", two_triangles, "-o", tmp_path / "a.html", "--kind", "sizes")
    assert (refused.code, "leave out --kind" in refused.complaint()) == (2, True)
    assert "no folder" in run("draw", two_triangles, "-o", tmp_path / "no/a.png").complaint()


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_names_are_drawn_as_they_stand(run, tmp_path, suffix):
    edges, out = tmp_path / "$\\frac$.csv", tmp_path / f"picture{suffix}"
    edges.write_text("a,b\nb,c\nc,$\\frac$\n$x_1$,a\n")
    assert run("draw", edges, "-o", out).code == 0
    if suffix == ".svg":
        drawn = out.read_text("utf-8")
        assert ">$x_1$<" in drawn
        assert ">$\\frac$<" in drawn
