"""What a start says about topics and brokers; and a worker on the store's own queue."""

import asyncio
import http.client
import logging
from collections.abc import Generator
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest

from tests.house import ME, until
from tests.late import needs
from tests.queue.yard import Yard, over
from tests.servers.authority import Authority
from tests.servers.kafka import Kafka
from tests.servers.process import free_port
from toolgate import Caller, Output
from toolgate.errors import SettingsInvalid
from toolgate.queue.message import Letter, Request, Result, written
from toolgate.queue.schema import schemas
from toolgate.settings.fleet import Fleet, Producer, Sasl, Topics

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6"), pytest.mark.timeout(120)]


@pytest.fixture
def yard(tmp_path: Path, kafka: Kafka) -> Generator[Yard]:
    with Yard(tmp_path, kafka.address) as place:
        yield place


async def refused(yard: Yard, **queue: Any) -> str:
    with pytest.raises(SettingsInvalid) as error:
        async with yard.gate(**queue):
            pass
    return error.value.message


def topics(yard: Yard, **more: Any) -> Topics:
    return yard.settings().queue.topics.model_copy(update=more)


async def test_what_is_wrong_with_topics_is_said_when_the_house_opens(
    yard: Yard, caplog: pytest.LogCaptureFixture
) -> None:
    missing = await refused(yard, topics=topics(yard, create=False))
    assert f"have no topic '{yard.requests}'" in missing
    assert "queue.topics.create is off" in missing
    few = await refused(yard, topics=topics(yard, replication=3))
    assert "queue.topics.replication" in few
    assert "the cluster has fewer" in few
    same = await refused(yard, topics=topics(yard, results=yard.requests))
    assert "three topics" in same
    async with yard.gate():
        pass
    with caplog.at_level(logging.WARNING, "toolgate.queue"):
        async with yard.gate(topics=topics(yard, partitions=9)):
            pass
    assert "has 4 partitions and queue.topics.partitions is 9" in caplog.text


async def test_brokers_that_do_not_ask_who_we_are_are_not_told(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    sasl = Sasl(mechanism="PLAIN", username_env="KAFKA_USER", password_env="KAFKA_PASSWORD")  # noqa: S106
    assert "KAFKA_USER is not set" in await refused(yard, sasl=sasl)
    monkeypatch.setenv("KAFKA_USER", "ann")
    monkeypatch.setenv("KAFKA_PASSWORD", "wrong")
    told = await refused(yard, sasl=sasl)
    assert "does not ask for a name and a password; leave out queue.sasl" in told


async def test_a_broker_without_tls_that_is_asked_for_it_is_told_as_such(
    yard: Yard, kafka: Kafka
) -> None:
    told = await refused(yard, url=f"kafka+tls://{kafka.address}")
    assert f"queue.url: {kafka.address} speaks without TLS" in told
    assert "write kafka://" in told


async def test_a_broker_with_tls_only_is_told_as_such(tmp_path: Path) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    shown = Authority().server(tmp_path, "127.0.0.1")
    async with await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=shown) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with Yard(tmp_path, address) as yard:
            told = await refused(yard)
    assert f"queue.url: {address} speaks TLS only; write kafka+tls://" in told


@pytest.mark.req("V5")
@pytest.mark.parametrize("given", ["username_env", "password_env"])
def test_a_name_for_the_brokers_without_a_mechanism_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="need mechanism: write PLAIN, SCRAM-SHA-256 or"):
        Sasl.model_validate({given: "KAFKA"})


