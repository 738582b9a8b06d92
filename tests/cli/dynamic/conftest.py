import pandas as pd
import pytest

from louvain_um.drawing import reports

TABLES = ("communities", "events", "history")


@pytest.fixture
def pageless(monkeypatch):
    """Leave out the page of a stream, which takes longer than following some hundred edges."""
    monkeypatch.setattr(reports, "write_report", lambda *_, **options: None)


def tables(folder):
    """Return what a stream wrote, without times that vary."""
    found = {name: pd.read_csv(folder / f"{name}.csv") for name in TABLES}
    found["history"] = found["history"].drop(columns="seconds")
    return found
