"""Keys with slices of a budget: what they may spend, and what they are shown."""

from __future__ import annotations

import asyncio
import math
import pickle
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from conftest import Running, table

import holdoutd

q = holdoutd.q
DECIDES = q.passes(q.fraction("late"), above=0.1)


@pytest.fixture(scope="module")
def shared(server: holdoutd.Server) -> holdoutd.Dataset:
    return server.upload(table(401), name="granted", holdout=0.5, questions=200)


def granted(running: Running, ds: holdoutd.Dataset, questions: int, **more: Any) -> tuple[holdoutd.Dataset, dict[str, Any]]:
    """The holdout as a new key with a grant sees it, and the grant."""
    made = ds.server.new_key("grantee", "granted")
    grant = ds.server.new_grant(made["id"], ds.id, questions, **more)
    return holdoutd.connect(running.url, key=made["secret"]).holdout(ds.id), grant


def test_a_grant_is_a_budget(running: Running, shared: holdoutd.Dataset) -> None:
    mine, grant = granted(running, shared, 2)
    assert [h.id for h in mine.server.holdouts()] == [shared.id] and [g["id"] for g in mine.server.grants()] == [grant["id"]]
    assert (mine.budget.questions.left, mine.budget.questions.of) == (2, 2)
    full = mine.fraction("x > 0.125")
    assert full.shows == "full" and full.low is not None and full.budget is not None and full.budget.questions.left == 1
    before = shared.budget.questions.left
    with pytest.raises(holdoutd.GrantExhausted, match="the holdout may have more") as short:
        mine.batch([q.fraction(f"x > {i}") for i in range(1, 4)])
    error = short.value
    assert (error.requested, error.left, error.affordable, error.grant) == (3, 1, 1, grant["id"]) and isinstance(
        error, holdoutd.BudgetExhausted
    )
    answers = mine.batch([q.fraction(f"x > {i}") for i in range(1, 4)], partial=True)
    assert [isinstance(a, holdoutd.Answer) for a in answers] == [True, False, False] and "grant-questions-exhausted" in repr(answers[1])
    assert mine.budget.questions.left == 0 and mine.fraction("x > 0.125").replayed and shared.budget.questions.left == before - 1
    assert {s["key"]["name"]: s["questions"] for s in shared.spending()}["grantee"] == 2
    with pytest.raises(holdoutd.NotAllowed):
        mine.spending()


def test_value_has_no_interval(running: Running, shared: holdoutd.Dataset) -> None:
    """Notices an interval, a p-value or a cost in tokens that is printed, and what cannot be printed without them."""
    whole = [shared.fraction("x > 0.25"), shared.frequencies("origin", values=["SFO", "OAK"]), shared.ask(DECIDES)]
    mine, _ = granted(running, shared, 5, shows="value")
    value, many, decided = (mine.ask(a.query) for a in whole)
    assert (
        value == whole[0]
        and value.replayed
        and value.shows == "value"
        and value.source == "hidden"
        and bool(value)
        and value.passed is None
    )
    for a in (value, many, decided):
        assert (a.low, a.high, a.half_width, a.confidence, a.p_value, a.outcome) == (None,) * 6 and a.cost.tokens == 0 and 0.5 not in a
        for text in (repr(a), a._repr_html_(), str(a.frame("pandas"))):
            assert "±" not in text and "%" not in text and "p =" not in text and ("[" not in text or a.items), text
        assert "the grant shows no interval" in repr(a) and pickle.loads(pickle.dumps(a)).raw == a.raw
    assert [i.value for i in many.items] == [i.value for i in whole[1].items] and all(i.low is None and i.high is None for i in many.items)
    assert "[" not in repr(many) and decided.verdict == whole[2].verdict == "yes" and decided.passed and whole[2].passed
    assert mine.budget.tokens is None and mine.explain(q.fraction("x > 0.375")).half_width is None
    own = mine.fraction("x > 0.75")  # a history has what its key asked
    assert own.shows == "value" and own.low is None and own.budget is not None and own.budget.questions.left == 4 and "4 left" in repr(own)
    assert (
        mine.history().columns()["value"] == [own.value]
        and set(mine.history().columns()["low"]) == {None}
        and repr(mine.history())
        and mine.plot()
    )
    with pytest.raises(holdoutd.NotShown):
        mine.fraction("x > 0.5", half_width=0.1)


def test_bit_is_a_bool(running: Running, shared: holdoutd.Dataset) -> None:
    mine, _ = granted(running, shared, 3, shows="bit")
    yes, no = mine.ask(DECIDES), mine.passes(q.fraction("late"), above=0.9)
    assert yes and yes.passed is True and not no and no.passed is False
    assert repr(yes).startswith("passed") and repr(no).startswith("not passed") and "not passed" in no._repr_html_() and yes.value is None
    assert math.isnan(yes) and (yes.low, yes.verdict, yes.p_value) == (None, None, None) and mine.explain(DECIDES).answered in (True, False)
    with pytest.raises(holdoutd.NotShown, match="no verdict"):
        mine.fraction("x > 0.625")
    assert mine.budget.questions.left >= 1 and repr(mine.history())


def test_a_grant_ends(running: Running, shared: holdoutd.Dataset) -> None:
    until = datetime.now(timezone.utc) + timedelta(days=1)
    mine, grant = granted(running, shared, 1, expires=until, tokens=0)
    assert datetime.fromisoformat(grant["expires"].replace("Z", "+00:00")) == until
    below = shared.server.new_key("below", "granted")
    part = shared.server.new_grant(below["id"], shared.id, 1, tokens=0, parent=grant["id"])
    assert part["parent"] == grant["id"] and [g["state"] for g in shared.server.grants() if g["id"] == part["id"]] == ["valid"]
    shared.server.revoke_grant(grant["id"])
    for key in (mine.server, holdoutd.connect(running.url, key=below["secret"])):
        with pytest.raises(holdoutd.GrantEnded) as ended:
            key.holdout(shared.id)
        assert (ended.value.reason, ended.value.grant) == ("revoked", grant["id"])


def test_await(running: Running, shared: holdoutd.Dataset) -> None:
    async def run() -> None:
        async with holdoutd.aio.AsyncServer(running.url, running.key) as server:
            made = await server.new_key("later", "granted")
            grant = await server.new_grant(made["id"], shared.id, 1)
            assert grant["id"] in [g["id"] for g in await server.grants()]
            await server.revoke_grant(grant["id"])
            assert await (await server.holdout(shared.id)).spending() == shared.spending()

    asyncio.run(run())
