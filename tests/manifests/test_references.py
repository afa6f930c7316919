"""Image references are parsed as engines parse them, and strictly."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import MalformedDocument
from manifests.references import ImageReference, parse_reference
from orchestrator.images.rules.image_arguments import ArchivePath, EngineName, parse_image_argument

DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("text", "registry", "repository"),
    [
        (f"127.0.0.1:5000/team/nova@{DIGEST}", "127.0.0.1:5000", "team/nova"),
        (f"localhost/nova@{DIGEST}", "localhost", "nova"),
        (f"ghcr.io/a/b/c_d__e-f.g@{DIGEST}", "ghcr.io", "a/b/c_d__e-f.g"),
        (f"debian@{DIGEST}", "docker.io", "library/debian"),
        (f"nova/entry@{DIGEST}", "docker.io", "nova/entry"),
        (f"[::1]:5000/nova@{DIGEST}", "[::1]:5000", "nova"),
    ],
)
def test_a_pinned_reference_is_split_as_engines_split_it(
    text: str, registry: str, repository: str
) -> None:
    assert parse_reference(text) == ImageReference(
        registry=registry, repository=repository, digest=DIGEST, tag=None
    )


@pytest.mark.parametrize(
    ("text", "tag"), [("nova/entry:v1.2", "v1.2"), ("nova/entry", "latest"), ("h:1/a:b", "b")]
)
def test_a_tag_is_kept_apart_from_the_port(text: str, tag: str) -> None:
    reference = parse_reference(text)
    assert (reference.tag, reference.digest) == (tag, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@" + DIGEST,
        "nova@sha256:abc",
        f"nova@{DIGEST.upper()}",
        f"nova@{DIGEST}\n",
        f"nova:v1@{DIGEST}",
        f"nova@sha512:{'ab' * 64}",
        "Nova/Entry@" + DIGEST,
        "host:99999/a@" + DIGEST,
        "host:0/a@" + DIGEST,
        "a/../b@" + DIGEST,
        "a//b@" + DIGEST,
        "https://ghcr.io/a@" + DIGEST,
        "-rm@" + DIGEST,
        "nova:" + "t" * 129,
        "a/" * 200 + "b@" + DIGEST,
        "64" * 32,
        "nova entry",
        "nova:\x1b[31m",
    ],
)
def test_anything_else_is_malformed_and_its_text_is_harmless(text: str) -> None:
    with pytest.raises(MalformedDocument) as caught:
        parse_reference(text)
    assert str(caught.value).isprintable()
    assert "sha256:<64 hex>" in str(caught.value)


def test_a_reference_shows_itself_as_it_can_be_asked_for_again() -> None:
    reference = parse_reference(f"h.example/a/b@{DIGEST}")
    assert parse_reference(str(reference)) == reference


def test_a_path_a_local_name_and_a_reference_are_told_apart() -> None:
    assert parse_image_argument("./entry") == ArchivePath(path="./entry")
    assert parse_image_argument("entry.tar") == ArchivePath(path="entry.tar")
    assert parse_image_argument("engine:nova:v1") == EngineName(name="nova:v1")
    assert isinstance(parse_image_argument("nova:v1"), ImageReference)
    with pytest.raises(MalformedDocument):
        parse_image_argument("engine:")


@settings(max_examples=100)
@given(st.text(max_size=80))
def test_any_text_is_a_reference_or_a_malformed_document(text: str) -> None:
    with contextlib.suppress(MalformedDocument):
        assert parse_reference(text).name