@pytest.mark.req("V5")
async def test_a_secret_that_can_be_guessed_is_refused(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_SECRET", "fifteen letters")
    crm = Producer(secret_env="CRM_SECRET", tenants=("acme",))  # noqa: S106
    told = await refused(yard, producers={"crm": crm})
    assert "CRM_SECRET holds fewer than 16 characters" in told
    assert "openssl rand -hex 32" in told
    assert "fifteen" not in told


async def test_a_broker_that_is_away_does_not_keep_a_house_from_opening(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Yard(tmp_path, f"127.0.0.1:{free_port()}") as yard:
        async with yard.gate() as gate:
            assert "no broker answers at 127.0.0.1" in caplog.text
            output = await gate.call("look", {"text": "x"}, caller=ME, wait_s=0)
            assert output.status == "queued"
            echo = await gate.call("echo", {"text": "x"}, caller=ME)
            assert echo.ok, echo


async def test_a_worker_of_its_own_works_at_the_store_and_says_that_it_is_ready(
    tmp_path: Path,
) -> None:
    port = free_port()
    with Yard(tmp_path, "", queue='work = "never"') as yard:
        async with yard.gate() as gate:
            worker = yard.worker("--health", f"127.0.0.1:{port}")
            assert (await gate.call("pay", {"text": "p"}, caller=ME)).ok
            assert yard.hands() == {str(worker.pid)}
            for path, status, says in (
                ("/healthz", 200, b"ok"),
                ("/readyz", 200, b"ready"),
                ("/metrics", 200, b'toolgate_queue_ended_total{status="success"} 1'),
                ("/", 404, b""),
            ):
                assert says in _asked(port, path, status)
            worker.terminate()
            assert worker.wait(20) == 0
            output = await gate.call("pay", {"text": "q"}, caller=ME, wait_s=0)
            assert output.status == "queued"
            yard.worker()
            await over(gate, [output.call_id])
            assert yard.marks() == {"p": 1, "q": 1}


async def test_a_worker_whose_calls_are_not_over_in_time_cuts_them_off_and_ends_with_one(
    tmp_path: Path,
) -> None:
    with Yard(tmp_path, "", queue='work = "never"\ndrain = 0.1') as yard:
        async with yard.gate() as gate:
            worker = yard.worker()
            outputs = [
                await gate.call(name, {"text": name}, caller=ME, wait_s=0)
                for name in ("held", "watch")
            ]
            await until(lambda: yard.marks() == {"began-held": 1, "began-watch": 1})
            worker.terminate()
            assert await asyncio.to_thread(worker.wait, 20) == 1
            assert "2 calls were not over and are cut off" in yard.log
            # Nobody can say how far a side effect came; what changes nothing is anybody's.
            (held,) = await over(gate, [outputs[0].call_id])
            assert orjson.loads(held.output)["status"] == "unknown"
            yard.go()
            other = yard.worker()
            (watched,) = await over(gate, [outputs[1].call_id])
            assert orjson.loads(watched.output)["data"] == {"marked": "watch"}
            assert yard.marks() == {"began-held": 1, "began-watch": 2, "watch": 1}
            other.terminate()
            assert await asyncio.to_thread(other.wait, 20) == 0


async def test_a_workers_numbers_are_for_its_own_machine_only(tmp_path: Path) -> None:
    port = free_port()
    with Yard(tmp_path, "", queue='work = "never"') as yard:
        yard.worker("--health", f"0.0.0.0:{port}")
        assert b"ok" in _asked(port, "/healthz", 200)
        assert b"toolgate_" not in _asked(port, "/metrics", 404)


async def test_a_page_whose_name_points_to_this_machine_is_not_told_a_workers_numbers(
    tmp_path: Path,
) -> None:
    port = free_port()
    with Yard(tmp_path, "", queue='work = "never"') as yard:
        yard.worker("--health", f"127.0.0.1:{port}")
        for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example", ""):
            assert b"toolgate_" not in _asked(port, "/metrics", 421, host)
            # Probes ask by whatever name they have.
            assert b"ok" in _asked(port, "/healthz", 200, host)
        for host in ("localhost", f"127.0.0.1:{port}"):
            assert b"toolgate_" in _asked(port, "/metrics", 200, host)


def _asked(port: int, path: str, status: int, host: str | None = None) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        assert answer.status == status
        return answer.read()
    finally:
        connection.close()


def test_messages_are_as_their_schema_says() -> None:
    caller = Caller(tenant="acme", agent="billing", roles=("finance",))
    output = Output(status="success", data={"n": 1})
    call: Any = {"version": 1, "id": "call_12345678", "tool": "pay"}
    messages = {
        "request": Request(args={"to": "bob"}, caller=caller, order="a", counted=True, **call),
        "result": Result(tenant="acme", output=output, ended_ms=1, **call),
        "dead": Letter(tenant="acme", why="so", attempts=3, died_ms=1, message=b"{}", **call),
    }
    for name, text in schemas().items():
        schema = orjson.loads(text)
        check = jsonschema_rs.validator_for(schema)
        said = orjson.loads(written(messages[name]))
        assert check.is_valid(said), list(map(str, check.iter_errors(said)))
        assert not check.is_valid({**said, "version": "one"})
        file = Path(__file__).parents[2] / "docs" / "reference" / "queue" / f"{name}.json"
        assert file.read_text("utf-8") == text, "run `make docs`"


def test_an_address_is_one_of_brokers() -> None:
    assert Fleet(url="kafka://a:1,b:2").brokers == ("a:1", "b:2")
    assert Fleet(url="kafka+tls://a:1").is_encrypted
    for wrong in ("kafka://", "kafka://a", "amqp://a:1", "kafka://user:secret@a:1"):
        with pytest.raises(ValueError, match="kafka://HOST:PORT"):
            Fleet(url=wrong)
