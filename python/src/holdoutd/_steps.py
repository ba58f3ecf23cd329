"""What a client does, as steps that both clients drive: see _wire.Steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Union
from urllib.parse import quote

from . import tables
from ._wire import Call, Steps
from .answers import Answer, Budget, Explanation, NotAsked
from .errors import Cancelled, HoldoutdError, HoldoutExists, error_of
from .expressions import Expression

Progress = Callable[[int, "int | None"], None]
When = Union[datetime, timedelta]  # a moment, or a time from now on


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


def create(table: Any, parts: Mapping[str, Any] | None, settings: Mapping[str, Any], progress: Progress | None) -> Steps[dict[str, Any]]:
    """The card of a new holdout, or of the one that was made of the same table with the same settings before.

    Of a table that is too large to be divided at once it is the registration (is_registration).
    """
    params = parameters(settings)
    call = Call("POST", "/v1/holdouts", params=params, idempotent=True, progress=progress, prefer="respond-async")
    if parts is not None:
        call.parts = {name: tables.body(t) for name, t in parts.items()}
    else:
        call.body = tables.body(table)
    try:
        reply = yield call
    except HoldoutExists as exists:
        return (yield from existing(exists, params))
    result: dict[str, Any] = reply.json()
    return result


def is_registration(made: Mapping[str, Any]) -> bool:
    """Whether what an upload became is a registration yet, and not the card of a holdout."""
    return "stage" in made


def parameters(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they are sent."""
    params = {k: str(v) if isinstance(v, Expression) else v for k, v in settings.items() if v is not None}
    if "key" in params:
        params["key"] = [params["key"]] if isinstance(params["key"], str) else list(params["key"])
    return {k: str(v).lower() if isinstance(v, bool) else v for k, v in params.items()}


