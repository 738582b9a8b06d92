import pytest

from louvain_um.cli.commands import stream


@pytest.fixture
def pageless(monkeypatch):
    """Leave out the page of a stream, which takes longer than following some hundred edges."""
    monkeypatch.setattr(stream, "draw", lambda folder, title: "")
