"""Look single files up in an image, through a container that is never started."""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Iterable, Mapping
from typing import Any, Final

from manifests.images import ImageIdentity
from manifests.names import ENTRANT_ID, container_name
from orchestrator.engine.ports import ContainerEngine, EngineError
from orchestrator.entrants.rules.observations import ImageFacts
from orchestrator.entrants.rules.programs import HEAD_BYTES, FileKind, ImageFile, read_program
from orchestrator.entrants.rules.user import parents_of
from orchestrator.images.rules.image_config import neutralise

_PASSWD: Final = "/etc/passwd"  # noqa: S105 - a path
_DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MOST_LINKS: Final = 8
_MOST_PATHS: Final = 60
_ENOUGH_BYTES: Final = HEAD_BYTES + 16 * 1024


class _Image:
    """Reads paths of one image and remembers them."""

    def __init__(self, engine: ContainerEngine, container: str) -> None:
        self._engine = engine
        self._container = container
        self.files: dict[str, ImageFile | None] = {}

    def look(self, path: str) -> ImageFile | None:
        """Return what is at `path`, links followed, or None."""
        if path not in self.files:
            self.files[path] = self._resolved(path)
        return self.files[path]

    def _resolved(self, path: str) -> ImageFile | None:
        place = path
        for _ in range(_MOST_LINKS):
            found = self._read(place)
            if found is None or found.kind is not FileKind.LINK:
                return found
            place = posixpath.normpath(posixpath.join(posixpath.dirname(place), found.target))
        return None

    def _read(self, path: str) -> ImageFile | None:
        try:
            chunks = self._engine.get_archive(self._container, path)
        except EngineError:
            return None
        data = bytearray()
        for chunk in chunks:
            data += chunk
            if len(data) >= _ENOUGH_BYTES:
                break
        getattr(chunks, "close", lambda: None)()
        return _first_member(path, bytes(data))


def _first_member(path: str, data: bytes) -> ImageFile | None:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            member = tar.next()
    except tarfile.TarError:
        return None
    if member is None:
        return None
    start = member.offset_data
    length = min(member.size, HEAD_BYTES) if member.isreg() else 0
    return ImageFile(
        path=path,
        kind=_kind(member),
        mode=member.mode,
        uid=member.uid,
        gid=member.gid,
        head=data[start : start + length],
        target=member.linkname,
    )


def _kind(member: tarfile.TarInfo) -> FileKind:
    if member.issym():
        return FileKind.LINK
    if member.isdir():
        return FileKind.DIRECTORY
    return FileKind.FILE if member.isreg() else FileKind.OTHER


def look_into_image(
    engine: ContainerEngine,
    identity: ImageIdentity,
    config: Mapping[str, Any],
    *,
    run_id: str,
    paths: Iterable[str],
) -> ImageFacts:
    """Look up the entrypoint, its interpreter, /etc/passwd and `paths` with the folders above.

    Raises:
        PlatformFault: when the engine fails.

    """
    name = container_name(run_id, "look")
    container = engine.create_container(name, _options(identity))
    try:
        return _facts(_Image(engine, container), config, tuple(paths))
    finally:
        engine.remove_container(name)


def _options(identity: ImageIdentity) -> dict[str, Any]:
    return {
        "Image": identity.engine_image_id,
        "Platform": identity.platform,
        "Entrypoint": ["/never-started"],
        "Cmd": [],
        "HostConfig": {"NetworkMode": "none", "ReadonlyRootfs": True, "CapDrop": ["ALL"]},
    }


def _facts(image: _Image, config: Mapping[str, Any], paths: tuple[str, ...]) -> ImageFacts:
    neutral = neutralise(config)
    argv = (*neutral.entrypoint, *neutral.command)
    program = _program(image, argv[0], neutral.environment, neutral.working_directory)
    if program is not None:
        file = image.look(program)
        wanted = None if file is None else read_program(file.head)
        if wanted is not None and wanted.interpreter:
            image.look(wanted.interpreter)
    for path in parents_of(tuple(map(posixpath.normpath, paths)))[:_MOST_PATHS]:
        image.look(path)
    passwd = image.look(_PASSWD)
    return ImageFacts(
        argv=argv,
        program=program,
        files=dict(image.files),
        has_passwd_entry=passwd is not None and _has_entry(passwd.head),
    )


def _program(image: _Image, name: str, environment: tuple[str, ...], folder: str) -> str | None:
    """Resolve the program as execvp(3) does with the image's own PATH."""
    if "/" in name:
        return posixpath.normpath(posixpath.join("/", folder, name))
    variables = dict(variable.partition("=")[::2] for variable in environment)
    for place in variables.get("PATH", _DEFAULT_PATH).split(":"):
        path = posixpath.join("/", folder, place, name)
        if image.look(path) is not None:
            return path
    return None


def _has_entry(passwd: bytes) -> bool:
    wanted = str(ENTRANT_ID).encode()
    return any(line.split(b":")[2:3] == [wanted] for line in passwd.splitlines())
