"""Certificates that are made where they are needed, and good for a day."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from toolgate.net.dial import verified

DAY = dt.timedelta(days=1)


class Authority:
    """Signs certificates, as long as it is believed."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.certificate = self._signed(self.name, self.key.public_key(), [], 1, authority=True)

    @property
    def text(self) -> str:
        """Its own certificate: what those go by who believe it."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def signed(self, place: Path, *names: str, days: int = 1) -> Path:
        """A file with a key and the certificate that it goes by these names."""
        key = ec.generate_private_key(ec.SECP256R1())
        alike = [
            x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
            for name in names
        ]
        own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        certificate = self._signed(own, key.public_key(), alike, days)
        file = place / f"{names[0]}-{days}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        return file

    def server(self, place: Path, *names: str, days: int = 1) -> ssl.SSLContext:
        """What a server of these names shows."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.signed(place, *names, days=days))
        return context

    def believed(self) -> ssl.SSLContext:
        """What a client goes by that believes it."""
        context = verified()
        context.load_verify_locations(cadata=self.text)
        return context

    def _signed(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePublicKey,
        alike: Sequence[x509.GeneralName],
        days: int,
        *,
        authority: bool = False,
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        built = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 9 * DAY)
            .not_valid_after(now + days * DAY)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if alike:
            built = built.add_extension(x509.SubjectAlternativeName(alike), critical=False)
        return built.sign(self.key, hashes.SHA256())
