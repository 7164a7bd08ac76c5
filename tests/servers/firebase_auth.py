"""Who asks: tokens of service accounts, which are made here from assertions they signed, and those of the emulator."""

import base64
import hashlib
import hmac
import json
import os
import time
from typing import Any

from tests.servers.firebase_tree import Wrong

GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SCOPES = {
    "https://www.googleapis.com/auth/userinfo.email",
    "https://www.googleapis.com/auth/firebase.database",
}
# What stands before a SHA-256 in a signature by PKCS 1.
_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")

ADMIN = "admin"  # who is bound by no rules


class Accounts:
    """The service accounts that the server knows, and the tokens it gave them."""

    def __init__(self) -> None:
        self.keys: dict[str, tuple[int, int]] = {}  # by the account's address: modulus and exponent
        self.token_lives_s = 3600.0
        self.given = 0
        self._tokens: dict[str, float] = {}  # until when

    def token(self, form: dict[str, str], audience: str) -> dict[str, Any]:
        if form.get("grant_type") != GRANT:
            raise Wrong("unsupported_grant_type")
        claims = self._claims(form.get("assertion", ""))
        now = time.time()
        if claims.get("aud") != audience or SCOPES - set(claims.get("scope", "").split()):
            raise Wrong("invalid_scope")
        if not claims["iat"] - 300 <= now < claims["exp"] <= claims["iat"] + 3600:
            raise Wrong("invalid_grant: the assertion is not valid now")
        token = os.urandom(12).hex()
        self._tokens[token] = time.monotonic() + self.token_lives_s
        self.given += 1
        return {"access_token": token, "expires_in": self.token_lives_s, "token_type": "Bearer"}

    def who(self, header: str, options: dict[str, str], namespace: str) -> Any:
        """`None`, `ADMIN`, or what rules see as `auth`."""
        token = header.removeprefix("Bearer ") if header.startswith("Bearer ") else options.get("access_token", "")
        if not token:
            return None
        if token == "owner" and namespace:
            who: Any = ADMIN
        elif self._tokens.get(token, 0.0) > time.monotonic():
            who = ADMIN
        else:
            raise Wrong("Auth token is expired" if token in self._tokens else "Could not parse auth token.", 401)
        override = options.get("auth_variable_override")
        return json.loads(override) if override else who

    def revoke(self) -> None:
        self._tokens = dict.fromkeys(self._tokens, 0.0)

    def _claims(self, assertion: str) -> dict[str, Any]:
        try:
            head, claims, signature = assertion.split(".")
            found: dict[str, Any] = json.loads(_decoded(claims))
            modulus, exponent = self.keys[found["iss"]]
            assert json.loads(_decoded(head))["alg"] == "RS256"
        except (ValueError, KeyError, AssertionError):
            raise Wrong("invalid_grant: no such account") from None
        size = (modulus.bit_length() + 7) // 8
        signed = pow(int.from_bytes(_decoded(signature), "big"), exponent, modulus).to_bytes(size, "big")
        ending = b"\0" + _PREFIX + hashlib.sha256(f"{head}.{claims}".encode()).digest()
        if not hmac.compare_digest(signed, b"\0\1" + b"\xff" * (size - 2 - len(ending)) + ending):
            raise Wrong("invalid_grant: Invalid JWT Signature.")
        return found


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
