"""The notebooks run on a machine without a GPU.

``python -m tests.test_notebooks`` runs them and saves their outputs.
"""

import os
import re
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from tests.paths import ROOT

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 240
"""Time limit of a cell, including compiling."""


def executed(path, folder=FOLDER, cells=None):
    """Return a notebook after running its cells, or these, in a folder."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as sockets:
        warnings.simplefilter("ignore")
        import nbformat
        from nbclient import NotebookClient

        notebook = nbformat.read(path, 4)
        notebook.cells = cells or notebook.cells
        client = NotebookClient(
            notebook,
            timeout=SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        )
        client.create_kernel_manager()
        if os.name == "posix":
            # Files instead of open ports.
            client.km.transport, client.km.ip = "ipc", f"{sockets}/kernel"
        client.execute()
    return notebook


def save_outputs(path):
    """Run a notebook and save it with its outputs, without metadata that varies."""
    import nbformat

    notebook = executed(path)
    for cell in notebook.cells:
        cell.metadata.clear()
    notebook.metadata = {
        "kernelspec": notebook.metadata["kernelspec"],
        "language_info": {"name": "python"},
    }
    nbformat.write(notebook, path)


@pytest.mark.site
def test_notebooks_run():
    """All in one kernel, which imports and loads once; each begins without names."""
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("distributed")
    import nbformat

    cells = []
    for path in NOTEBOOKS:
        cells += [nbformat.v4.new_code_cell("%reset -f"), *nbformat.read(path, 4).cells]
    notebook = executed(NOTEBOOKS[0], cells=cells)
    streams = [
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stderr"
    ]
    assert not [text for text in streams if "Warning" in text]


@pytest.mark.site
def test_notebooks_without_the_repository_say_where_results_are(tmp_path, monkeypatch):
    """The first cell of each notebook, and those that show results, in one kernel."""
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    import nbformat

    # The package itself may come from this checkout.
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent), prepend=os.pathsep)
    cells, shown = [], []
    for path in NOTEBOOKS:
        first, *others = (c for c in nbformat.read(path, 4).cells if c.cell_type == "code")
        results = [cell for cell in others if "RESULTS" in cell.source]
        assert results, path
        cells += [first, *results]
        shown += results
    executed(NOTEBOOKS[0], tmp_path, cells)
    assert all("in the repository" in cell.outputs[0].text for cell in shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_fit_to_be_read(path):
    text = path.read_text()
    assert len(text) < 300_000, "its outputs are too large"
    assert not re.search(r"/tmp/|/root/|[A-Z]:\\\\\\\\Users", text), "a path of one machine"
    assert "Traceback" not in text
    assert "## Your turn" in text


if __name__ == "__main__":
    for one in [Path(name) for name in sys.argv[1:]] or NOTEBOOKS:
        save_outputs(one)
