"""Held-out rows in a source of the server's: what is refused without one.

The way in is tested with a real ClickHouse (cmd/holdoutd/sources_test.go).
"""

from pathlib import Path

import pytest
from conftest import Running, table

import holdoutd


def test_unknown_source(server: holdoutd.Server) -> None:
    """A source that the server does not have is refused by upload() and by card(), and nothing is made."""
    before = len(server.holdouts())
    with pytest.raises(holdoutd.ServerError, match="no source of that name"):
        server.upload(table(9301), name="elsewhere", source="elsewhere")
    with pytest.raises(holdoutd.ServerError, match="no source of that name"):
        server.card(table(9301), name="elsewhere", source="elsewhere")
    assert len(server.holdouts()) == before


def test_source_that_is_away(binary: Path, tmp_path: Path) -> None:
    """A source that does not answer is said by its name, and a holdout that lies here is made all the same."""
    running = Running(binary, tmp_path / "data", "--source", "warehouse=clickhouse://reader@127.0.0.1:1/held?loader=writer")
    try:
        server = holdoutd.connect(running.url, key=running.key, retries=0)
        with pytest.raises(holdoutd.ServerError, match="the source warehouse") as refusal:
            server.upload(table(9302), name="there", source="warehouse")
        assert refusal.value.status == 503
        assert server.holdouts() == []
        assert server.upload(table(9302), name="here").card.raw["name"] == "here"
    finally:
        running.kill()


def test_table_that_is_there(binary: Path, tmp_path: Path) -> None:
    """A table in a directory of the operator's is uploaded by its path, and is the same as from here."""
    lake = tmp_path / "lake"
    (lake / "churn").mkdir(parents=True)
    for i, rows in enumerate((slice(0, 200), slice(200, None))):
        table(9303).iloc[rows].to_parquet(lake / "churn" / f"part-{i}.parquet")
    running = Running(binary, tmp_path / "data", "--source", f"lake=file://{lake}")
    try:
        server = holdoutd.connect(running.url, key=running.key, retries=0)
        assert server.card(path="lake/churn", name="churn").raw["settings"]["path"] == "lake/churn"
        waited: list[float] = []
        server._http.event_hooks["request"].append(lambda request: waited.append(request.extensions["timeout"]["read"]))
        ds = server.upload(path="lake/churn", name="churn", questions=20)
        assert waited and waited[0] == 3600  # a large table is read for minutes, without a byte of a reply
        assert sum(ds.card.raw["rows"].values()) == len(table(9303))
        ds.fraction("late")
        assert server.upload(table(9303), name="churn", questions=20).card.raw["id"] == ds.card.raw["id"]  # the same table, sent
        sent = server.upload(table(9304), name="sent", questions=20)
        sent.fraction("late")
        table(9304).to_parquet(lake / "sent.parquet")
        assert server.upload(path="lake/sent.parquet", name="sent", questions=20).card.raw["id"] == sent.card.raw["id"]
        with pytest.raises(TypeError, match="path="):
            server.upload(table(9303), path="lake/churn", name="twice")
        with pytest.raises(holdoutd.ServerError, match="no table"):
            server.upload(path="lake/nothing", name="nothing")
    finally:
        running.kill()
