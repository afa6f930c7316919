"""What a registry answered: bounded bodies, and errors in the registry's own words."""

from __future__ import annotations

from typing import NoReturn

import requests

from manifests.encoding import parse_json
from manifests.errors import MalformedDocument, PisteError, PlatformFault, RefusedByPolicy
from manifests.text import escape_untrusted

_LARGEST_MESSAGE_BYTES = 64 << 10
_CHUNK_BYTES = 64 << 10


def bounded_body(response: requests.Response, limit_bytes: int, place: str) -> bytes:
    """Read the body. Raises MalformedDocument above `limit_bytes`."""
    data = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        data += chunk
        if len(data) > limit_bytes:
            raise MalformedDocument(f"{place}: more than {limit_bytes} bytes")
    return bytes(data)


def _registrys_words(response: requests.Response) -> str:
    """Return the message of the registry's error document, or the HTTP reason."""
    try:
        data = bounded_body(response, _LARGEST_MESSAGE_BYTES, "error")
        document = parse_json(data, source="error")
    except (PisteError, requests.RequestException):
        return response.reason or "no reason given"
    errors = document.get("errors") if isinstance(document, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    if not isinstance(first, dict):
        return response.reason or "no reason given"
    words = [str(first[key]) for key in ("code", "message") if first.get(key)]
    return escape_untrusted(": ".join(words) or response.reason, 300)


def raise_for_status(response: requests.Response, place: str) -> NoReturn:
    """Raise the error that fits the status, with the registry's words and what to do next."""
    status, words = response.status_code, _registrys_words(response)
    said = f"{place}: the registry answered {status} ({words})"
    if status in {401, 403}:
        raise RefusedByPolicy(f"{said}; run `docker login` for it, or ask for access")
    if status == 404:
        raise MalformedDocument(f"{said}; check the name, and that this digest was pushed")
    if status == 429:
        wait = escape_untrusted(response.headers.get("Retry-After", "a while"), 40)
        raise PlatformFault(f"{said}; its rate limit is reached: try again after {wait}, logged in")
    raise PlatformFault(f"{said}; try again later")
