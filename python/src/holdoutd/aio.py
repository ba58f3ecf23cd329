"""The asynchronous client: the same as the synchronous one, with await.

async with await holdoutd.aio.connect() as server:
    ds = await server.upload(df, name="flights", questions=1000)
    await ds.fraction("delay > 15")
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx

from . import _connect, _steps, _wire, tables
from ._dataset import Holdout, settings_of
from ._scores import Questioned
from ._view import Card, History, Plan
from .answers import Answer, Budget, Explanation, NotAsked
from .client import TIMEOUT, Verify, _one
from .reports import Report, ReportPlan

T = TypeVar("T")


async def connect(
    source: str | os.PathLike[str] | None = None,
    *,
    key: str | None = None,
    verify: Verify = True,
    cert: Any = None,
    retries: int = _wire.RETRIES,
    timeout: float | httpx.Timeout = TIMEOUT,
) -> AsyncServer:
    """A connection to a server; the arguments are those of holdoutd.connect."""
    url, secret = _connect.find(source, key)
    server = AsyncServer(url, secret, verify=verify, cert=cert, retries=retries, timeout=timeout)
    await server.version()  # a wrong URL or key is known at once
    return server


class AsyncServer:
    """One server, seen with one key."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        verify: Verify = True,
        cert: Any = None,
        retries: int = _wire.RETRIES,
        timeout: float | httpx.Timeout = TIMEOUT,
    ):
        self.url = url.rstrip("/")
        self._retries = retries
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {key}"},
            verify=_wire.verification(verify),
            cert=cert,
            timeout=timeout,
        )

    def __repr__(self) -> str:
        return f"<holdoutd server {self.url}>"

    async def __aenter__(self) -> AsyncServer:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connections."""
        await self._http.aclose()

    async def version(self) -> str:
        """The server's version."""
        await self._run(_steps.holdouts())  # needs the key, unlike /version
        return str((await self._run(_one("/version"))).json()["version"])

    async def upload(
        self,
        table: Any = None,
        *,
        name: str | None = None,
        training_part: Any = None,
        check_part: Any = None,
        holdout_part: Any = None,
        progress: bool | None = None,
        **settings: Any,
    ) -> AsyncDataset:
        """Makes a holdout of a table; the arguments are those of Server.upload."""
        parts = {n: t for n, t in (("training", training_part), ("check", check_part), ("holdout", holdout_part)) if t is not None}
        params, bar = settings_of(table, parts, name, settings, progress)
        card = await self._run(_steps.create(table, parts or None, params, bar))
        ds = AsyncDataset(self, card, tables.kind_of(table if table is not None else training_part))
        ds._warn()
        return ds

    async def card(self, table: Any = None, *, name: str | None = None, **settings: Any) -> Card:
        """The card that upload() would give, with its guarantee, widths and warnings. Nothing is created."""
        params, _ = settings_of(table, {}, name, {**settings, "dry_run": True}, False)
        return Card(await self._run(_steps.create(table, None, params, None)))

    async def holdout(self, name_or_id: str, *, kind: tables.Kind | None = None) -> AsyncDataset:
        """The holdout with this id, or with this name if only one has it. kind is the library that its tables are read with."""
        ds = AsyncDataset(self, await self._run(_steps.find(name_or_id)), kind)
        ds._warn()
        return ds

    async def holdouts(self) -> list[AsyncDataset]:
        """All holdouts that the key may see."""
        return [AsyncDataset(self, card) for card in await self._run(_steps.holdouts())]

    async def plan(self, n: int, questions: int | None = None, **request: Any) -> Plan:
        """What every method promises for a holdout of n units. It looks at no data and costs nothing."""
        return Plan(await self._run(_steps.plan({"n": n, "questions": questions, **request})))

    async def new_key(self, name: str, scope: str = "analyst", *, oidc_subject: str | None = None) -> dict[str, Any]:
        """A new key; its secret is shown this once. With oidc_subject it has none: that subject's tokens stand for it. For admins."""
        return await self._run(_steps.new_key(name, scope, oidc_subject))

    async def keys(self) -> list[dict[str, Any]]:
        """All keys, without their secrets. For admins."""
        return await self._run(_steps.keys())

    async def revoke_key(self, key_id: str) -> None:
        """Ends a key, at once. For admins."""
        await self._run(_steps.act("DELETE", f"/v1/keys/{key_id}"))

    async def grants(self) -> list[dict[str, Any]]:
        """The grants with what is spent of each and what is left: an admin sees all, other keys their own."""
        return await self._run(_steps.grants())

    async def new_grant(
        self,
        key_id: str,
        holdout_id: str,
        questions: int,
        *,
        tokens: int | None = None,
        parent: str | None = None,
        expires: datetime | str | None = None,
        shows: str = "full",
    ) -> dict[str, Any]:
        """A slice of a holdout's budget for a key with the scope granted. It never changes. For admins.

        Args:
            key_id: whose it is; new_key(name, "granted") makes one
            holdout_id: the holdout's id
            questions: how many it may spend, together with the grants below it
            tokens: how many it may spend; default: it has no limit of its own
            parent: the id of the grant that it is a slice of; default: of the holdout's own budget
            expires: when it ends, by the server's clock; default: never
            shows: what it shows of answers: full; value, the numbers without intervals; or bit, whether the verdict is yes
        """
        more = {"tokens": tokens, "parent": parent, "expires": expires, "shows": shows}
        return await self._run(_steps.new_grant(key_id, holdout_id, questions, **more))

    async def revoke_grant(self, grant_id: str) -> None:
        """Ends a grant and those below it, at once. For admins."""
        await self._run(_steps.act("DELETE", f"/v1/grants/{grant_id}"))

    async def _run(self, steps: _wire.Steps[T]) -> T:
        """Drives steps to their end."""
        try:
            call = next(steps)
            while True:
                try:
                    reply = await self._send(call)
                except Exception as e:
                    call = steps.throw(e)
                else:
                    call = steps.send(reply)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _send(self, call: _wire.Call) -> _wire.Reply:
        attempt = 0
        while True:
            try:
                return await self._attempt(call)
            except Exception as error:
                pause = _wire.next_pause(error, call, attempt, self._retries)
                if pause is None:
                    raise _wire.failed(error, self.url) from error.__cause__
            await asyncio.sleep(pause)
            attempt += 1

    async def _attempt(self, call: _wire.Call) -> _wire.Reply:
        request = self._http.build_request(
            call.method, call.path, **call.options(_chunks, self.url), timeout=call.waits(self._http.timeout)
        )
        response = await self._http.send(request, stream=True)
        try:
            if call.save_to is not None and response.status_code < 300:
                with call.save_to.open("wb") as file:
                    async for chunk in response.aiter_bytes():
                        file.write(chunk)
                return _wire.Reply(response.status_code, response.headers, b"")
            reply = _wire.Reply(response.status_code, response.headers, await response.aread())
        finally:
            await response.aclose()
        if reply.status >= 300:
            raise _wire.problem(reply)
        return reply


