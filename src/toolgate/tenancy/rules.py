"""What an operator says about who is left with what: layers, roles, personas, policies."""

from typing import TypeVar

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.identity import plain
from toolgate.tenancy import layer as layers
from toolgate.tenancy import names
from toolgate.tenancy.changes import SetLayer, SetPersona, SetPolicyModule, SetRestriction
from toolgate.tenancy.hand import Hand
from toolgate.tenancy.layer import Layer, Permissions

# The layer that a role's flat permissions become.
PERMISSIONS = "permissions"
_MOST_TEXT = 1_000_000
S = TypeVar("S", Layer, Permissions)


class Rules(Hand):
    """Layers, roles, personas and policy modules."""

    async def set_layer(
        self, name: str, layer: Layer | None, *, role: str = "", tenant: str = ""
    ) -> None:
        """Narrow what everybody, or a role, is left with; `None` takes the layer away.

        In one tenant, or in all of them. A name that it denies has to be a tool's.
        """
        names.label("layer", name)
        if role:
            names.label("role", role)
        if tenant:
            plain("tenant", tenant)
        if layer is not None:
            layer = layers.checked(_exact(layer))
            names.words("reason of a layer", layer.reason)
            self._denied(layer, self._layers(tenant).get((role, name)))
        await self._put(SetLayer(name, layer, role, tenant))

    async def set_role(self, role: str, permissions: Permissions, *, tenant: str = "") -> None:
        """A role's flat permissions: categories, web access, an allow and a forbid list."""
        names.label("role", role)
        layer = _exact(permissions).layer(f"permissions of role {role}")
        await self.set_layer(PERMISSIONS, layer, role=role, tenant=tenant)

    async def remove_role(self, role: str, *, tenant: str = "") -> None:
        """Take all layers of a role away. There must be one."""
        names.label("role", role)
        if tenant:
            plain("tenant", tenant)
        async with self._stepping:
            await self._present.refresh()
            kept = self._layers(tenant)
            found = [name for whose, name in kept if whose == role]
            if not found:
                raise InvalidRequest(
                    f"There is no role {role!r} {_where(tenant)}; nothing was changed."
                    + names.nearest(role, layers.roles_of(kept))
                )
            await self._put(*(SetLayer(name, None, role, tenant) for name in found))

    async def set_persona(self, persona: str, can_add_tools: bool | None) -> None:  # noqa: FBT001
        """Whether a persona may add tools; `None` takes back what was said."""
        await self._put(SetPersona(names.label("persona", persona), can_add_tools))

    async def restrict(
        self, persona: str, tool: str, *, allowed: bool | None = False, reason: str = ""
    ) -> None:
        """Keep a persona from a tool, with the reason; `None` takes the restriction away."""
        names.label("persona", persona)
        # A tool that is gone from the catalog can still leave a restriction behind.
        name = tool if allowed is None else self._tool(tool)
        words = names.words("reason of a restriction", reason)
        await self._put(SetRestriction(persona, name, allowed, words))

    async def set_policy_module(self, name: str, text: str | None) -> None:
        """Keep a Rego module in the store, beside those in files; `None` takes it away."""
        names.module(name)
        if text is not None:
            _keepable(text)
        async with self._stepping:
            await self._present.refresh()
            modules = {
                **{one: kept for one, kept in self.world.everyone.policies.items() if one != name},
                **({} if text is None else {name: text}),
            }
            if self._check is not None:
                self._check(modules)
            await self._put(SetPolicyModule(name, text))

    def _layers(self, tenant: str) -> layers.Layers:
        return self.world.tenant(tenant).layers if tenant else self.world.everyone.layers

    def _denied(self, layer: Layer, before: Layer | None) -> None:
        """A misspelt name would be believed to be denied; what was denied before may be gone."""
        kept = () if before is None else before.deny
        for selector in layer.deny:
            if layers.is_name(selector) and selector not in kept:
                self._tool(selector)


def _exact(given: S) -> S:
    """Lists become tuples; one text in place of several would be taken letter by letter."""
    try:
        return msgspec.convert(msgspec.to_builtins(given), type(given))
    except (msgspec.ValidationError, TypeError) as error:
        raise InvalidRequest(f"This cannot be kept ({error}); nothing was changed.") from None


def _keepable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("A policy is text in UTF-8; nothing was changed.") from None
    if "\0" in text or len(text) > _MOST_TEXT:
        raise InvalidRequest(
            f"A policy has at most {_MOST_TEXT:,} characters and no NUL; nothing was changed."
        )


def _where(tenant: str) -> str:
    return f"in tenant {tenant!r}" if tenant else "that holds in every tenant"
