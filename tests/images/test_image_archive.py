"""Archives are assembled from values: the same values, the same bytes, and no tag."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile

from orchestrator.images.rules.image_archive import (
    EntryKind,
    ImageSettings,
    TarEntry,
    config_document,
    docker_archive_chunks,
    docker_archive_size,
    layer_from_entries,
    oci_layout_chunks,
    tar_chunks,
    with_parents,
)

ENTRIES = (
    TarEntry(path="/app/main.py", data=b"print(1)"),
    TarEntry(path="/bin/x", data=b"x", mode=0o4755),
    TarEntry(path="/bin/y", kind=EntryKind.SYMLINK, target="x"),
    TarEntry(path="/deep/" + "d" * 120 + "/é", data=b"long"),
)


def test_a_layer_lists_parents_first_and_keeps_modes_links_and_long_names() -> None:
    data = b"".join(layer_from_entries(ENTRIES).chunks())
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = {member.name: member for member in archive}
    names = list(members)
    assert names == sorted(names, key=lambda name: name.split("/"))
    assert (members["app"].isdir(), members["app"].mode) == (True, 0o755)
    assert members["bin/x"].mode == 0o4755
    assert members["bin/y"].linkname == "x"
    assert "deep/" + "d" * 120 + "/é" in members
    assert {(member.mtime, member.uid) for member in members.values()} == {(0, 0)}


def test_the_order_of_entries_does_not_change_a_layer() -> None:
    assert layer_from_entries(ENTRIES).diff_id == layer_from_entries(ENTRIES[::-1]).diff_id
    assert with_parents(with_parents(ENTRIES)) == with_parents(ENTRIES)


def test_a_docker_archive_claims_no_tag_and_its_digests_hold() -> None:
    layer = layer_from_entries(ENTRIES)
    config = config_document(ImageSettings(entrypoint=("/bin/x",)), [layer.diff_id, layer.diff_id])
    data = b"".join(docker_archive_chunks(config, [layer, layer]))
    assert len(data) == docker_archive_size(config, [layer, layer])
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = {member.name: archive.extractfile(member) for member in archive}
        contents = {name: file.read() for name, file in files.items() if file}
    (image,) = json.loads(contents["manifest.json"])
    assert image["RepoTags"] is None
    assert hashlib.sha256(contents[image["Config"]]).hexdigest() + ".json" == image["Config"]
    assert [hashlib.sha256(contents[name]).hexdigest() for name in image["Layers"]] == [
        layer.diff_id.removeprefix("sha256:")
    ] * 2
    assert len(contents) == 3


def test_an_oci_layout_stores_every_blob_under_its_digest() -> None:
    layer = layer_from_entries(ENTRIES)
    config = config_document(ImageSettings(), [layer.diff_id])
    data = b"".join(oci_layout_chunks(config, [layer], platform="linux/amd64"))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        blobs = [member for member in archive if member.name.startswith("blobs/")]
        for member in blobs:
            file = archive.extractfile(member)
            assert file is not None
            assert hashlib.sha256(file.read()).hexdigest() == member.name.rpartition("/")[2]
    assert len(blobs) == 3


def test_settings_become_the_engines_own_fields() -> None:
    settings = ImageSettings(
        entrypoint=("/e",),
        command=("c",),
        environment={"B": "2", "A": "1"},
        user="0",
        volumes=("/data/",),
        healthcheck=("CMD", "/h"),
        stop_signal="SIGUSR1",
        labels={"k": "v"},
        platform="linux/arm/v7",
    )
    document = json.loads(config_document(settings, ["sha256:" + "0" * 64]))
    assert (document["architecture"], document["variant"]) == ("arm", "v7")
    assert document["config"] == {
        "Entrypoint": ["/e"],
        "Cmd": ["c"],
        "Env": ["A=1", "B=2"],
        "User": "0",
        "Volumes": {"/data/": {}},
        "Healthcheck": {"Test": ["CMD", "/h"], "Interval": 1_000_000_000},
        "StopSignal": "SIGUSR1",
        "Labels": {"k": "v"},
    }


def test_an_empty_tar_is_two_zero_blocks() -> None:
    assert b"".join(tar_chunks([])) == bytes(1024)
