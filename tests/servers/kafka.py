"""A real Kafka broker: one node in KRaft mode that is its own controller."""

import shutil
import socket
import struct
from collections.abc import Sequence

from tests.servers.process import LOOPBACK, AbsentError, Process, absent, free_port, services

API_VERSIONS = 18


class Kafka(Process):
    def __init__(self) -> None:
        self.home = services() / "kafka"
        if not (self.home / "formatted").is_dir():
            raise absent("Kafka")
        if shutil.which("java") is None:
            raise AbsentError("no Kafka (it needs java 17 or later on PATH)")
        super().__init__("Kafka")
        self.controller_port = free_port()

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def prepare(self) -> None:
        written = "".join(f"{name}={value}\n" for name, value in self.settings().items())
        (self.folder / "server.properties").write_text(written)
        self.format()

    def format(self) -> None:
        """Make its storage."""
        shutil.copytree(self.home / "formatted", self.folder / "data")

    def command(self) -> Sequence[str]:
        # Serial collector and first compiler only: the broker lives for seconds, beside the tests.
        machine = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        broker = ["-cp", f"{self.home}/libs/*", "kafka.Kafka", "server.properties"]
        return [*machine, "-Dlog4j2.level=WARN", *broker]

    def is_ready(self) -> bool:
        return answers(self.port)

    def settings(self) -> dict[str, str]:
        """Its properties."""
        controller = f"{LOOPBACK}:{self.controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{controller}",
            "log.dirs": "data",
            # One node holds every copy, and few partitions of its own topics are made quickly.
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            # A group starts with its first member, not three seconds later.
            "group.initial.rebalance.delay.ms": "0",
        }


def answers(port: int) -> bool:
    """Whether a broker says there, without TLS, which versions it knows."""
    client = b"toolgate"
    request = struct.pack(">hhih", API_VERSIONS, 0, 1, len(client)) + client
    with socket.create_connection((LOOPBACK, port), timeout=1.0) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = connection.makefile("rb").read(10)
    return len(answer) == 10 and struct.unpack(">iih", answer)[1:] == (1, 0)
