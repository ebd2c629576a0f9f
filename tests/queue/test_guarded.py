"""Brokers that let in whom they know: TLS, passwords and certificates at a real one."""

import asyncio
import logging
import ssl
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME
from tests.late import needs
from tests.queue.yard import Yard
from tests.servers.authority import Authority
from tests.servers.guarded_kafka import (
    CLIENT,
    GUEST,
    GUESTS_PASSWORD,
    NAME,
    PASSWORD,
    USER,
    GuardedKafka,
)
from tests.servers.process import LOOPBACK
from toolgate.errors import SettingsInvalid
from toolgate.settings.fleet import Sasl, Topics

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6"), pytest.mark.timeout(120)]
SCRAM = "SCRAM-SHA-512"
WRONG = f"not-{PASSWORD}"
# What no sentence and no log may hold.
SECRETS = (PASSWORD, WRONG, GUESTS_PASSWORD)
# What a server that knows no cipher of ours has to say.
HANDSHAKE_FAILURE = bytes.fromhex("15 0303 0002 0228")
SASL = """
[queue.sasl]
mechanism = "{mechanism}"
username_env = "KAFKA_USER"
password_env = "KAFKA_PASSWORD"
"""


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_USER", USER)
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)


@pytest.fixture
def yard(tmp_path: Path, guarded_kafka: GuardedKafka) -> Generator[Yard]:
    """One that is let in by its password."""
    queue = f'ca_file = "{guarded_kafka.ca_file}"'
    address = f"kafka+tls://{guarded_kafka.address}"
    with Yard(tmp_path, address, queue=queue, more=SASL.format(mechanism=SCRAM)) as place:
        yield place


def by(mechanism: str) -> Mapping[str, Any]:
    named = {"username_env": "KAFKA_USER", "password_env": "KAFKA_PASSWORD"} if mechanism else {}
    return {"sasl": Sasl.model_validate({"mechanism": mechanism, **named})}


async def refused(yard: Yard, caplog: pytest.LogCaptureFixture, **queue: Any) -> str:
    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises(SettingsInvalid) as error,
    ):
        # The bound is for one that hangs: a broker says no within a moment.
        async with asyncio.timeout(20), yard.gate(**queue):
            pass
    assert error.value.code == "settings_invalid"
    said = error.value.message
    for secret in SECRETS:
        assert secret not in said + repr(error.value) + caplog.text
    return said


async def is_let_in(yard: Yard, **queue: Any) -> None:
    """A worker of its own runs what a node queues."""
    async with yard.gate(**queue, work="always") as gate:
        output = await gate.call("pay", {"text": yard.name}, caller=ME)
        assert output.ok, output
    assert yard.marks() == {yard.name: 1}


