"""A server as the settings name it: how a connection to it is made."""

from collections.abc import Mapping

import msgspec

from toolgate import protocol
from toolgate.errors import ProviderUnavailable
from toolgate.net.client import HttpClient
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.sandbox import Sandbox
from toolgate.settings.outward import McpServer
from toolgate.upstreams.connected import Connected
from toolgate.upstreams.credentials import Credentials, Secret, no_secret
from toolgate.upstreams.failures import AwayError
from toolgate.upstreams.http import Http
from toolgate.upstreams.oauth import OAuth
from toolgate.upstreams.pipe import Pipe
from toolgate.upstreams.refusals import Challenge
from toolgate.upstreams.wire import Ear, Wire

# A program may have to be fetched before it begins.
_PROGRAM_PATIENCE = 60.0
_PATIENCE = 30.0


def connected(
    name: str,
    settings: McpServer,
    *,
    client: HttpClient,
    sandbox: Sandbox,
    environ: Mapping[str, str],
    policy: Policy | None = None,
    is_named: bool = True,
    secret: Secret = no_secret,
) -> Connected:
    """The upstream that these settings name. Nothing is begun before it is used.

    `is_named`: its address is in the settings file, and reached wherever it is; `secret`: what
    hands out secrets by name.
    """
    dial: ProgramDial | AddressDial
    if settings.command:
        dial = ProgramDial(name, settings, sandbox, environ, policy or Policy())
    else:
        urls = filter(None, (settings.url, settings.oauth.token_url))
        reached = client.named(*urls) if is_named else client
        challenge = _challenge(settings, reached, secret, is_named=is_named)
        dial = AddressDial(name, settings, reached, environ, challenge)
    chosen = None if settings.revision == "auto" else settings.revision == protocol.MODERN
    return Connected(name, dial, asks=settings.asks, timeout=settings.timeout, is_modern=chosen)


class AddressDial:
    """A server by its address. What it is sent goes to that host only."""

    patience = _PATIENCE
    # HTTP always answers, if only that there is no such thing.
    silence = _PATIENCE

    def __init__(
        self,
        name: str,
        settings: McpServer,
        client: HttpClient,
        environ: Mapping[str, str],
        challenge: Challenge | None = None,
    ) -> None:
        self.name = name
        self._settings = settings
        self._client = client
        self._environ = environ
        self._challenge = challenge

    async def wire(self, ear: Ear) -> Wire:
        """Connections are made when something is sent."""
        return Http(
            self._settings.url,
            self._client,
            ear,
            headers=_values(self._settings.headers_env, self._environ),
            asks=self._settings.asks,
            challenge=self._challenge,
        )


class ProgramDial:
    """A server that is a program here, in the sandbox."""

    patience = _PROGRAM_PATIENCE
    # Older programs say nothing to what they do not know.
    silence = 5.0

    def __init__(
        self,
        name: str,
        settings: McpServer,
        sandbox: Sandbox,
        environ: Mapping[str, str],
        policy: Policy,
    ) -> None:
        self.name = name
        self._settings = settings
        self._sandbox = sandbox
        self._environ = environ
        self._policy = policy

    async def wire(self, ear: Ear) -> Wire:
        """Start it. Its environment is what the settings give it, and no more."""
        settings = self._settings
        secrets = _values(settings.secrets_env, self._environ)
        policy = msgspec.structs.replace(
            self._policy,
            readable=(*self._policy.readable, *settings.readable),
            writable=(*self._policy.writable, *settings.writable),
            hosts=(*self._policy.hosts, *settings.hosts),
            env={**self._policy.env, **settings.env, **secrets},
            cpu=0.0,
            seconds=0.0,
        )
        try:
            running = await self._sandbox.start((*settings.command, *settings.args), policy)
        except (OSError, ProviderUnavailable) as error:
            said = error.message if isinstance(error, ProviderUnavailable) else type(error).__name__
            raise AwayError("its program cannot be started.", said) from None
        return Pipe(
            running,
            ear,
            asks=settings.asks,
            secrets=tuple(secrets.values()),
        )


def _challenge(
    settings: McpServer, client: HttpClient, secret: Secret, *, is_named: bool
) -> Challenge | None:
    url, oauth = settings.url, settings.oauth
    if not oauth.client_id:
        return None
    return OAuth(Credentials(url, client, oauth, secret, is_named=is_named))


def _values(named: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    missing = sorted(variable for variable in named.values() if variable not in environ)
    if missing:
        listed = ", ".join(missing)
        raise AwayError("it is not set up.", f"these environment variables are not set: {listed}.")
    return {key: environ[variable] for key, variable in named.items()}
