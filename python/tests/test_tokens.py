"""Tokens of an OpenID Connect issuer in place of a key."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Running, table

import holdoutd

ISSUER, AUDIENCE = "https://issuer.example", "holdoutd"
EXPONENT = 65537


def prime(draw: random.Random, bits: int) -> int:
    """A prime with its two highest bits set, by Miller and Rabin's test."""
    while True:
        n = draw.getrandbits(bits) | 3 << (bits - 2) | 1
        if any(n % small == 0 for small in range(3, 2000, 2)) or n % EXPONENT == 1:
            continue
        odd, twos = n - 1, 0
        while odd % 2 == 0:
            odd, twos = odd // 2, twos + 1
        for _ in range(8):
            x = pow(draw.randrange(2, n - 1), odd, n)
            if x not in (1, n - 1) and not any((x := x * x % n) == n - 1 for _ in range(twos - 1)):
                break
        else:
            return n


def text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Issuer:
    """Signs tokens by RS256, with the standard library alone."""

    def __init__(self) -> None:
        draw = random.Random(1)
        p, q = prime(draw, 1024), prime(draw, 1024)
        self.n, self.d = p * q, pow(EXPONENT, -1, (p - 1) * (q - 1))

    def keys(self) -> str:
        def number(of: int) -> str:
            return text(of.to_bytes((of.bit_length() + 7) // 8, "big"))

        return json.dumps({"keys": [{"kty": "RSA", "kid": "one", "n": number(self.n), "e": number(EXPONENT)}]})

    def token(self, subject: str, **claims: Any) -> str:
        said = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "exp": int(time.time()) + 3600, **claims}
        signed = ".".join(text(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "one"}, said))
        digest = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(signed.encode()).digest()
        padded = b"\x00\x01" + b"\xff" * (256 - 3 - len(digest)) + b"\x00" + digest
        return signed + "." + text(pow(int.from_bytes(padded, "big"), self.d, self.n).to_bytes(256, "big"))


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def issued(binary: Path, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    keys = tmp_path_factory.mktemp("issuer") / "keys.json"
    keys.write_text(issuer.keys())
    flags = ["--oidc-issuer", ISSUER, "--oidc-audience", AUDIENCE, "--oidc-jwks", str(keys)]
    server = Running(binary, tmp_path_factory.mktemp("data"), *flags)
    yield server
    server.process.terminate()
    server.process.wait()


def test_a_token_is_a_key_that_an_admin_bound(issued: Running, issuer: Issuer, tmp_path: Path) -> None:
    """It gives nothing before and after, spends its key's grant between, and no error shows it."""
    admin = holdoutd.connect(issued.url, key=issued.key)
    ds = admin.upload(table(501), name="issued", holdout=0.5, questions=200)
    token = issuer.token("repo:acme/models")
    with pytest.raises(holdoutd.NotAllowed, match="must bind one") as unbound:
        holdoutd.connect(issued.url, key=token)
    assert token.split(".")[1] not in str(unbound.value)
    made = admin.new_key("ci", "granted", oidc_subject="repo:acme/models")
    assert "secret" not in made and made["oidc"] == {"issuer": ISSUER, "claim": "sub", "subject": "repo:acme/models"}
    assert [k["oidc"]["subject"] for k in admin.keys() if "oidc" in k] == ["repo:acme/models"]  # noqa: SIM118
    admin.new_grant(made["id"], ds.id, 1)
    kept = tmp_path / "token"  # as workloads have theirs
    kept.write_text(token + "\n")
    mine = holdoutd.connect(issued.url, key=f"@{kept}").holdout(ds.id)
    assert mine.fraction("x > 0").value is not None and mine.budget.questions.left == 0
    with pytest.raises(holdoutd.GrantExhausted):
        mine.fraction("x > 1")
    with pytest.raises(holdoutd.NotAllowed):
        mine.server.keys()
    admin.revoke_key(made["id"])
    with pytest.raises(holdoutd.NotAllowed, match="must bind one"):
        mine.fraction("x > 0")


def test_wrong_tokens(issued: Running, issuer: Issuer) -> None:
    admin = holdoutd.connect(issued.url, key=issued.key)

    async def bind() -> dict[str, Any]:
        async with await holdoutd.aio.connect(issued.url, key=issued.key) as server:
            return await server.new_key("bob", oidc_subject="bob")

    assert "secret" not in asyncio.run(bind())
    right = issuer.token("bob")
    assert holdoutd.connect(issued.url, key=right).version()
    for wrong, why in (
        (issuer.token("bob", aud="other"), "another audience"),
        (issuer.token("bob", iss="https://other.example"), "another issuer"),
        (issuer.token("bob", exp=int(time.time()) - 3600), "expired"),
        (right[:-8] + "AAAAAAAA", "signature"),
    ):
        with pytest.raises(holdoutd.NotAllowed, match=why):
            holdoutd.connect(issued.url, key=wrong)
    for subject, why in (("", "is empty"), ("bob", "already"), ("a\nb", "control characters")):
        with pytest.raises(holdoutd.ServerError, match=why):
            admin.new_key("bob", oidc_subject=subject)
