"""A hostile archive is refused with a reason; an honest one of any generation is read."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.digests import oci_digest
from manifests.encoding import canonical_json
from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.images import Transport
from manifests.oci import OCI_CONFIG, OCI_INDEX, OCI_LAYER, OCI_MANIFEST, parse_platform
from orchestrator.images.rules.archive_intake import ArchiveImage, read_archive
from orchestrator.images.rules.image_archive import (
    EntryKind,
    ImageSettings,
    TarEntry,
    config_document,
    docker_archive_chunks,
    layer_from_entries,
    oci_layout_chunks,
    tar_chunks,
    with_parents,
)

AMD64 = parse_platform("linux/amd64")
LAYER = layer_from_entries([TarEntry(path="app", data=b"x" * 3000)])
LAYER_BYTES = b"".join(LAYER.chunks())
CONFIG = config_document(ImageSettings(entrypoint=("/app",)), [LAYER.diff_id])
CONFIG_NAME = oci_digest(CONFIG).removeprefix("sha256:") + ".json"


class BytesArchive:
    """An archive in memory."""

    name = "entry.tar"

    def __init__(self, data: bytes) -> None:
        self.data = data

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        return self.data[offset : offset + size_bytes]


def read(data: bytes, limit_bytes: int = 1 << 30) -> ArchiveImage:
    return read_archive(BytesArchive(data), wanted=AMD64, limit_bytes=limit_bytes)


def tar_of(*entries: TarEntry) -> bytes:
    return b"".join(tar_chunks(entries))


def docker_files(
    *,
    layer: bytes = LAYER_BYTES,
    layer_name: str = "0/layer.tar",
    config: bytes = CONFIG,
    config_name: str = CONFIG_NAME,
    **fields: Any,
) -> tuple[TarEntry, ...]:
    image = {"Config": config_name, "RepoTags": ["holder:1"], "Layers": [layer_name]} | fields
    return (
        TarEntry(path=config_name, data=config),
        TarEntry(path=layer_name, data=layer),
        TarEntry(path="manifest.json", data=json.dumps([image]).encode()),
    )


def blob(data: bytes) -> TarEntry:
    return TarEntry(path=f"blobs/sha256/{oci_digest(data).removeprefix('sha256:')}", data=data)


def descriptor(data: bytes, media_type: str, **fields: Any) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": oci_digest(data), "size": len(data)} | fields


def oci_manifest_of(config: bytes, layer: bytes, media_type: str = OCI_LAYER) -> bytes:
    return canonical_json(
        {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": descriptor(config, OCI_CONFIG),
            "layers": [descriptor(layer, media_type)],
        }
    )


def oci_files(*blobs: bytes, children: list[dict[str, Any]]) -> tuple[TarEntry, ...]:
    index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": children}
    return (
        TarEntry(path="oci-layout", data=b'{"imageLayoutVersion": "1.0.0"}'),
        TarEntry(path="index.json", data=canonical_json(index)),
        *(blob(data) for data in dict.fromkeys(blobs)),
    )


def reload(image: ArchiveImage, data: bytes) -> ArchiveImage:
    return read(b"".join(image.docker_archive(BytesArchive(data))))


def test_a_docker_archive_is_read_and_its_tag_is_dropped() -> None:
    data = tar_of(*docker_files())
    image = read(data)
    assert image.transport is Transport.DOCKER_ARCHIVE
    assert image.config_digest == oci_digest(CONFIG)
    assert [layer.diff_id for layer in image.layers] == [LAYER.diff_id]
    again = b"".join(image.docker_archive(BytesArchive(data)))
    assert b"holder:1" not in again
    assert len(again) == image.docker_archive_bytes(BytesArchive(data))
    assert read(again).config_digest == image.config_digest


def test_an_oci_layout_is_read_with_its_manifest_digest_and_converted() -> None:
    data = b"".join(oci_layout_chunks(CONFIG, [LAYER], platform="linux/amd64"))
    image = read(data)
    assert image.transport is Transport.OCI_ARCHIVE
    assert image.manifest_digest is not None
    assert image.index_digest is None
    assert reload(image, data).transport is Transport.DOCKER_ARCHIVE


@pytest.mark.parametrize("pieces", [1, 2])
def test_gzip_layers_are_hashed_uncompressed(pieces: int) -> None:
    half = len(LAYER_BYTES) // pieces
    parts = [LAYER_BYTES[: half or None], LAYER_BYTES[half:]] if pieces == 2 else [LAYER_BYTES]
    packed = b"".join(gzip.compress(part, mtime=0) for part in parts)
    image = read(tar_of(*docker_files(layer=packed)))
    assert image.layers[0].diff_id == LAYER.diff_id
    assert image.uncompressed_bytes == len(LAYER_BYTES)


def test_a_layer_that_is_a_link_to_another_layer_is_read_as_old_engines_wrote_it() -> None:
    config = config_document(ImageSettings(), [LAYER.diff_id, LAYER.diff_id])
    name = oci_digest(config).removeprefix("sha256:") + ".json"
    files = docker_files(config=config, config_name=name, Layers=["0/layer.tar", "1/layer.tar"])
    link = TarEntry(path="1/layer.tar", kind=EntryKind.SYMLINK, target="../0/layer.tar")
    data = tar_of(*with_parents([*files, link]))
    image = read(data)
    assert len(image.layers) == 2
    assert reload(image, data).config_digest == oci_digest(config)


def test_names_that_begin_with_a_dot_and_a_slash_are_taken() -> None:
    files = [
        TarEntry(path=f"./{entry.path}", data=entry.data, kind=entry.kind)
        for entry in docker_files()
    ]
    assert read(tar_of(TarEntry(path="./", kind=EntryKind.DIRECTORY), *files)).config_digest


def test_a_combined_layout_keeps_the_manifest_digest() -> None:
    manifest = oci_manifest_of(CONFIG, LAYER_BYTES)
    child = descriptor(manifest, OCI_MANIFEST)
    oci = oci_files(manifest, CONFIG, LAYER_BYTES, children=[child, child])
    image = {
        "Config": blob(CONFIG).path,
        "RepoTags": None,
        "Layers": [blob(LAYER_BYTES).path],
    }
    data = tar_of(*oci, TarEntry(path="manifest.json", data=json.dumps([image]).encode()))
    found = read(data)
    assert (found.transport, found.manifest_digest) == (
        Transport.DOCKER_ARCHIVE,
        oci_digest(manifest),
    )


def test_a_combined_layout_whose_halves_disagree_is_refused() -> None:
    other = config_document(ImageSettings(entrypoint=("/other",)), [LAYER.diff_id])
    manifest = oci_manifest_of(other, LAYER_BYTES)
    oci = oci_files(manifest, other, LAYER_BYTES, children=[descriptor(manifest, OCI_MANIFEST)])
    with pytest.raises(MalformedDocument, match="different images"):
        read(tar_of(*oci, *docker_files()))


def test_the_child_for_the_platform_is_chosen_and_the_nested_index_is_recorded() -> None:
    arm = config_document(ImageSettings(platform="linux/arm64"), [LAYER.diff_id])
    ours, theirs = oci_manifest_of(CONFIG, LAYER_BYTES), oci_manifest_of(arm, LAYER_BYTES)
    nested = canonical_json(
        {
            "schemaVersion": 2,
            "mediaType": OCI_INDEX,
            "manifests": [
                descriptor(theirs, OCI_MANIFEST, platform={"os": "linux", "architecture": "arm64"}),
                descriptor(ours, OCI_MANIFEST, platform={"os": "linux", "architecture": "amd64"}),
                descriptor(
                    arm, OCI_MANIFEST, platform={"os": "unknown", "architecture": "unknown"}
                ),
            ],
        }
    )
    files = oci_files(
        nested, ours, theirs, CONFIG, arm, LAYER_BYTES, children=[descriptor(nested, OCI_INDEX)]
    )
    image = read(tar_of(*files))
    assert image.manifest_digest == oci_digest(ours)
    assert image.index_digest == oci_digest(nested)


def test_another_platform_is_refused_by_policy() -> None:
    arm = config_document(ImageSettings(platform="linux/arm64"), [LAYER.diff_id])
    name = oci_digest(arm).removeprefix("sha256:") + ".json"
    with pytest.raises(RefusedByPolicy, match="made for linux/arm64"):
        read(tar_of(*docker_files(config=arm, config_name=name)))


def raw(name: str, kind: bytes, link: str = "", size: int = 0) -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, link, size
    return member.tobuf(tarfile.USTAR_FORMAT)


def pax(records: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    return raw("PaxHeader", kind, size=len(records)) + records + bytes(-len(records) % 512)


def index_loop() -> bytes:
    level = oci_manifest_of(CONFIG, LAYER_BYTES)
    blobs, kind = [level, CONFIG, LAYER_BYTES], OCI_MANIFEST
    for _ in range(4):
        level = canonical_json(
            {
                "schemaVersion": 2,
                "mediaType": OCI_INDEX,
                "manifests": [descriptor(level, kind)],
            }
        )
        blobs, kind = [*blobs, level], OCI_INDEX
    return tar_of(*oci_files(*blobs, children=[descriptor(level, OCI_INDEX)]))


GOOD = docker_files()
OTHER_LAYER = b"".join(layer_from_entries([TarEntry(path="other")]).chunks())
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a member twice": (lambda: tar_of(*GOOD, GOOD[0]), "stands twice"),
    "a member twice in two spellings": (
        lambda: tar_of(*GOOD, TarEntry(path="./manifest.json", data=b"[]")),
        "stands twice",
    ),
    "two images": (
        lambda: tar_of(
            *GOOD[:2],
            TarEntry(path="manifest.json", data=json.dumps(2 * json.loads(GOOD[2].data)).encode()),
        ),
        "2 images; save exactly one",
    ),
    "no image": (lambda: tar_of(TarEntry(path="manifest.json", data=b"[]")), "0 images"),
    "an empty archive": (tar_of, "neither manifest.json nor index.json"),
    "a config with another digest": (
        lambda: tar_of(*docker_files(config=CONFIG + b" ")),
        "its bytes are sha256:",
    ),
    "a layer with another diff_id": (
        lambda: tar_of(*docker_files(layer=OTHER_LAYER)),
        "the config says",
    ),
    "a layer too few": (lambda: tar_of(*docker_files(Layers=[])), "0 layers, but the config says 1"),
    "a missing layer": (lambda: tar_of(*docker_files(Layers=["9/layer.tar"])), "not in the archive"),
    "a layer outside": (
        lambda: tar_of(*docker_files(Layers=["../../etc/passwd"])),
        "not in the archive",
    ),
    "an absolute name": (lambda: raw("/etc/x", tarfile.REGTYPE) + bytes(1024), "is not taken"),
    "a name that climbs": (lambda: raw("a/../../x", tarfile.REGTYPE) + bytes(1024), "is not taken"),
    "a name with an escape": (lambda: raw("a\x1b[2J", tarfile.REGTYPE) + bytes(1024), "not taken"),
    "a link that climbs out": (
        lambda: raw("0/layer.tar", tarfile.SYMTYPE, "../../etc/shadow") + bytes(1024),
        "out of the archive",
    ),
    "a link to an absolute path": (
        lambda: raw("layer.tar", tarfile.SYMTYPE, "/etc/shadow") + bytes(1024),
        "out of the archive",
    ),
    "a link to a link": (
        lambda: raw("a", tarfile.SYMTYPE, "b") + raw("b", tarfile.SYMTYPE, "a") + bytes(1024),
        "no file of the archive",
    ),
    "a hard link": (lambda: raw("a", tarfile.LNKTYPE, "b") + bytes(1024), "hard link"),
    "a device": (lambda: raw("a", tarfile.CHRTYPE) + bytes(1024), "device"),
    "a pipe": (lambda: raw("a", tarfile.FIFOTYPE) + bytes(1024), "pipe"),
    "a sparse member": (lambda: raw("a", tarfile.GNUTYPE_SPARSE) + bytes(1024), "sparse"),
    "a sparse member in pax": (lambda: pax(b"22 GNU.sparse.major=1\n"), "sparse"),
    "a huge long name": (
        lambda: raw("x", tarfile.GNUTYPE_LONGNAME, size=70_000) + bytes(70_144),
        "an extended header has 70000 bytes",
    ),
    "a pax header that lies about its length": (lambda: pax(b"99 path=a\n"), "malformed"),
    "a pax size that is no number": (lambda: pax(b"11 size=-1\n"), "sets size"),
    "a pax size beyond the end": (
        lambda: pax(b"18 size=999999999\n") + raw("a", tarfile.REGTYPE) + bytes(1024),
        "cut off",
    ),
    "a path for all members": (lambda: pax(b"10 path=a\n", tarfile.XGLTYPE), "sets path"),
    "a broken checksum": (lambda: b"x" * 1024, "no tar header"),
    "an archive cut in a layer": (lambda: tar_of(*GOOD)[:2048], "cut off"),
    "an archive without its end": (lambda: tar_of(*GOOD)[:-1024], "cut off"),
    "an index inside itself too deep": (index_loop, "indexes inside one another"),
    "deep JSON": (
        lambda: tar_of(TarEntry(path="manifest.json", data=b"[" * 100_000)),
        "nested too deeply",
    ),
    "a huge manifest": (
        lambda: tar_of(TarEntry(path="manifest.json", data=b" " * (5 << 20))),
        "at most",
    ),
    "a layer in bzip2": (
        lambda: tar_of(*docker_files(layer=bz2.compress(LAYER_BYTES))),
        "compressed with bzip2",
    ),
    "a layer in zstd": (
        lambda: tar_of(*docker_files(layer=b"\x28\xb5\x2f\xfd" + bytes(100))),
        "compressed with zstd",
    ),
    "a layer with a sparse file": (
        lambda: tar_of(*docker_files(layer=raw("big", tarfile.GNUTYPE_SPARSE) + bytes(1024))),
        "holds the sparse file big",
    ),
    "a layer with a sparse file in pax": (
        lambda: tar_of(
            *docker_files(
                layer=pax(b"22 GNU.sparse.major=1\n") + raw("big", tarfile.REGTYPE) + bytes(1024)
            )
        ),
        "holds the sparse file big",
    ),
    "a layer that is no tar": (
        lambda: tar_of(*docker_files(layer=b"x" * 2048)),
        "not a layer",
    ),
    "a gzip layer cut off": (
        lambda: tar_of(*docker_files(layer=gzip.compress(LAYER_BYTES)[:-10])),
        "cut off",
    ),
    "a gzip layer with a wrong sum": (
        lambda: tar_of(*docker_files(layer=gzip.compress(LAYER_BYTES)[:-8] + bytes(8))),
        "broken",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_malformed_for_its_own_reason(name: str) -> None:
    build, fact = HOSTILE[name]
    with pytest.raises(MalformedDocument, match=fact) as caught:
        read(build())
    assert str(caught.value).startswith("entry.tar: ")
    assert str(caught.value).isprintable()


def test_a_gzip_bomb_is_cut_at_the_bound() -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(200)) + packer.flush()
    data = tar_of(*docker_files(layer=bomb))
    assert len(data) < 1 << 20
    with pytest.raises(MalformedDocument, match="more than 8388608 bytes uncompressed"):
        read(data, limit_bytes=8 << 20)


def test_an_archive_beyond_the_bound_is_not_read() -> None:
    with pytest.raises(MalformedDocument, match="at most 100 are taken"):
        read(tar_of(*GOOD), limit_bytes=100)


def test_too_many_members_are_refused() -> None:
    block = b"".join(raw(f"m{number}", tarfile.REGTYPE) for number in range(10_001))
    with pytest.raises(MalformedDocument, match="more than 10000 members"):
        read(block + bytes(1024))


def test_the_reference_reader_agrees_on_honest_archives() -> None:
    data = b"".join(docker_archive_chunks(CONFIG, [LAYER]))
    image = read(data)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        names = {member.name for member in archive if member.isreg()}
    assert image.layers[0].member.name in names
    assert image.layers[0].member.read(BytesArchive(data), 1 << 20) == LAYER_BYTES


@settings(max_examples=150)
@given(st.data())
def test_a_changed_archive_is_read_or_refused_never_anything_else(choice: st.DataObject) -> None:
    data = bytearray(tar_of(*GOOD))
    for _ in range(choice.draw(st.integers(1, 4))):
        data[choice.draw(st.integers(0, len(data) - 1))] = choice.draw(st.integers(0, 255))
    cut = bytes(data[: choice.draw(st.integers(0, len(data)))])
    with contextlib.suppress(MalformedDocument, RefusedByPolicy):
        assert read(cut).config_digest == oci_digest(CONFIG)


@settings(max_examples=60)
@given(st.binary(max_size=3000))
def test_random_bytes_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedDocument):
        read(data)