async def _chunks(call: _wire.Call, body: _wire.Body) -> AsyncIterator[bytes]:
    file = body.open()
    sent = 0
    while chunk := await asyncio.to_thread(file.read, _wire.CHUNK):
        yield chunk
        sent += len(chunk)
        if call.progress:
            call.progress(sent, body.size)


class AsyncDataset(Holdout[Awaitable[Answer]]):
    """A holdout. Every query type is a method that asks it when it is awaited."""

    def __init__(self, server: AsyncServer, card: Mapping[str, Any], kind: tables.Kind | None = None):
        super().__init__(card, kind)
        self.server = server

    async def ask(self, query: Mapping[str, Any]) -> Answer:
        """Asks one query, as holdoutd.q makes it or as a dict."""
        return await self._ask(dict(query))

    async def _ask(self, query: dict[str, Any]) -> Answer:
        return await self.server._run(self._asked(query))

    async def batch(self, queries: Sequence[Mapping[str, Any]], *, partial: bool = False) -> list[Answer | NotAsked]:
        """Asks many queries in one pass over the data: all or none, or with partial as many as the budget allows."""
        return await self.server._run(self._batched(queries, partial))

    async def explain(self, query: Mapping[str, Any]) -> Explanation:
        """What a query would mean, cost and tell. It costs nothing and touches no holdout row."""
        return await self.server._run(self._explained(query))

    async def training(self, *, kind: tables.Kind | None = None) -> Any:
        """The training part, which is yours to look at as often as you like."""
        content = await self.server._run(self._downloaded("training"))
        return self._training.keep(tables.read(content, kind or self.kind, self.card.categories))

    async def features(self, *, kind: tables.Kind | None = None) -> Any:
        """The features of the holdout's rows, with their row_id, of a holdout that was made with features="public"."""
        content = await self.server._run(self._downloaded("features"))
        return tables.read(content, kind or self.kind, self.card.categories)

    async def retire(self) -> None:
        """Ends the questions for good and releases the rows, which retired() then gives. Earlier answers replay. For admins.

        Upload later rows with succeeds=ds.id for the holdout that comes after it.
        """
        self.card = Card(await self.server._run(_steps.retire(self.id)))

    async def retired(self, *, kind: tables.Kind | None = None) -> Any:
        """The rows of a retired holdout, with those of its check part: more rows to train on."""
        content = await self.server._run(self._downloaded("retired"))
        return tables.read(content, kind or self.kind, self.card.categories)

    async def save_training(self, path: str | os.PathLike[str]) -> None:
        """Writes the training part to a Parquet file, without holding it in memory."""
        await self.server._run(self._downloaded("training", Path(path)))

    async def save_ledger(self, path: str | os.PathLike[str]) -> None:
        """Writes the ledger to a file, which `holdoutd verify` checks."""
        await self.server._run(self._downloaded("ledger", Path(path)))

    async def budget(self) -> Budget:
        """What is left, now: to a key with a grant, of the grant."""
        return await self.server._run(_steps.budget(self.id))

    async def spending(self) -> list[dict[str, Any]]:
        """What each key has spent, the most first. For admins."""
        return await self.server._run(_steps.spending(self.id))

    async def history(self) -> History:
        """Every answer so far, by anyone: a sequence, with frame() and a table in notebooks."""
        return History(await self.server._run(_steps.history(self.id)), self.card)

    async def report(
        self,
        questions: Questioned | None = None,
        *,
        metric: str = "accuracy",
        title: str = "",
        close: bool = False,
        columns: Any = None,
        texts: Mapping[str, tuple[str, str]] | None = None,
    ) -> Report | ReportPlan:
        """The final report: one batch of exact answers, after which the holdout answers nothing more.

        Its intervals are the narrowest that a holdout gives, and hold together with all earlier ones. Without close it says how wide they
        would be, at no cost. Without questions it is the report of a closed holdout.

        Args:
            questions: a list of queries and of fitted models, or a dict of them by name
            metric: what is measured of models, as in score
            title: a title for the report
            close: closes the holdout for good; for admins
            columns: of models: as in score
            texts: of models: as in score
        """
        return await self.server._run(self._reported(questions, metric, title, close, columns, texts))

    async def save_report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report of a closed holdout to a file, as a page that loads nothing: to print, to send, to attach."""
        await self.server._run(self._downloaded("report.html", Path(path)))

    async def release(
        self,
        *,
        epsilon: float,
        columns: Sequence[str | Mapping[str, Any]] = (),
        release_epsilon: float | None = None,
        rows_per_unit: int | None = None,
        earlier_releases: str | None = None,
    ) -> dict[str, Any]:
        """Private statistics of the training part that may be shown to people who have nothing else of it. For admins.

        What it spends is recorded before it is shown; the same release again is the recorded one, at no cost.

        Args:
            epsilon: what the release spends: pure differential privacy for each unit of the training part
            columns: names, or for example {"name": "age", "low": 18, "high": 90, "edges": [40, 65]} or {"name": "city", "texts": ["Rome"]};
                take bounds, edges and texts that are known without a look at the rows
            release_epsilon: what all releases of the holdout may spend together, for ever; the first one says it (default 3)
            rows_per_unit: at most so many rows of a unit count (default 1); not where units are rows
            earlier_releases: "accepted" makes the release although releases of other holdouts are of the same rows; they add up, and
                the cards say so for good
        """
        members = {
            "epsilon": epsilon,
            "release_epsilon": release_epsilon,
            "rows_per_unit": rows_per_unit,
            "earlier_releases": earlier_releases,
            "columns": [{"name": c} if isinstance(c, str) else dict(c) for c in columns],
        }
        return await self.server._run(_steps.release(self.id, members))

    async def releases(self) -> dict[str, Any]:
        """All releases of the training part, with what they have spent and what is left. For admins."""
        return await self.server._run(_steps.releases(self.id))

    async def plan(self, questions: int | None = None, **request: Any) -> Plan:
        """What so many questions would get from a holdout of this size, by every method."""
        return Plan(await self.server._run(self._planned(questions, request)))

    async def delete(self) -> None:
        """Removes the holdout's rows and secrets. Its table stays known. For admins."""
        await self.server._run(_steps.act("DELETE", _steps.path(self.id)))
