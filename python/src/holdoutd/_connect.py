"""Where the server is, and with which key."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

from .errors import NotConfigured

FILE = "connect.json"  # in a data directory: {"url": …, "key_file": …}
DIRECTORY = "holdoutd-data"  # that `holdoutd serve` takes unless it is told otherwise

_HOW = (
    "give connect() a URL and a key, set HOLDOUTD_URL and HOLDOUTD_KEY, or start the server on this machine: `holdoutd serve` "
    f"writes {DIRECTORY}/{FILE}, which connect() finds from the same directory, and `holdoutd demo` one for your user"
)


def user_file() -> Path:
    """The file of the user, which `holdoutd demo` writes."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "holdoutd" / FILE


def find(source: str | os.PathLike[str] | None, key: str | None) -> tuple[str, str]:
    """The URL and the key, from arguments, environment or a file, in this order."""
    url = None
    if source is not None:
        if isinstance(source, str) and urlsplit(source).scheme in ("http", "https"):
            url = source
        else:
            path = Path(source)
            return _read(path / FILE if path.is_dir() else path, key)
    url = url or os.environ.get("HOLDOUTD_URL")
    key = key or os.environ.get("HOLDOUTD_KEY")
    if key and key.startswith("@"):
        key = _key(Path(key[1:]))
    if url and key:
        return url, key
    if url:
        raise NotConfigured(f"there is no key for {url}: give key=…, or set HOLDOUTD_KEY to it, or to @FILE")
    named = os.environ.get("HOLDOUTD_CONNECT")
    places = [Path(named)] if named else [Path(DIRECTORY) / FILE, user_file()]
    for place in places:
        if named or place.exists():
            return _read(place, key)
    raise NotConfigured(f"there is no server to connect to: {_HOW}")


def _read(path: Path, key: str | None) -> tuple[str, str]:
    try:
        members = json.loads(path.read_text())
        url = str(members["url"])
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise NotConfigured(f"{path} does not say where a server is ({e}); {_HOW}") from e
    if key is None:
        if "key_file" not in members:
            raise NotConfigured(f"{path} names no key_file: give key=…")
        key = _key(path.parent / str(members["key_file"]))
    return url, key


def _key(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as e:
        raise NotConfigured(f"cannot read the key: {e}") from e
