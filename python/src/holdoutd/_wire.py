"""Requests and their replies, without a connection: what is sent, when it is sent again, and what an error is.

A step of work is a generator that yields Calls and is sent their Replies. client.py and aio.py drive it, so that the
synchronous and the asynchronous client are one piece of logic.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import ssl
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import httpx

from .errors import ConnectionFailed, ServerError, error_of

T = TypeVar("T")
Steps = Generator["Call", "Reply", T]

RETRIES = 4  # after the first attempt; with the pauses below about 3 seconds in all
FIRST_PAUSE = 0.2  # seconds, doubled for each further attempt
LONGEST_PAUSE = 30.0  # seconds, also of what a server asks for with Retry-After
PARQUET = "application/vnd.apache.parquet"
COMPRESSED = 64 << 10  # bytes of JSON beyond which a body is compressed, unless the server is on this machine
CHUNK = 1 << 20  # bytes of an upload that are read at once

# 503s that do not pass by themselves: somebody has to restore a backup first.
_LASTING = frozenset({"holdout-damaged", "ledger-rolled-back"})


@dataclass
class Body:
    """The bytes of one file of an upload, which can be read again for another attempt."""

    open: Callable[[], BinaryIO]
    size: int | None = None


@dataclass
class Call:
    """One request, which may take several attempts."""

    method: str
    path: str
    params: dict[str, Any] = field(default_factory=dict)
    json: Any = None
    text: bytes | None = None  # the body, as JSON that is written already
    body: Body | None = None  # the whole body
    parts: dict[str, Body] | None = None  # or the parts of a form
    idempotent: bool = False  # carries an Idempotency-Key, the same in every attempt
    once: bool = False  # never sent again
    save_to: Path | None = None  # where the reply's body goes; else into memory
    progress: Callable[[int, int | None], None] | None = None  # bytes sent, of how many
    reply_within: float = 0  # seconds in which the reply begins, where that takes longer than of other calls
    key: str = field(default_factory=lambda: uuid.uuid4().hex)

    def headers(self) -> dict[str, str]:
        h = {}
        if self.json is not None or self.text is not None:
            h["Content-Type"] = "application/json"
        if self.body is not None:
            h["Content-Type"] = PARQUET
            if self.body.size is not None:
                h["Content-Length"] = str(self.body.size)  # else it is sent in chunks, without a length
        if self.idempotent:
            h["Idempotency-Key"] = self.key
        return h

    def waits(self, usual: httpx.Timeout) -> httpx.Timeout:
        """How long it is waited for."""
        if not self.reply_within or usual.read is None:
            return usual
        return httpx.Timeout(connect=usual.connect, write=usual.write, pool=usual.pool, read=max(usual.read, self.reply_within))

    def options(self, chunks: Callable[[Call, Body], Any], url: str) -> dict[str, Any]:
        """What httpx builds the request of; chunks reads a body in pieces, in the way of the client."""
        content: Any = None
        files: Any = None
        headers = self.headers()
        if self.json is not None:
            content = dumps(self.json).encode()
        elif self.text is not None:
            content = self.text
        elif self.body is not None:
            content = chunks(self, self.body)
        elif self.parts is not None:
            files = {name: (f"{name}.parquet", part.open(), PARQUET) for name, part in self.parts.items()}
        if isinstance(content, bytes) and len(content) > COMPRESSED and not is_local(url):
            content = gzip.compress(content, 1)
            headers["Content-Encoding"] = "gzip"
        return {"params": self.params, "content": content, "files": files, "headers": headers}


@dataclass
class Reply:
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)


def is_local(url: str) -> bool:
    """Whether the server is on this machine, where compressing takes longer than sending."""
    host = httpx.URL(url).host
    return host == "localhost" or host.startswith("127.") or host == "::1"


def verification(verify: bool | str | ssl.SSLContext) -> bool | ssl.SSLContext:
    """What httpx takes of verify: a path is of the authorities that are trusted."""
    return ssl.create_default_context(cafile=verify) if isinstance(verify, str) else verify


def _foreign(value: Any) -> Any:
    """Refuses what JSON has no word for, and says where it belongs."""
    kind = type(value).__name__
    if hasattr(value, "predict"):
        raise TypeError(f"a {kind} stands where the query has no model: give it by name, model=…, or ask ds.score(model, metric)")
    raise TypeError(
        f"a {kind} is no part of a query, which has numbers, texts, lists and expressions made with ds.c; of a column, take a list"
    )


def dumps(value: Any) -> str:
    """JSON in which no number is lost: NaN and infinities are refused here, with a better message than the server's."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False, default=_foreign)
    except ValueError as e:
        raise ValueError(f"a number of the query is not finite, which JSON has no word for ({e})") from None


def problem(reply: Reply) -> ServerError:
    """The exception for a reply whose status is an error."""
    members: Any = None
    with contextlib.suppress(ValueError):
        members = reply.json()
    if not isinstance(members, dict):  # not our server: a proxy, perhaps
        members = {}
    wait = reply.headers.get("Retry-After", "")
    return error_of(reply.status, members, reply.headers.get("X-Request-Id"), float(wait) if wait.isdigit() else None)


def next_pause(error: Exception, call: Call, attempt: int, retries: int) -> float | None:
    """The seconds to wait before the next attempt, or None if there is none."""
    if call.once or attempt >= retries:
        return None
    pause: float = min(FIRST_PAUSE * 2.0**attempt, LONGEST_PAUSE)
    if isinstance(error, ServerError):
        if error.status not in (429, 503) or error.code in _LASTING:
            return None
        pause = min(max(pause, error.retry_after or 0.0), LONGEST_PAUSE)
    elif not isinstance(error, httpx.TransportError) or isinstance(error, httpx.UnsupportedProtocol):
        return None
    return pause / 2 + random.random() * pause / 2  # spread, so that clients do not return all at once


def failed(error: Exception, base_url: str) -> Exception:
    """What a caller sees of an error that no attempt mended."""
    if isinstance(error, httpx.TransportError):
        return ConnectionFailed(f"no reply from {base_url}: {error or type(error).__name__}. Is the server running there?")
    return error
