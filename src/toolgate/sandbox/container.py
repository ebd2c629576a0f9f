"""Programs in containers: a client of an engine (docker or podman), and an image of the operator's.

The engine is another process, often another's: what the client asks of it is ended by asking again.
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from toolgate.errors import ProviderUnavailable
from toolgate.sandbox.child import Child, spawned
from toolgate.sandbox.egress.proxy import Proxy
from toolgate.sandbox.environment import WORK, variables
from toolgate.sandbox.pipes import Descriptors
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.roots import Shown, mounts
from toolgate.sandbox.ways import RefusedRootError
from toolgate.sandbox.ways import opened as opened_way
from toolgate.settings.outward import Sandbox as Settings

_CLIENTS = ("docker", "podman")
_NOBODY = "65534:65534"
# By which a client finds its engine; the program sees none of them.
_OF_CLIENT = ("PATH", "HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST", "XDG_RUNTIME_DIR")


class Container:
    """A client of an engine, as it is found on PATH."""

    name = "a container"
    counts = True
    reaches = False

    def __init__(self, program: str, image: str, runtime: str = "") -> None:
        self._program = program
        self._image = image
        self._runtime = runtime

    def begin(
        self,
        argv: Sequence[str],
        policy: Policy,
        folder: str,
        opened: Descriptors,
        streams: tuple[int, int, int],
        proxy: Proxy | None = None,  # noqa: ARG002 - none can be given to it
    ) -> "_Begun":
        """Ask the engine for it, by a name of its own."""
        name = f"toolgate-{os.getpid()}-{secrets.token_hex(8)}"
        notes = Path(tempfile.mkdtemp(prefix="toolgate-container-"))
        try:
            told = opened.holding(_variables(policy))
            words = list(self.words(argv, policy, folder))
            own = (
                f"--name={name}",
                f"--cidfile={notes / 'id'}",
                f"--env-file=/proc/self/fd/{told}",
            )
            child = spawned(
                [self._program, "run", *own, *words],
                streams=streams,
                given=(told,),
                env=_environment(),
                afterwards=(self._program, "rm", "--force", "--volumes", name),
            )
        except RefusedRootError as refused:
            shutil.rmtree(notes, ignore_errors=True)
            raise ProviderUnavailable(f"Nothing ran in the sandbox: {refused}.") from None
        except BaseException:
            shutil.rmtree(notes, ignore_errors=True)
            raise
        return _Begun(child, notes)

    def words(self, argv: Sequence[str], policy: Policy, folder: str) -> Iterator[str]:
        """What is asked of the engine: all that the policy says, and nothing it does not."""
        if not argv or any("\0" in word for word in argv):
            raise RefusedRootError("a command has a program, and no word of it holds a NUL")
        yield from ("--rm", "--interactive", "--pull=never", "--log-driver=none")
        yield from ("--network=none", "--ipc=private", "--hostname=sandbox", "--read-only")
        yield from ("--cap-drop=ALL", "--security-opt=no-new-privileges", f"--user={_NOBODY}")
        # What may be swapped is what is beyond the memory: nothing.
        yield from (f"--memory={policy.memory}", f"--memory-swap={policy.memory}")
        yield f"--pids-limit={policy.processes}"
        limits = {"core": 0, "nofile": policy.open_files, "fsize": policy.file_size}
        if policy.cpu > 0:
            limits["cpu"] = max(int(policy.cpu), 1)
        for limit, most in limits.items():
            yield f"--ulimit={limit}={most}:{most}"
        yield f"--tmpfs={WORK}:rw,exec,nosuid,nodev,mode=1777,size={policy.memory}"
        yield f"--shm-size={policy.memory}"
        if self._runtime:
            yield f"--runtime={self._runtime}"
        # The programs of the system are the image's.
        for mount in mounts(replace(policy, system=False)):
            if {",", '"', "\n"} & {*mount.path, *mount.source}:
                raise RefusedRootError("a folder for a container has no comma and no quote")
            if mount.shown is Shown.EMPTY:
                yield f"--mount=type=tmpfs,target={mount.path},tmpfs-size=4096,readonly"
                continue
            # The engine opens it again itself: this is a look beforehand.
            os.close(opened_way(mount.source))
            how = "" if mount.shown is Shown.WRITE else ",readonly"
            yield f"--mount=type=bind,source={mount.source},target={mount.path}{how}"
        yield from (f"--workdir={folder or WORK}", "--entrypoint=", self._image, *argv)


class _Begun:
    def __init__(self, child: Child, notes: Path) -> None:
        self.child = child
        self._made = False
        self._notes = notes
        child.at_end(self._end)

    async def ready(self) -> None:
        """The engine binds its limits before it begins."""

    def never_ran(self) -> bool:
        """There was no container. One in which the program was not found counts as run."""
        return not self._made

    def _end(self) -> None:
        self._made = (self._notes / "id").exists()
        shutil.rmtree(self._notes, ignore_errors=True)


def found(settings: Settings) -> Container | str:
    """The client on PATH, or why there is none. Whether an engine answers is seen when tried."""
    program = next(filter(None, map(shutil.which, _CLIENTS)), None)
    if program is None:
        return "neither docker nor podman is on PATH"
    if not settings.image:
        return "name the image that containers are made from, as [sandbox] image"
    if settings.image.startswith("-"):
        return "an image does not begin with a dash"
    return Container(str(Path(program).absolute()), settings.image, settings.runtime)


def _environment() -> Mapping[str, str]:
    return {name: os.environ[name] for name in _OF_CLIENT if name in os.environ}


def _variables(policy: Policy) -> bytes:
    """Not among the words of a command, which everybody on the machine can read."""
    given = variables(policy)
    if any("\n" in value or "\r" in value for value in given.values()):
        raise ProviderUnavailable(
            "A variable for a container has a value of several lines. Nothing ran; correct it."
        )
    return "".join(f"{name}={value}\n" for name, value in given.items()).encode()
