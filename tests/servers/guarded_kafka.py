"""A real Kafka that speaks to those it knows: TLS at every door, and a password or a certificate.

Its own certificate is good for `localhost` only: its address as a number is a wrong name.
"""

import subprocess
from pathlib import Path

from tests.servers.authority import Authority
from tests.servers.kafka import Kafka, answers
from tests.servers.process import LOOPBACK, free_port

NAME = "localhost"
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
USER, PASSWORD = "ann", "correct-horse-battery"
# It knows them, and they may nothing.
GUEST, GUESTS_PASSWORD = "gus", "a-guest-has-one-too"
CLIENT = "client"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class GuardedKafka(Kafka):
    """Two doors, and two that lead elsewhere: by another name, and to where nobody is."""

    def __init__(self) -> None:
        super().__init__()
        self.authority = Authority()
        self._own_port, self._certified_port, self._astray_port = (free_port() for _ in range(3))
        self._lost_port, self._nobodys_port = free_port(), free_port()

    @property
    def address(self) -> str:
        """Asks for a name and a password."""
        return f"{NAME}:{self.port}"

    @property
    def certified(self) -> str:
        """Asks for a certificate."""
        return f"{NAME}:{self._certified_port}"

    @property
    def astray(self) -> str:
        """Asks for a name and a password, and names an address that is not in its certificate."""
        return f"{NAME}:{self._astray_port}"

    @property
    def lost(self) -> str:
        """As `astray`, and nobody is there."""
        return f"{NAME}:{self._lost_port}"

    @property
    def nobodys(self) -> str:
        """Where `lost` leads."""
        return f"{NAME}:{self._nobodys_port}"

    @property
    def ca_file(self) -> Path:
        """Who signed its certificate."""
        return self.folder / "ca.pem"

    @property
    def client_file(self) -> Path:
        """A key, and a certificate that it lets in."""
        return self.folder / f"{CLIENT}-1.pem"

    def format(self) -> None:
        """Who comes by SCRAM is known by the storage."""
        self.ca_file.write_text(self.authority.text)
        self.authority.signed(self.folder, NAME)
        self.authority.signed(self.folder, CLIENT)
        tool = ["java", "-cp", f"{self.home}/libs/*", "kafka.tools.StorageTool", "format"]
        known = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
        subprocess.run(
            [*tool, "-t", CLUSTER, "-c", "server.properties", "--add-scram", known],
            cwd=self.folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def is_ready(self) -> bool:
        return answers(self._own_port)

    def settings(self) -> dict[str, str]:
        found = super().settings()
        doors = {
            "SASL_SSL": (self.port, self.address),
            "CERTIFIED": (self._certified_port, self.certified),
            "ASTRAY": (self._astray_port, f"{LOOPBACK}:{self._astray_port}"),
            "LOST": (self._lost_port, self.nobodys),
            "OWN": (self._own_port, f"{LOOPBACK}:{self._own_port}"),
        }
        bound = [f"{name}://{LOOPBACK}:{port}" for name, (port, _) in doors.items()]
        told = [f"{name}://{where}" for name, (_, where) in doors.items()]
        found |= {
            "listeners": ",".join([*bound, f"CONTROLLER://{LOOPBACK}:{self.controller_port}"]),
            "advertised.listeners": ",".join(told),
            "listener.security.protocol.map": (
                "SASL_SSL:SASL_SSL,CERTIFIED:SSL,ASTRAY:SASL_SSL,LOST:SASL_SSL,OWN:PLAINTEXT,"
                "CONTROLLER:PLAINTEXT"
            ),
            "inter.broker.listener.name": "OWN",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": f"{NAME}-1.pem",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca_file.name,
            "listener.name.certified.ssl.client.auth": "required",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{USER};User:CN={CLIENT}",
        }
        known = f'{_PLAIN} user_{USER}="{PASSWORD}" user_{GUEST}="{GUESTS_PASSWORD}";'
        for name in ("sasl_ssl", "astray", "lost"):
            found[f"listener.name.{name}.plain.sasl.jaas.config"] = known
            found[f"listener.name.{name}.scram-sha-512.sasl.jaas.config"] = _SCRAM
        return found
