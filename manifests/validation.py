"""Turn a model's validation errors into lines that a person can act on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from manifests.encoding import parse_json_object
from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted

MAX_FAULTS = 10

Place = tuple[str | int, ...]
Document = TypeVar("Document", bound="StrictDocument")
Model = TypeVar("Model", bound=BaseModel)


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Listed = BeforeValidator(_as_tuple)
"""Lets a strict tuple be written as a list, the only sequence that JSON and YAML have."""


class StrictDocument(BaseModel):
    """A frozen document: no unknown field, no silent conversion, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def cross_field_error(field: str, fact: str) -> PydanticCustomError:
    """Return the error of a rule between fields, to be shown at `field`."""
    return PydanticCustomError("cross_field", "{fact}", {"fact": fact, "field": field})


def validate_document(
    model: type[Document], values: object, *, prefix: Callable[[Place], str]
) -> Document:
    """Return `values` as a `model`.

    `prefix` says where a field stands, as `edition.yaml:12`.

    Raises:
        MalformedDocument: one line per fault, at most ten: place, field, fact and bound, and
            what the field may hold (its description).

    """
    try:
        return model.model_validate(values, strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False)
        lines = [_fault(model, detail, prefix) for detail in details[:MAX_FAULTS]]
        if len(details) > MAX_FAULTS:
            lines.append(f"and {len(details) - MAX_FAULTS} more")
        raise MalformedDocument("\n".join(lines)) from error


def parse_json_document(model: type[Model], data: bytes, *, source: str) -> Model:
    """Return the one JSON object that `data` holds as a `model`.

    Raises:
        MalformedDocument: with `source` and the first field that is wrong.

    """
    parse_json_object(data, source=source)  # duplicate keys and NaN are refused here
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        fact = escape_untrusted(f"{place}: {first['msg']}", 200)
        raise MalformedDocument(f"{source}: {fact}") from error


def _fault(model: type[BaseModel], detail: ErrorDetails, prefix: Callable[[Place], str]) -> str:
    context = detail.get("ctx", {})
    place: Place = (
        (*detail["loc"], *context["field"].split(".")) if "field" in context else detail["loc"]
    )
    name = ".".join(escape_untrusted(str(part), 60) for part in place)
    field = f"field {name}: " if name else ""
    owner, hint = _hint(model, place)
    return f"{prefix(place)}: {field}{_fact(detail, owner)}{hint}"


def _fact(detail: ErrorDetails, owner: type[BaseModel]) -> str:
    match detail["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return f"is unknown; the fields here are {', '.join(owner.model_fields)}"
        case "cross_field":
            return detail["msg"]
        case "model_type" | "dict_type":
            return f"should hold fields, but it is {_shown(detail['input'])}"
        case "value_error":
            message = detail["msg"].removeprefix("Value error, ")
            composite = isinstance(detail["input"], (dict, list, tuple))
            return message if composite else f"{message}, but it is {_shown(detail['input'])}"
        case _:
            message = detail["msg"]
            return f"{message[:1].lower()}{message[1:]}, but it is {_shown(detail['input'])}"


def _shown(value: object) -> str:
    text = value.isoformat() if isinstance(value, dt.date) else repr(value)[:200]
    return escape_untrusted(text, 60)


def _hint(model: type[BaseModel], place: Place) -> tuple[type[BaseModel], str]:
    """Return the model that owns the last named field, and what that field may hold."""
    hint = ""
    for part in place:
        field = model.model_fields.get(part) if isinstance(part, str) else None
        if field is None:
            break
        hint = f"; write {field.description}" if field.description else ""
        inner = _model_in(field.annotation)
        if inner is not None:
            model = inner
    else:
        return model, hint
    return model, "" if isinstance(part, str) else hint


def _model_in(annotation: object) -> type[BaseModel] | None:
    """Return the model that a field's type is or holds, if there is one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _model_in(inner)
        if found is not None:
            return found
    return None
