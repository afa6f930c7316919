"""Index, manifest and config documents are read strictly; the right child is chosen."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.digests import oci_digest
from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.oci import (
    DOCKER_INDEX,
    DOCKER_MANIFEST,
    LARGEST_MANIFEST_BYTES,
    OCI_CONFIG,
    OCI_INDEX,
    OCI_LAYER,
    OCI_MANIFEST,
    ImageIndex,
    ImageManifest,
    choose_child,
    parse_config,
    parse_image_document,
    parse_platform,
    runs_on,
)


def digest_of(number: int) -> str:
    return f"sha256:{number:064x}"


def child(number: int, platform: str | None, **fields: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"mediaType": OCI_MANIFEST, "digest": digest_of(number), "size": 9}
    if platform is not None:
        parts = platform.split("/")
        entry["platform"] = dict(zip(("os", "architecture", "variant"), parts, strict=False))
    return entry | fields


def index_of(*children: dict[str, Any], **fields: Any) -> ImageIndex:
    document = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": list(children)} | fields
    parsed = parse_image_document(json.dumps(document).encode(), source="index")
    assert isinstance(parsed, ImageIndex)
    return parsed


def manifest_bytes(**fields: Any) -> bytes:
    document: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {"mediaType": OCI_CONFIG, "digest": digest_of(1), "size": 2},
        "layers": [{"mediaType": OCI_LAYER, "digest": digest_of(2), "size": 3}],
    }
    return json.dumps(document | fields).encode()


def test_the_child_for_the_platform_is_chosen_and_attestations_are_skipped() -> None:
    index = index_of(
        child(1, "unknown/unknown", annotations={"vnd.docker.reference.type": "attestation"}),
        child(2, "linux/arm64/v8"),
        child(3, "linux/amd64"),
        child(4, "linux/amd64", annotations={"vnd.docker.reference.type": "attestation-manifest"}),
    )
    assert [each.digest for each in index.images()] == [digest_of(2), digest_of(3)]
    chosen = {
        wanted: choose_child(index, parse_platform(wanted), source="i").digest
        for wanted in ("linux/amd64", "linux/arm64", "linux/arm64/v8")
    }
    assert chosen == {
        "linux/amd64": digest_of(3),
        "linux/arm64": digest_of(2),
        "linux/arm64/v8": digest_of(2),
    }


@pytest.mark.parametrize(
    ("image", "wanted", "fits"),
    [
        ("linux/amd64", "linux/amd64", True),
        ("linux/amd64/v1", "linux/amd64", True),
        ("linux/amd64/v3", "linux/amd64", False),
        ("linux/amd64", "linux/amd64/v3", True),
        ("linux/arm64", "linux/arm64/v8", True),
        ("linux/arm/v6", "linux/arm/v7", True),
        ("linux/arm/v7", "linux/arm/v6", False),
        ("linux/arm64", "linux/amd64", False),
        ("windows/amd64", "linux/amd64", False),
        ("linux/riscv64", "linux/riscv64", True),
    ],
)
def test_variants_follow_their_defaults_and_what_a_processor_can_run(
    image: str, wanted: str, fits: bool
) -> None:
    assert runs_on(parse_platform(image), parse_platform(wanted)) is fits


def test_the_best_variant_wins_over_the_first() -> None:
    index = index_of(child(1, "linux/arm/v6"), child(2, "linux/arm/v7"))
    assert choose_child(index, parse_platform("linux/arm"), source="i").digest == digest_of(2)


def test_no_fitting_child_names_what_there_is() -> None:
    index = index_of(child(1, "linux/arm64"), child(2, "linux/s390x"))
    with pytest.raises(RefusedByPolicy, match=r"no image for linux/amd64; there are linux/arm64, "):
        choose_child(index, parse_platform("linux/amd64"), source="i")


def test_an_index_of_attestations_only_holds_no_image() -> None:
    index = index_of(child(1, "unknown/unknown"))
    with pytest.raises(MalformedDocument, match="holds no image"):
        choose_child(index, parse_platform("linux/amd64"), source="i")


def test_a_docker_manifest_list_is_an_index_by_its_carriers_word() -> None:
    document = {
        "schemaVersion": 2,
        "manifests": [child(1, "linux/amd64", mediaType=DOCKER_MANIFEST)],
    }
    parsed = parse_image_document(
        json.dumps(document).encode(), source="i", media_type=DOCKER_INDEX
    )
    assert isinstance(parsed, ImageIndex)
    assert len(parsed.images()) == 1


def test_a_manifest_with_null_layers_is_read_as_engine_25_wrote_it() -> None:
    parsed = parse_image_document(manifest_bytes(layers=None), source="m")
    assert isinstance(parsed, ImageManifest)
    assert parsed.layers == ()


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (manifest_bytes(manifests=[]), "at once"),
        (manifest_bytes(schemaVersion=1), "schema version 2"),
        (manifest_bytes(mediaType="text/html"), "neither"),
        (manifest_bytes(config={"mediaType": "application/vnd.wasm", "digest": digest_of(1), "size": 1}), "no container image"),
        (manifest_bytes(layers=[{"mediaType": "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", "digest": digest_of(1), "size": 1}]), "a layer is"),
        (manifest_bytes(layers=[{"mediaType": OCI_LAYER, "digest": "sha256:../../etc", "size": 1}]), "digest"),
        (manifest_bytes(layers=[{"mediaType": OCI_LAYER, "digest": digest_of(1), "size": -1}]), "size"),
        (manifest_bytes(layers=[{"mediaType": OCI_LAYER, "digest": digest_of(1), "size": 1}] * 126), "layers"),
        (b'{"schemaVersion": 2, "schemaVersion": 2}', "twice"),
        (b" " * (LARGEST_MANIFEST_BYTES + 1), "at most"),
        (b"[]", "object"),
        (b"\xff", "UTF-8"),
    ],
)  # fmt: skip
def test_a_document_that_is_no_image_is_malformed(data: bytes, fact: str) -> None:
    with pytest.raises(MalformedDocument, match=fact):
        parse_image_document(data, source="m")


def config_bytes(**fields: Any) -> bytes:
    document: dict[str, Any] = {
        "os": "linux",
        "architecture": "amd64",
        "rootfs": {"type": "layers", "diff_ids": [digest_of(1)]},
        "config": {"Cmd": ["/x"]},
    }
    return json.dumps(document | fields).encode()


def test_a_config_must_have_the_bytes_its_digest_says() -> None:
    data = config_bytes()
    assert parse_config(data, source="c", digest=oci_digest(data)).diff_ids == (digest_of(1),)
    with pytest.raises(MalformedDocument, match="expected sha256:"):
        parse_config(data + b" ", source="c", digest=oci_digest(data))


@pytest.mark.parametrize(
    "fields",
    [
        {"rootfs": {"type": "layers", "diff_ids": []}},
        {"rootfs": {"type": "windows", "diff_ids": [digest_of(1)]}},
        {"rootfs": {"diff_ids": ["x"]}},
        {"rootfs": None},
        {"os": 1},
    ],
)
def test_a_config_without_proper_layers_or_platform_is_malformed(fields: dict[str, Any]) -> None:
    with pytest.raises(MalformedDocument):
        parse_config(config_bytes(**fields), source="c")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["schemaVersion", "mediaType", "manifests", "config", "layers", "digest"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@settings(max_examples=60)
@given(JSON_VALUES)
def test_any_json_is_read_or_refused(value: Any) -> None:
    data = json.dumps(value).encode()
    with contextlib.suppress(MalformedDocument):
        assert parse_image_document(data, source="x") is not None
    with contextlib.suppress(MalformedDocument):
        assert parse_config(data, source="x").diff_ids
