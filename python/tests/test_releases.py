"""Private releases of the training part, from Python."""

from __future__ import annotations

import asyncio

import numpy as np
import pandas as pd
import pytest
from conftest import Running

import holdoutd
import holdoutd.aio

COLUMNS = ["member", {"name": "age", "low": 18, "high": 90, "edges": [30, 60]}, {"name": "city", "texts": ["Rome", "Oslo"]}]


@pytest.fixture
def people(server: holdoutd.Server, request: pytest.FixtureRequest) -> holdoutd.Dataset:
    rng = np.random.default_rng(len(request.node.name))  # a table of its own
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 3000) + rng.random(3000),
            "city": rng.choice(["Rome", "Oslo", "Lima"], 3000),
            "member": rng.random(3000) < 0.5,
        }
    )
    return server.upload(table, name=request.node.name, questions=100, unit="row")


def test_release(people: holdoutd.Dataset) -> None:
    """A release holds what the training part says, is replayed at no cost, and spends no more than the first one declared."""
    training = people.training()
    released = people.release(epsilon=4, release_epsilon=5, columns=COLUMNS)
    age, city, member = released["columns"]
    assert released["units"]["low"] <= len(training) <= released["units"]["high"]
    assert age["mean"]["low"] - 1 <= training.age.mean() <= age["mean"]["high"] + 1
    assert [c.get("text", "other") for c in city["cells"]] == ["Oslo", "Rome", "other"] and len(member["cells"]) == 2
    assert "only this release" in released["guarantee"]
    assert people.release(epsilon=4, columns=COLUMNS[::-1]) == released
    with pytest.raises(holdoutd.EpsilonExhausted, match="1 of 5") as refused:
        people.release(epsilon=1.5)
    assert refused.value.left == 1
    everything = people.releases()
    assert everything["spent"] == 4 and everything["left"] == 1 and everything["releases"] == [released]
    assert people.budget.questions.left == 100


def test_release_refused(people: holdoutd.Dataset) -> None:
    """What is wrong is said with its place, and spends nothing."""
    with pytest.raises(holdoutd.QueryInvalid, match="agee"):
        people.release(epsilon=1, columns=["agee"])
    with pytest.raises(holdoutd.QueryInvalid, match="low"):
        people.release(epsilon=1, columns=[{"name": "age", "low": 18}])
    assert people.releases()["spent"] == 0


def test_release_async(running: Running, people: holdoutd.Dataset) -> None:
    """The asynchronous client has the same."""

    async def play() -> None:
        async with holdoutd.aio.AsyncServer(running.url, running.key) as server:
            ds = await server.holdout(people.id)
            released = await ds.release(epsilon=1, columns=["member"])
            assert await ds.release(epsilon=1, columns=["member"]) == released
            assert (await ds.releases())["releases"] == [released]

    asyncio.run(play())


def test_released_before(server: holdoutd.Server) -> None:
    """Rows that had releases in another holdout are recognised; what is accepted is said for good, with the sum."""
    rng = np.random.default_rng(77)
    table = pd.DataFrame({f"x{i}": rng.normal(size=2000) for i in range(6)})
    first = server.upload(table, name="released once", questions=100, unit="row")
    first.release(epsilon=2)
    table.loc[5, "x0"] += 1
    second = server.upload(table, name="released twice", questions=100, unit="row", overlap="accepted")
    with pytest.raises(holdoutd.ReleasedBefore, match=first.id) as refused:
        second.release(epsilon=1)
    assert [(e["holdout"], e["epsilon"]) for e in refused.value.earlier] == [(first.id, 2)]
    released = second.release(epsilon=1, earlier_releases="accepted")
    assert first.id not in str(released)  # which rows come again is in no release
    assert second.releases()["earlier_releases"] == [first.id]
