"""Tokens: shared secrets of the two ends of a link.

The token itself is never sent. Each side sends a random nonce, and proves that it knows the token
by a keyed hash over both nonces (HMAC, compared in constant time). A listener may have several
tokens, one for each link, so that one can be revoked without the others.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import NetworkError
from penstock.storage import os_errors

NONCE_BYTES = 32
MIN_TOKEN_CHARACTERS = 16
MAX_TOKENS = 1_000
MAX_TOKEN_FILE_BYTES = 1 << 20
NO_TOKEN = b""
"""For connections without a token: allowed on loopback only."""


def read_tokens(path: Path) -> tuple[bytes, ...]:
    """One token per line; empty lines and lines starting with # are ignored."""
    with os_errors("read tokens", path), path.open("rb") as file:
        content = file.read(MAX_TOKEN_FILE_BYTES + 1)
    lines = [line.strip() for line in content.splitlines()]
    tokens = tuple(line for line in lines if line and not line.startswith(b"#"))
    if len(content) > MAX_TOKEN_FILE_BYTES or not 0 < len(tokens) <= MAX_TOKENS:
        raise NetworkError(
            f"{path} does not hold 1 to {MAX_TOKENS} tokens",
            hint="write one token on each line",
        )
    if min(map(len, tokens)) < MIN_TOKEN_CHARACTERS:
        raise NetworkError(
            f"{path} holds a token that is too short",
            detail=f"tokens have at least {MIN_TOKEN_CHARACTERS} characters",
            hint='draw one: python -c "import secrets; print(secrets.token_urlsafe())"',
        )
    return tokens


def draw_nonce() -> bytes:
    return secrets.token_bytes(NONCE_BYTES)


def proof(token: bytes, prover: str, own_nonce: bytes, other_nonce: bytes) -> bytes:
    """The proof that one side, `prover`, knows the token. The proofs of the two sides differ, so
    that neither can replay what it received."""
    return hmac.digest(token, prover.encode() + own_nonce + other_nonce, "sha256")


def proven_token(
    tokens: Sequence[bytes], given: bytes, prover: str, own_nonce: bytes, other_nonce: bytes
) -> bytes | None:
    """The token that the other side has proven to know; all of them are always tried."""
    found = None
    for token in tokens:
        if hmac.compare_digest(proof(token, prover, own_nonce, other_nonce), given):
            found = token
    return found
