from __future__ import annotations

import pytest

from louvain_um.cli.commands import stream


@pytest.fixture
def pageless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the page of a stream, which takes longer than following some hundred edges."""
    monkeypatch.setattr(stream, "draw", lambda folder, title: "")
