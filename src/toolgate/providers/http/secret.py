"""Secrets that tools name: where their values are, and to whom they may be sent."""

import re
from collections.abc import Iterable, Mapping

from toolgate.errors import SettingsInvalid
from toolgate.net.credential import Credential, Where
from toolgate.net.location import Location
from toolgate.net.place import Place, read_place
from toolgate.providers.http.address import location_of
from toolgate.settings.outward import Secret

_NOT_SENT = re.compile(r"[^\x20-\x7e]")


class Secrets:
    """Those of the settings. A value is handed out only for a host that it is bound to."""

    def __init__(self, given: Mapping[str, Secret], environ: Mapping[str, str]) -> None:
        self._given = given
        self._values = {name: environ.get(one.value_env, "") for name, one in given.items()}
        self._places = {name: _places(name, one) for name, one in given.items()}

    def value(self, name: str, *locations: Location) -> str:
        """The value, for a tool that speaks to these; `ValueError` says why not."""
        secret = self._given.get(name)
        if secret is None:
            listed = ", ".join(sorted(self._given)[:10]) or "there are none"
            raise ValueError(
                f"names the secret {name[:60]!r}, which the settings lack ({listed}); write "
                "[providers.http.secrets.NAME] with value_env and hosts"
            )
        for location in locations:
            self._check(name, location)
        value = self._values[name]
        if not value:
            raise ValueError(
                f"names the secret {name!r}, whose variable {secret.value_env} is not set"
            )
        if _NOT_SENT.search(value):
            raise ValueError(
                f"names the secret {name!r}, whose variable {secret.value_env} holds what no "
                "header can: a line's end, a control character or one outside of ASCII"
            )
        return value

    def sent_to(self, name: str, urls: Iterable[str]) -> str:
        """The same, by addresses."""
        return self.value(name, *map(location_of, urls))

    def credential(
        self, name: str, value: str, *, where: Where = "header", key: str = "Authorization"
    ) -> Credential:
        """What is sent for a secret, bound to its hosts: the client looks again at every hop."""
        return Credential(name, value, self._given[name].hosts, where=where, key=key)

    def _check(self, name: str, location: Location) -> None:
        bound = [place for place in self._places[name] if _means(place, location)]
        if not bound:
            raise ValueError(
                f"names the secret {name!r}, which may not be sent to {location.place}; if it "
                f"may, add {location.host!r} to hosts of [providers.http.secrets.{name}]"
            )
        is_here = location.host == "localhost" or (
            location.address is not None and location.address.is_loopback
        )
        if location.scheme == "http" and not is_here and not any(place.port for place in bound):
            raise ValueError(
                f"names the secret {name!r}, which would be sent in the clear; write https, or "
                f"{location.place!r} in hosts of [providers.http.secrets.{name}]"
            )


def _places(name: str, secret: Secret) -> tuple[Place, ...]:
    try:
        return tuple(map(read_place, secret.hosts))
    except SettingsInvalid as error:
        problems = [f"providers.http.secrets.{name}.hosts: {one}" for one in error.problems]
        raise SettingsInvalid(problems) from None


def _means(place: Place, location: Location) -> bool:
    if place.names(location.host, location.port):
        return True
    return location.address is not None and place.holds(location.address, location.port)
