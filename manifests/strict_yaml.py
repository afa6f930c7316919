"""YAML as a person writes it and a program can trust: one small document, every line known."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import yaml

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted

Path = tuple[str | int, ...]
"""Where a value stands: keys and list positions from the top."""

MAX_BYTES = 64 * 1024
MAX_DEPTH = 8

_TAGS = frozenset(
    f"tag:yaml.org,2002:{kind}"
    for kind in ("str", "int", "float", "bool", "null", "timestamp", "map", "seq")
)

_CONVERSION_ERRORS = (ValueError, OverflowError, KeyError, TypeError, AttributeError, IndexError)
"""What pyyaml lets out when a scalar does not fit its tag, as `!!int x` or 2026-13-01."""


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """A document's plain values and the line, from 1, on which each of them begins."""

    values: dict[str, object]
    lines: dict[Path, int]

    def line_of(self, path: Path) -> int:
        """Return the line of `path`, or of the nearest thing around it that exists."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def parse_yaml(data: bytes, *, source: str) -> YamlDocument:
    """Parse one strict YAML mapping.

    Refused are: more than 64 KiB, bytes that are not UTF-8, duplicate keys, keys that are not
    text, anchors and aliases (a few lines of them can stand for gigabytes), merge keys, tags of
    other types, several documents and nesting beyond 8 levels.

    Raises:
        MalformedDocument: with source, line and the first fact that is wrong.

    """
    if len(data) > MAX_BYTES:
        raise MalformedDocument(f"{source}: {len(data)} bytes; write at most {MAX_BYTES}")
    root = _composed(_decoded(data, source), source)
    if not isinstance(root, yaml.MappingNode):
        raise MalformedDocument(f"{source}:1: expected fields as `name: value`; write a mapping")
    reader = _Reader(source)
    values = reader.mapping(root, ())
    return YamlDocument(values, reader.lines)


def _decoded(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MalformedDocument(
            f"{source}:{line}: not UTF-8 at byte {error.start}; save the file as UTF-8"
        ) from error


def _composed(text: str, source: str) -> yaml.Node | None:
    try:
        _check_events(text, source)
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        problem = escape_untrusted(error.problem or "cannot be read", 200)
        raise MalformedDocument(f"{source}:{line}: not YAML: {problem}") from error
    except yaml.YAMLError as error:
        shown = escape_untrusted(str(error).splitlines()[0], 200)
        raise MalformedDocument(f"{source}: not YAML: {shown}") from error
    except ValueError as error:  # pyyaml lets chr() of an escape beyond Unicode through
        raise MalformedDocument(f"{source}: not YAML: {escape_untrusted(str(error))}") from error


def _check_events(text: str, source: str) -> None:
    """Refuse aliases and deep nesting before any tree is built."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise MalformedDocument(
                f"{source}:{_line(event)}: anchors and aliases are not allowed; write the value out"
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise MalformedDocument(
                f"{source}:{_line(event)}: nested more than {MAX_DEPTH} deep; write it flat"
            )


def _line(part: yaml.Node | yaml.Event) -> int:
    return 1 if part.start_mark is None else int(part.start_mark.line) + 1


class _Reader:
    """Turns nodes into plain values and remembers their lines."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines: dict[Path, int] = {}
        self._scalars = yaml.SafeLoader("")

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if key in values:
                shown = escape_untrusted(key, 60)
                raise self._error(key_node, f'the field "{shown}" stands twice; keep one')
            self.lines[(*path, key)] = _line(key_node)
            values[key] = self._value(value_node, (*path, key))
        return values

    def _key(self, node: yaml.Node) -> str:
        if node.tag == "tag:yaml.org,2002:str" and isinstance(node.value, str):
            return node.value
        raise self._error(node, "a field's name must be text; write `name: value`")

    def _value(self, node: yaml.Node, path: Path) -> object:
        self.lines.setdefault(path, _line(node))
        if node.tag not in _TAGS:
            raise self._error(node, f"the tag {escape_untrusted(node.tag, 60)} is not allowed")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, (*path, i)) for i, item in enumerate(node.value)]
        return self._scalar(node)

    def _scalar(self, node: yaml.Node) -> object:
        shown = escape_untrusted(str(node.value), 60)
        try:
            value = self._scalars.construct_object(node)
        except (yaml.YAMLError, *_CONVERSION_ERRORS) as error:
            raise self._error(node, f"{shown} cannot be read as its type") from error
        if isinstance(value, (str, int, float, dt.date)) or value is None:
            return value
        raise self._error(node, f"{shown} is not a plain value")

    def _error(self, node: yaml.Node, fact: str) -> MalformedDocument:
        return MalformedDocument(f"{self.source}:{_line(node)}: {fact}")