@pytest.mark.parametrize("mechanism", ["PLAIN", SCRAM])
async def test_a_queued_call_goes_through_tls_and_a_password(
    yard: Yard, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    yard.change(SCRAM, mechanism)
    with caplog.at_level(logging.DEBUG):
        async with yard.gate() as gate:
            worker = yard.worker()
            outputs = await asyncio.gather(
                *(gate.call("pay", {"text": f"p{one}"}, caller=ME) for one in range(10))
            )
            assert [one.data for one in outputs] == [{"marked": f"p{one}"} for one in range(10)]
            assert yard.hands() == {str(worker.pid)}
            assert yard.marks() == {f"p{one}": 1 for one in range(10)}
    for secret in SECRETS:
        assert secret not in caplog.text + yard.log


async def test_a_queued_call_goes_through_tls_and_a_certificate(
    tmp_path: Path, guarded_kafka: GuardedKafka
) -> None:
    files = f'ca_file = "{guarded_kafka.ca_file}"\ncert_file = "{guarded_kafka.client_file}"'
    with Yard(tmp_path, f"kafka+tls://{guarded_kafka.certified}", queue=files) as yard:
        async with yard.gate() as gate:
            worker = yard.worker()
            assert (await gate.call("pay", {"text": "p"}, caller=ME)).ok
            assert yard.hands() == {str(worker.pid)}


@pytest.mark.req("V5")
@pytest.mark.parametrize("mechanism", ["PLAIN", SCRAM])
@pytest.mark.parametrize("wrong", ["KAFKA_PASSWORD", "KAFKA_USER"])
async def test_who_has_a_wrong_password_is_told_so(
    yard: Yard,
    mechanism: str,
    wrong: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv(wrong, WRONG)
        told = await refused(yard, caplog, **by(mechanism))
    assert "queue.sasl: the brokers do not know us" in told
    assert "look at the mechanism, and at the variables with name and password" in told
    await is_let_in(yard, **by(mechanism))


@pytest.mark.req("V5")
@pytest.mark.parametrize("mechanism", ["", "SCRAM-SHA-256"])
async def test_who_does_not_say_who_it_is_as_the_brokers_ask_is_told_how(
    yard: Yard, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    told = await refused(yard, caplog, **by(mechanism))
    assert "queue.sasl.mechanism:" in told
    assert f"asks who we are, by PLAIN or {SCRAM}; write one of them" in told
    await is_let_in(yard)


@pytest.mark.req("V5")
async def test_a_broker_that_somebody_else_answers_for_is_not_trusted(
    yard: Yard, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.pem"
    other.write_text(Authority().text, "utf-8")
    for wrong in (str(other), ""):
        told = await refused(yard, caplog, ca_file=wrong)
        assert f"queue.ca_file: the certificate of {NAME}:" in told
        assert "is not trusted" in told
        assert "name who signed it" in told
    carelessly(monkeypatch)
    await is_let_in(yard, ca_file=str(other))


@pytest.mark.req("V5")
async def test_a_broker_with_a_certificate_for_another_name_is_not_trusted(
    yard: Yard,
    guarded_kafka: GuardedKafka,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = f"{LOOPBACK}:{guarded_kafka.port}"
    told = await refused(yard, caplog, url=f"kafka+tls://{there}")
    assert f"queue.url: the certificate of {there} is for another name" in told
    assert "write a name that it is for" in told
    carelessly(monkeypatch)
    await is_let_in(yard, url=f"kafka+tls://{there}")


async def test_brokers_that_call_themselves_by_another_name_are_told_as_such(
    yard: Yard, guarded_kafka: GuardedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    told = await refused(yard, caplog, url=f"kafka+tls://{guarded_kafka.astray}")
    port = guarded_kafka.astray.rpartition(":")[2]
    where = f"{LOOPBACK}:{port} (so the brokers call themselves: their advertised.listeners)"
    assert f"queue.url: the certificate of {where} is for another name" in told


async def test_brokers_that_are_not_where_they_say_are_waited_for_there(
    yard: Yard, guarded_kafka: GuardedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    async with yard.gate(url=f"kafka+tls://{guarded_kafka.lost}") as gate:
        assert f"no broker answers at {guarded_kafka.nobodys} (so the brokers call" in caplog.text
        output = await gate.call("pay", {"text": "p"}, caller=ME, wait_s=0)
        assert output.status == "queued"


async def test_a_certificate_whose_time_is_over_is_told_as_such(
    yard: Yard, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority()
    old = authority.server(tmp_path, NAME, days=-1)
    file = tmp_path / "its.pem"
    file.write_text(authority.text, "utf-8")
    async with await asyncio.start_server(hang_up, LOOPBACK, 0, ssl=old) as server:
        address = f"{NAME}:{server.sockets[0].getsockname()[1]}"
        told = await refused(yard, caplog, url=f"kafka+tls://{address}", ca_file=str(file))
    assert f"the certificate of {address} is out of its time (certificate has expired)" in told
    assert "give the broker a new one" in told


async def test_a_broker_that_speaks_no_tls_of_ours_is_told_as_such(
    yard: Yard, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HANDSHAKE_FAILURE)
        writer.close()

    async with await asyncio.start_server(refuse, LOOPBACK, 0) as server:
        address = f"{NAME}:{server.sockets[0].getsockname()[1]}"
        told = await refused(yard, caplog, url=f"kafka+tls://{address}")
    assert f"queue.url: {address} and we agree on no TLS" in told


@pytest.mark.req("V5")
@pytest.mark.parametrize("mechanism", ["", "PLAIN", SCRAM])
async def test_who_speaks_without_tls_to_a_broker_that_has_it_is_told_so(
    yard: Yard, guarded_kafka: GuardedKafka, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    for there in (guarded_kafka.address, guarded_kafka.certified):
        told = await refused(yard, caplog, url=f"kafka://{there}", **by(mechanism))
        assert f"queue.url: {there} speaks TLS only; write kafka+tls:// instead" in told
    await is_let_in(yard)


@pytest.mark.req("V5")
async def test_who_has_no_certificate_where_one_is_asked_for_is_told_so(
    yard: Yard, tmp_path: Path, guarded_kafka: GuardedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    there = {"url": f"kafka+tls://{guarded_kafka.certified}"}
    forged = str(Authority().signed(tmp_path, CLIENT))
    for wrong in ("", forged):
        told = await refused(yard, caplog, **there, cert_file=wrong, **by(""))
        assert f"queue.cert_file: {guarded_kafka.certified} lets in only whom it knows" in told
        assert "queue.key_file" in told
    await is_let_in(yard, **there, cert_file=str(guarded_kafka.client_file), **by(""))


async def test_a_password_for_a_door_that_asks_for_a_certificate_is_told_as_such(
    yard: Yard, guarded_kafka: GuardedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"cert_file": str(guarded_kafka.client_file), **by(SCRAM)}
    told = await refused(yard, caplog, url=f"kafka+tls://{guarded_kafka.certified}", **given)
    assert "does not ask for a name and a password; leave out queue.sasl" in told


@pytest.mark.req("V5")
async def test_who_may_not_make_topics_is_told_what_to_grant(
    yard: Yard, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics: Topics = yard.settings().queue.topics
    with monkeypatch.context() as patched:
        patched.setenv("KAFKA_USER", GUEST)
        patched.setenv("KAFKA_PASSWORD", GUESTS_PASSWORD)
        told = await refused(yard, caplog, **by("PLAIN"))
        assert "we may not make the topic" in told
        assert "grant READ, WRITE and DESCRIBE" in told
        unmade = topics.model_copy(update={"create": False})
        assert "have no topic" in await refused(yard, caplog, topics=unmade, **by("PLAIN"))
    await is_let_in(yard, **by("PLAIN"))


@pytest.mark.parametrize("command", ["serve", "worker"])
async def test_a_start_that_is_not_let_in_ends_with_a_sentence(yard: Yard, command: str) -> None:
    process = yard.command(command, KAFKA_PASSWORD=WRONG)
    assert await asyncio.to_thread(process.wait, 30) == 1
    assert "queue.sasl: the brokers do not know us" in yard.log
    assert "Traceback" not in yard.log
    for secret in SECRETS:
        assert secret not in yard.log


async def test_the_doctor_says_what_a_start_would(yard: Yard) -> None:
    process = yard.command("doctor", "--fleet", KAFKA_PASSWORD=WRONG)
    out, _ = await asyncio.to_thread(process.communicate)
    said = out.decode() + yard.log
    assert process.returncode == 1, said
    assert "the brokers do not know us" in said
    for secret in SECRETS:
        assert secret not in said


async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def carelessly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard-off control: what it is to believe anybody."""
    from toolgate.brokers import cluster  # noqa: PLC0415  its client is an extra

    def anybody(_: object) -> ssl.SSLContext:
        found = ssl.create_default_context()
        found.check_hostname = False
        found.verify_mode = ssl.CERT_NONE
        return found

    monkeypatch.setattr(cluster, "_trust", anybody)
