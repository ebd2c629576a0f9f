"""Who may knock with a token of somebody else's: the issuer, and what its claims mean here."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from toolgate.settings.part import Part, Seconds, Texts

# Whoever can check one of these cannot make one: the key that checks is public.
ASYMMETRIC = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"),
    *("EdDSA", "Ed25519"),
)
# As RFC 6749 spells a scope.
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]*\Z")


def is_trusted_address(url: str) -> bool:
    """Whether what comes from there comes from whom it names: by TLS, or from this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.username is not None or parts.fragment or not host:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_here(host))


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _trusted(url: str) -> str:
    if url and not is_trusted_address(url):
        raise ValueError("write https://HOST…; http only for this machine, such as 127.0.0.1")
    return url


def _issuer(url: str) -> str:
    if "?" in url:
        raise ValueError("an issuer's address has no query")
    return _trusted(url)


def _signed(names: tuple[str, ...]) -> tuple[str, ...]:
    wrong = [name for name in names if name not in ASYMMETRIC]
    if wrong or not names:
        raise ValueError(f"choose among {', '.join(ASYMMETRIC)}; a shared secret is never taken")
    return names


def _scope(given: str) -> str:
    if not _SCOPE.match(given):
        raise ValueError("a scope is one word")
    return given


Scope = Annotated[str, AfterValidator(_scope)]


class Auth(Part):
    """Tokens of an OAuth issuer, taken beside keys. Nothing of it holds without an issuer."""

    issuer: Annotated[str, AfterValidator(_issuer)] = Field(
        default="", description="Who signs the tokens, exactly as they say it in `iss`."
    )
    audience: str = Field(
        default="", description="What tokens for this server say in `aud`. Needed with an issuer."
    )
    jwks_url: Annotated[str, AfterValidator(_trusted)] = Field(
        default="", description="Where its keys are; without it, where its metadata says."
    )
    algorithms: Annotated[Texts, AfterValidator(_signed)] = Field(
        default=("RS256", "ES256", "EdDSA", "PS256"),
        strict=False,
        description="How tokens may be signed; only with a key pair.",
    )
    leeway: Seconds = Field(
        default=30,
        ge=0,
        le=300,
        strict=False,
        description="Seconds by which the issuer's clock and ours may differ.",
    )
    tenant_claim: str = Field(
        default="tenant", min_length=1, description="The claim that names the tenant."
    )
    agent_claim: str = Field(
        default="agent", min_length=1, description="The claim that names the agent."
    )
    user_claim: str = Field(
        default="sub", min_length=1, description="The claim that names the user."
    )
    persona_claim: str = Field(default="", description="The claim that names the persona, if any.")
    roles_claim: str = Field(default="", description="The claim that lists the roles, if any.")
    required_scope: Scope = Field(
        default="", description="A scope that every token needs to be let in."
    )
    admin_scope: Scope = Field(
        default="", description="The scope that makes a token an admin's; without it none is."
    )
    operator_scope: Scope = Field(
        default="", description="The scope that makes a token an operator's; without it none is."
    )
    approver_scope: Scope = Field(
        default="", description="The scope that makes a token an approver's; without it none is."
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.issuer and not self.audience:
            raise ValueError(
                "name the audience too: without it, tokens for any other server would open this one"
            )
        if not self.issuer and (self.audience or self.jwks_url):
            raise ValueError("name the issuer too: without it no token is taken")
        return self

    @property
    def scopes(self) -> Mapping[str, str]:
        """Role by scope, the one that opens most first."""
        named = {
            self.admin_scope: "admin",
            self.operator_scope: "operator",
            self.approver_scope: "approver",
        }
        return MappingProxyType({scope: role for scope, role in named.items() if scope})
