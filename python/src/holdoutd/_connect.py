"""Where the server is, and with which key."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

from .errors import NotConfigured

FILE = "connect.json"  # in a data directory: {"url": …, "key_file": …}
DIRECTORY = "holdoutd-data"  # that `holdoutd serve` takes unless it is told otherwise

_HOW = (
    "give connect() a URL and a key, set HOLDOUTD_URL and HOLDOUTD_KEY, or start the server on this machine: `holdoutd serve` "
    f"writes {DIRECTORY}/{FILE}, which connect() finds from the same directory; on a terminal, as `holdoutd demo`, one for your user too"
)


def user_file() -> Path:
    """The file of the user, which `holdoutd demo` writes, and `holdoutd serve` on a terminal."""
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
    if named:
        return _read(Path(named), key)
    nearby = Path(DIRECTORY) / FILE
    for place in (nearby, user_file()):
        if place.exists():
            return _read(place, key, nearby=place == nearby)
    raise NotConfigured(f"there is no server to connect to: {_HOW}")


def _read(path: Path, key: str | None, nearby: bool = False) -> tuple[str, str]:
    try:
        members = json.loads(path.read_text())
        url = str(members["url"])
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise NotConfigured(f"{path} does not say where a server is ({e}); {_HOW}") from e
    if nearby:
        _check_nearby(path, url, members.get("key_file"))
    if key is None:
        if "key_file" not in members:
            raise NotConfigured(f"{path} names no key_file: give key=…")
        key = _key(path.parent / str(members["key_file"]))
    return url, key


def _check_nearby(path: Path, url: str, key_file: object) -> None:
    """Refuse what the file of the working directory says and `holdoutd serve` would not have written.

    Nobody named that file: whoever filled the directory wrote it, such as the author of a repository. So it leads to this machine alone,
    and its key lies beside it: no key of the environment, and no file from elsewhere, goes to a server of that author.
    """
    named = f"to trust it all the same, set HOLDOUTD_CONNECT={path}"
    if not _of_this_machine(url):
        raise NotConfigured(f"{path} is in the working directory and names a server that is not on this machine, {url!r}: {named}")
    if key_file is not None and path.parent.resolve() not in (path.parent / str(key_file)).resolve().parents:
        raise NotConfigured(f"{path} is in the working directory, and its key_file is not beside it: {named}")


def _of_this_machine(url: str) -> bool:
    """Whether a URL's host is an address of this machine. Names are not looked up: whoever wrote one may say what it leads to."""
    try:
        host = urlsplit(url).hostname or ""
        if host == "localhost":
            return True
        address = ipaddress.ip_address(host)
        family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as s:  # it sends nothing: only an own address can be bound
            s.bind((host, 0))
    except (ValueError, OSError):
        return False
    return not address.is_unspecified and not address.is_multicast


def _key(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as e:
        raise NotConfigured(f"cannot read the key: {e}") from e
