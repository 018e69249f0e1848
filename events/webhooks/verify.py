"""Verify that a webhook is Parley's. Copy this file: it needs Python 3.9 and nothing else."""

import hashlib
import hmac
import re
import time
from typing import Optional


class VerificationError(Exception):
    """The payload is not to be trusted. code is malformed, mismatch or too_old."""

    def __init__(self, code: str):
        super().__init__(f"webhook signature: {code}")
        self.code = code


def verify(payload: bytes, header: str, secret: str, tolerance: float = 300, now: Optional[float] = None) -> None:
    """Raise VerificationError unless header (X-Service-Signature) signs the raw body."""
    parts = [part.partition("=")[::2] for part in header.split(",")]
    timestamp = next((value for name, value in reversed(parts) if name == "t"), "")
    signatures = [value for name, value in parts if name == "v1"]
    if not re.fullmatch(r"[0-9]{1,18}", timestamp, re.ASCII) or not signatures:
        raise VerificationError("malformed")
    want = hmac.new(secret.encode(), timestamp.encode() + b"." + payload, hashlib.sha256).hexdigest()
    if not secret or not any(hmac.compare_digest(want.encode(), got.encode()) for got in signatures):
        raise VerificationError("mismatch")
    if int(timestamp) < int((time.time() if now is None else now) - tolerance):
        raise VerificationError("too_old")
