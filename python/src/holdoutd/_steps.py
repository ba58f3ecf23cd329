"""What a client does, as steps that both clients drive: see _wire.Steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from . import tables
from ._wire import Call, Steps
from .answers import Answer, Budget, Explanation, NotAsked
from .errors import HoldoutdError, HoldoutExists
from .expressions import Expression

Progress = Callable[[int, "int | None"], None]


def path(holdout: str, rest: str = "") -> str:
    return f"/v1/holdouts/{quote(holdout, safe='')}{rest}"


def plain(value: Any) -> Any:
    """A query as JSON: expressions as text, tuples and arrays as lists, numbers of NumPy as numbers, absent members left out."""
    if isinstance(value, Expression):
        return str(value)
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, Answer):
        return float(value)
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if hasattr(value, "tolist"):  # NumPy, pandas, polars' to_list is below
        return value.tolist()
    if hasattr(value, "to_list"):
        return value.to_list()
    if isinstance(value, Iterable):
        return [plain(v) for v in value]
    return value


SPLIT_WITHIN = 3600.0  # seconds: the server decodes a table for an hour at most; a hundred million rows take two minutes


def create(table: Any, parts: Mapping[str, Any] | None, settings: Mapping[str, Any], progress: Progress | None) -> Steps[dict[str, Any]]:
    """The card of a new holdout, or of the one that was made of the same table with the same settings before."""
    params = {k: str(v) if isinstance(v, Expression) else v for k, v in settings.items() if v is not None}
    params = {k: str(v).lower() if isinstance(v, bool) else v for k, v in params.items()}
    params = {k: json.dumps(v, separators=(",", ":"), ensure_ascii=False) if isinstance(v, Mapping) else v for k, v in params.items()}
    call = Call("POST", "/v1/holdouts", params=params, idempotent=True, progress=progress, reply_within=SPLIT_WITHIN)
    if parts is not None:
        call.parts = {name: tables.body(t) for name, t in parts.items()}
    elif table is not None:
        call.body = tables.body(table)
    try:
        reply = yield call
    except HoldoutExists as exists:
        if not exists.holdout:
            raise
        try:
            card = yield from get_card(exists.holdout)
        except HoldoutdError:
            raise exists from None  # it was deleted
        there = {"unit": card["unit"], **card["settings"]}
        other = [f"{k}={v!r} (there it is {there.get(k)!r})" for k, v in params.items() if not same_setting(k, there.get(k), v)]
        if other:
            exists.args = (
                f"this table is the holdout {card['name']!r} ({exists.holdout}) already, with other settings: "
                f"{', '.join(other)}. Take it as it is with server.holdout({exists.holdout!r}), or upload rows that are not in it: "
                "created again it would hold out rows about which something is known.",
            )
            raise
        return card
    result: dict[str, Any] = reply.json()
    return result


def same_setting(name: str, there: Any, here: Any) -> bool:
    """Whether a setting of a card is the one that is asked for. Cells are JSON, which the server writes in its own way.

    The path of a table says where it is, and the same table may have been sent.
    """
    if name == "path":
        return True
    if name == "cells" and isinstance(there, str) and isinstance(here, str):
        try:
            return bool(json.loads(there) == json.loads(here))
        except ValueError:
            return False
    return bool(there == here)


def get_card(holdout: str) -> Steps[dict[str, Any]]:
    reply = yield Call("GET", path(holdout))
    result: dict[str, Any] = reply.json()
    return result


def find(name_or_id: str) -> Steps[dict[str, Any]]:
    """The card of the holdout with this id, or with this name if only one has it."""
    if name_or_id.startswith("ho_"):
        return (yield from get_card(name_or_id))
    cards = yield from holdouts()
    found = [c for c in cards if c["name"] == name_or_id]
    if len(found) == 1:
        return found[0]
    if found:
        raise LookupError(f"{len(found)} holdouts have the name {name_or_id!r}: {', '.join(c['id'] for c in found)}; give an id")
    names = ", ".join(sorted({repr(c["name"]) for c in cards})) or "none at all"
    raise LookupError(f"there is no holdout {name_or_id!r}; there are {names}")


def holdouts() -> Steps[list[dict[str, Any]]]:
    reply = yield Call("GET", "/v1/holdouts")
    result: list[dict[str, Any]] = reply.json()["holdouts"]
    return result


def download(holdout: str, what: str, save_to: Path | None = None) -> Steps[bytes]:
    reply = yield Call("GET", path(holdout, "/" + what), save_to=save_to)
    return reply.content


def ask(holdout: str, query: Mapping[str, Any], most: int | None = None) -> Steps[Answer]:
    """most is what the query may cost, of one that costs more than the server lets pass unasked."""
    reply = yield Call("POST", path(holdout, "/queries"), params=up_to(most), json=query, idempotent=True)
    members = reply.json()
    return Answer(members["answer"], query, Budget.of(members["budget"]), members["replayed"], members.get("per", ""))


def up_to(most: int | None) -> dict[str, Any]:
    return {} if most is None else {"max_questions": most}


def batch(holdout: str, queries: Sequence[Mapping[str, Any]], partial: bool, most: int | None = None) -> Steps[list[Answer | NotAsked]]:
    body: dict[str, Any] = {"queries": queries}
    if partial:
        body["partial"] = True
    reply = yield Call("POST", path(holdout, "/queries/batch"), params=up_to(most), json=body, idempotent=True)
    members = reply.json()
    budget = Budget.of(members["budget"])
    return [
        Answer(item["answer"], query, budget, item["replayed"], item.get("per", ""))
        if "answer" in item
        else NotAsked(item.get("not_asked", "unknown"), query)
        for item, query in zip(members["answers"], queries, strict=True)
    ]


def explain(holdout: str, query: Mapping[str, Any]) -> Steps[Explanation]:
    reply = yield Call("POST", path(holdout, "/queries/explain"), json=query)
    return Explanation(reply.json())


def budget(holdout: str) -> Steps[Budget]:
    reply = yield Call("GET", path(holdout, "/budget"))
    return Budget.of(reply.json())


def history(holdout: str) -> Steps[list[dict[str, Any]]]:
    """Every answer so far, oldest first, with what is known beside it."""
    answers: list[dict[str, Any]] = []
    after: int | None = None
    while True:
        reply = yield Call("GET", path(holdout, "/answers"), params={} if after is None else {"after": after})
        page = reply.json()
        answers += page["answers"]
        after = page.get("next")
        if after is None:
            return answers


def plan_report(holdout: str, queries: Sequence[Mapping[str, Any]]) -> Steps[dict[str, Any]]:
    reply = yield Call("POST", path(holdout, "/report/plan"), json={"queries": queries})
    result: dict[str, Any] = reply.json()
    return result


def close(holdout: str, queries: Sequence[Mapping[str, Any]], title: str) -> Steps[dict[str, Any]]:
    body = {"queries": queries, "close": True, **({"title": title} if title else {})}
    reply = yield Call("POST", path(holdout, "/report"), json=body, idempotent=True)
    result: dict[str, Any] = reply.json()
    return result


def report(holdout: str) -> Steps[dict[str, Any]]:
    reply = yield Call("GET", path(holdout, "/report"))
    result: dict[str, Any] = reply.json()
    return result


def release(holdout: str, members: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    reply = yield Call("POST", path(holdout, "/releases"), json={k: v for k, v in members.items() if v is not None})
    result: dict[str, Any] = reply.json()
    return result


def releases(holdout: str) -> Steps[dict[str, Any]]:
    result: dict[str, Any] = {}
    after, listed = 0, []
    while True:
        reply = yield Call("GET", path(holdout, "/releases"), params={"after": after})
        result = reply.json()
        listed += result["releases"]
        after = result.pop("next", 0)
        if not after:
            return {**result, "releases": listed}


def plan(request: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    reply = yield Call("POST", "/v1/plans", json={k: v for k, v in request.items() if v is not None})
    result: dict[str, Any] = reply.json()
    return result


def keep_model(model: bytes) -> Steps[str]:
    """Sends the JSON of a model once; its digest, by which questions name it."""
    reply = yield Call("POST", "/v1/models", text=model)
    digest: str = reply.json()["sha256"]
    return digest


def new_key(name: str, scope: str, oidc_subject: str | None) -> Steps[dict[str, Any]]:
    body = {"name": name, "scope": scope}
    if oidc_subject is not None:  # an empty one is refused; without it the key would have a secret
        body["oidc_subject"] = oidc_subject
    reply = yield Call("POST", "/v1/keys", json=body, once=True)
    result: dict[str, Any] = reply.json()
    return result


def keys() -> Steps[list[dict[str, Any]]]:
    reply = yield Call("GET", "/v1/keys")
    result: list[dict[str, Any]] = reply.json()["keys"]
    return result


def grants() -> Steps[list[dict[str, Any]]]:
    reply = yield Call("GET", "/v1/grants")
    result: list[dict[str, Any]] = reply.json()["grants"]
    return result


def new_grant(key: str, holdout: str, questions: int, **more: Any) -> Steps[dict[str, Any]]:
    members = {"key": key, "holdout": holdout, "questions": questions, **{k: v for k, v in more.items() if v is not None}}
    if isinstance(members.get("expires"), datetime):
        members["expires"] = members["expires"].astimezone().isoformat()
    reply = yield Call("POST", "/v1/grants", json=members, once=True)
    result: dict[str, Any] = reply.json()
    return result


def spending(holdout: str) -> Steps[list[dict[str, Any]]]:
    reply = yield Call("GET", path(holdout, "/spending"))
    result: list[dict[str, Any]] = reply.json()["spenders"]
    return result


def retire(holdout: str) -> Steps[dict[str, Any]]:
    """The card of a holdout that is retired now."""
    reply = yield Call("POST", path(holdout, "/retire"))
    card: dict[str, Any] = reply.json()
    return card


def act(method: str, path: str) -> Steps[None]:
    yield Call(method, path, once=True)
