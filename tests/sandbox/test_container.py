"""Programs in containers: what is asked of an engine. None runs here: a script stands in for its
client, writes down what it is asked, and lets the program run on this machine."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.house import until
from toolgate.errors import ProviderUnavailable
from toolgate.sandbox import choosing
from toolgate.sandbox.choosing import Refusing, chosen
from toolgate.sandbox.container import Container, found
from toolgate.sandbox.policy import MEGABYTE, Policy
from toolgate.sandbox.programs import Programs
from toolgate.sandbox.sandbox import Ended
from toolgate.settings.outward import Sandbox as Settings

pytestmark = pytest.mark.req("P4")
# As with a real engine, what it starts is not the client's, and outlives it.
_CLIENT = """#!/bin/sh
at={at}
if [ "$1" = rm ]; then
  echo "$*" >>$at/removed
  kill -9 $(cat "$at/$4") 2>>$at/errors
  exit 0
fi
printf '%s\\n' "$@" >$at/asked
for word in "$@"; do
  case $word in
    --name=*) name=${{word#--name=}};;
    --cidfile=*) id=${{word#--cidfile=}};;
    --env-file=*) cat "${{word#--env-file=}}" >$at/variables;;
  esac
done
while [ "$1" != image ]; do shift; done
shift
echo 1 >"$id"
setsid "$@" &
echo $! >"$at/$name"
wait $!
"""
# As the real client says it.
_AWAY = """#!/bin/sh
echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2
echo "Run 'docker run --help' for more information" >&2
exit 125
"""


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """Where the client is, and what it has written down."""
    _install(tmp_path, _CLIENT.format(at=tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    kept = dict(choosing.TRIED)
    choosing.TRIED.clear()
    yield tmp_path
    choosing.TRIED.clear()
    choosing.TRIED.update(kept)


def _install(folder: Path, script: str) -> None:
    program = folder / "docker"
    program.write_text(script)
    program.chmod(0o755)


def _programs(runtime: str = "") -> Programs:
    kind = found(Settings(kind="container", image="image", runtime=runtime))
    assert isinstance(kind, Container)
    return Programs(kind)


async def test_everything_that_a_policy_says_is_asked_of_the_engine(at: Path) -> None:
    for name in ("given", "shown"):
        (at / name).mkdir()
    policy = Policy(
        readable=(str(at / "shown"),),
        writable=(str(at / "given"),),
        protected=(str(at / "given" / "settings.toml"),),
        env={"LICENCE": "KEY-123"},
        memory=64 * MEGABYTE,
        processes=9,
        cpu=7,
        open_files=33,
        file_size=5000,
    )
    done = await _programs("runsc").run(["echo", "--privileged"], policy, folder=str(at / "shown"))
    assert (done.code, done.stdout) == (0, b"--privileged\n")
    asked = (at / "asked").read_text().splitlines()
    given = str(at / "given")
    assert asked[0] == "run"
    assert asked[4:] == [
        "--rm", "--interactive", "--pull=never", "--log-driver=none",
        "--network=none", "--ipc=private", "--hostname=sandbox", "--read-only",
        "--cap-drop=ALL", "--security-opt=no-new-privileges", "--user=65534:65534",
        "--memory=67108864", "--memory-swap=67108864", "--pids-limit=9",
        "--ulimit=core=0:0", "--ulimit=nofile=33:33", "--ulimit=fsize=5000:5000",
        "--ulimit=cpu=7:7", "--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777,size=67108864",
        "--shm-size=67108864", "--runtime=runsc",
        # What is protected and not there yet holds its whole folder still.
        f"--mount=type=bind,source={given},target={given},readonly",
        f"--mount=type=bind,source={at}/shown,target={at}/shown,readonly",
        f"--workdir={at}/shown", "--entrypoint=", "image", "echo", "--privileged",
    ]  # fmt: skip
    # What is secret is in no word that others on the machine could read.
    assert "KEY-123" not in (at / "asked").read_text()
    assert "LICENCE=KEY-123" in (at / "variables").read_text()
    assert (at / "removed").read_text().startswith("rm --force --volumes toolgate-")


async def test_a_program_that_outlives_its_client_is_dead_when_the_call_ends(at: Path) -> None:
    def dead() -> bool:
        [pid] = [int(file.read_text()) for file in at.glob("toolgate-*")]
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        # Whoever is to notice it may not have come to it yet.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"

    def forget() -> None:
        for file in at.glob("toolgate-*"):
            file.unlink()

    done = await _programs().run(["sleep", "600"], Policy(seconds=1))
    assert done.ended is Ended.OUT_OF_TIME
    await until(dead)
    forget()
    running = await _programs().start(["sleep", "600"], Policy())
    await until(lambda: any(file.read_text() for file in at.glob("toolgate-*")))
    os.killpg(running.pid, signal.SIGKILL)
    await running.wait()
    await until(dead)
    await running.end()


async def test_what_a_container_cannot_hold_is_refused(at: Path) -> None:
    (at / "a,b").mkdir()
    for policy in (
        Policy(hosts=("api.test",)),
        Policy(readable=(str(at / "a,b"),)),
        Policy(env={"A": "1\nB=2"}),
        Policy(writable=("/",)),
    ):
        with pytest.raises(ProviderUnavailable, match="othing ran"):
            await _programs().run(["true"], policy)
    assert not (at / "asked").exists()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (_CLIENT, "a program could"),
        (
            _AWAY,
            "Cannot connect",
        ),
        ("#!/bin/sh\necho 'unknown flag: --pull' >&2; exit 125\n", "unknown flag"),
    ],
)
async def test_an_engine_that_keeps_nobody_in_or_does_not_answer_is_not_used(
    at: Path, script: str, says: str
) -> None:
    _install(at, script.format(at=at) if script is _CLIENT else script)
    refusing = await chosen(Settings(kind="container", image="image"))
    assert isinstance(refusing, Refusing)
    assert says in refusing.refusal


@pytest.mark.usefixtures("at")
async def test_without_an_image_there_is_no_container() -> None:
    for image, says in {"": "name the image", "--privileged": "dash"}.items():
        refusing = await chosen(Settings(kind="container", image=image))
        assert isinstance(refusing, Refusing)
        assert says in refusing.refusal