def existing(exists: HoldoutExists, params: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    """The card of the holdout that was made of the same table before, if it was with the same settings."""
    if not exists.holdout:
        raise exists
    try:
        card = yield from get_card(exists.holdout)
    except HoldoutdError:
        raise exists from None  # it was deleted
    other = [f"{k}={v!r} (there it is {card['settings'].get(k)!r})" for k, v in params.items() if card["settings"].get(k) != v]
    if other:
        exists.args = (
            f"this table is the holdout {card['name']!r} ({exists.holdout}) already, with other settings: "
            f"{', '.join(other)}. Take it as it is with server.holdout({exists.holdout!r}). {exists.detail}",
        )
        raise exists
    return card


def sources() -> Steps[list[dict[str, Any]]]:
    reply = yield Call("GET", "/v1/sources")
    result: list[dict[str, Any]] = reply.json()["sources"]
    return result


def begin(source: str, table: str, settings: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    """The registration of a table of a source, which goes on by itself."""
    params = {**parameters(settings), "source": source, "table": table}
    reply = yield Call("POST", "/v1/holdouts", params=params, idempotent=True)
    result: dict[str, Any] = reply.json()
    return result


def registration(registration_id: str, pause: float = 0.0) -> Steps[dict[str, Any]]:
    reply = yield Call("GET", registration_path(registration_id), pause=pause)
    result: dict[str, Any] = reply.json()
    return result


def registrations() -> Steps[list[dict[str, Any]]]:
    reply = yield Call("GET", "/v1/registrations")
    result: list[dict[str, Any]] = reply.json()["registrations"]
    return result


def cancel(registration_id: str) -> Steps[dict[str, Any]]:
    reply = yield Call("DELETE", registration_path(registration_id))
    result: dict[str, Any] = reply.json()
    return result


def registration_path(registration_id: str) -> str:
    return f"/v1/registrations/{quote(registration_id, safe='')}"


FIRST_LOOK, LONGEST_LOOK = 0.2, 2.0  # seconds between two looks at a registration

Registering = Callable[[Mapping[str, Any]], None]


def finish(registration_id: str, settings: Mapping[str, Any], show: Registering | None) -> Steps[dict[str, Any]]:
    """The card of the holdout that a registration becomes."""
    pause = 0.0
    while True:
        now = yield from registration(registration_id, pause)
        if show:
            show(now)
        if now["stage"] == "done":
            return (yield from get_card(now["holdout"]))
        if now["stage"] == "cancelled":
            raise Cancelled(f"the registration of {called(now)} was cancelled; nothing of it is left")
        if now["stage"] == "failed":
            problem = now.get("problem") or {"detail": "the registration failed"}
            error = error_of(int(problem.get("status", 500)), problem)
            if isinstance(error, HoldoutExists):
                return (yield from existing(error, parameters(settings)))
            raise error
        pause = min(max(FIRST_LOOK, 2 * pause), LONGEST_LOOK)


def called(now: Mapping[str, Any]) -> str:
    """What people call a registration: its table, or of an upload its name."""
    return str(now.get("table") or now.get("name") or "the table")


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


def piece(holdout: str, number: int, save_to: Path | None = None) -> Steps[tuple[bytes, int]]:
    """A piece of the training part, from 0 on, and how many there are."""
    reply = yield Call("GET", path(holdout, "/training"), params={"piece": number}, save_to=save_to)
    return reply.content, int(reply.headers.get("X-Holdoutd-Pieces", "1"))


def save_pieces(holdout: str, to: Path) -> Steps[None]:
    """The training part as a file, or in several pieces as a folder of files, of which those that are there already stay."""
    part = to.with_name(to.name + ".part")
    try:
        _, pieces = yield from piece(holdout, 0, part)
        if pieces == 1:
            part.replace(to)
            return
        to.mkdir(exist_ok=True)
        part.replace(to / piece_name(holdout, 0, pieces))
        for i in range(1, pieces):
            file = to / piece_name(holdout, i, pieces)
            if not file.exists():
                yield from piece(holdout, i, part)
                part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def piece_name(holdout: str, number: int, pieces: int) -> str:
    return f"training-{holdout}-{number:05}-of-{pieces:05}.parquet"  # as holdoutd download names it


def ask(holdout: str, query: Mapping[str, Any], most: int | None = None) -> Steps[Answer]:
    """most is what the query may cost, of one that costs more than the server lets pass unasked."""
    reply = yield Call("POST", path(holdout, "/queries"), params=up_to(most), json=query, idempotent=True)
    members = reply.json()
    return Answer(members["answer"], query, Budget.of(members["budget"]), members["replayed"])


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
        Answer(item["answer"], query, budget, item["replayed"]) if "answer" in item else NotAsked(item.get("not_asked", "unknown"), query)
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


def plan(request: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    reply = yield Call("POST", "/v1/plans", json={k: v for k, v in request.items() if v is not None})
    result: dict[str, Any] = reply.json()
    return result


def new_key(name: str, scope: str, holdouts: Sequence[str] | None, only_granted: bool) -> Steps[dict[str, Any]]:
    body: dict[str, Any] = {"name": name, "scope": scope}
    if holdouts is not None:
        body["holdouts"] = list(holdouts)
    if only_granted:
        body["only_granted"] = True
    reply = yield Call("POST", "/v1/keys", json=body, once=True)
    result: dict[str, Any] = reply.json()
    return result


def keys() -> Steps[list[dict[str, Any]]]:
    reply = yield Call("GET", "/v1/keys")
    result: list[dict[str, Any]] = reply.json()["keys"]
    return result


def grant(holdout: str, holder: str, questions: int, expires: When | None, members: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    body = {k: v for k, v in members.items() if v is not None and v is not False}
    if expires is not None:
        at = datetime.now(timezone.utc) + expires if isinstance(expires, timedelta) else expires
        body["expires"] = at.astimezone(timezone.utc).isoformat(timespec="seconds")
    reply = yield Call("POST", path(holdout, "/grants"), json={"holder": holder, "questions": questions, **body}, idempotent=True)
    result: dict[str, Any] = reply.json()
    return result


def grants(holdout: str) -> Steps[list[dict[str, Any]]]:
    reply = yield Call("GET", path(holdout, "/grants"))
    result: list[dict[str, Any]] = reply.json()["grants"]
    return result


def spending(holdout: str) -> Steps[dict[str, Any]]:
    reply = yield Call("GET", path(holdout, "/spending"))
    result: dict[str, Any] = reply.json()
    return result


def act(method: str, path: str) -> Steps[None]:
    yield Call(method, path, once=True)
