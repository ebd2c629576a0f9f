"""A case: what is on record, who calls which tool, and what the gate has to say about it."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from tests.gate.world import put_capsule, put_flags, write_tools
from toolgate.caller import Caller, Context, Delegation
from toolgate.engines.bundle import Bundle
from toolgate.engines.modules import build
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.layer import Layer, Permissions
from toolgate.tenancy.tenancy import Tenancy

_FOLDER = Path(__file__).with_name("cases")


class Flags(msgspec.Struct, forbid_unknown_fields=True):
    everyone: dict[str, bool] = {}
    tenants: dict[str, dict[str, bool]] = {}


class Capsule(msgspec.Struct, forbid_unknown_fields=True):
    mode: Mode = Mode.ALL
    tools: dict[str, bool] = {}
    care: dict[str, dict[str, bool]] = {}


class StoredLayer(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    role: str = ""
    tenant: str = ""
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    reason: str = ""


class StoredRole(msgspec.Struct, forbid_unknown_fields=True):
    role: str
    tenant: str = ""
    may: Permissions = Permissions()


class Restricted(msgspec.Struct, forbid_unknown_fields=True):
    allowed: bool = False
    reason: str = ""


class StoredPersona(msgspec.Struct, forbid_unknown_fields=True):
    can_add_tools: bool | None = None
    tools: dict[str, Restricted] = {}


class PolicyText(msgspec.Struct, forbid_unknown_fields=True):
    rego: str = ""
    data: dict[str, Any] = {}
    bundled: bool = True


class Task(msgspec.Struct, forbid_unknown_fields=True):
    read_only: bool = False
    no_web: bool = False
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    facts: dict[str, str | int | float | bool] = {}


class Handed(msgspec.Struct, forbid_unknown_fields=True):
    by: str
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()


class Who(msgspec.Struct, forbid_unknown_fields=True):
    tenant: str = "acme"
    agent: str = "billing"
    user: str = ""
    persona: str = ""
    roles: tuple[str, ...] = ()
    session: str = ""
    context: Task = msgspec.field(default_factory=Task)
    delegation: tuple[Handed, ...] = ()


class Case(msgspec.Struct, forbid_unknown_fields=True):
    note: str
    tool: str
    want: Literal["call", "hide", "deny", "add", "refuse"]
    why: str
    # A part of the deciding reason.
    reason: str = ""
    observe: bool = False
    unlisted_may_add: bool = False
    # Whether each call waits for somebody.
    person: bool = False
    # Also asked of a whole house, from its settings to the tool's own answer.
    whole: bool = False
    args: dict[str, Any] = msgspec.field(default_factory=lambda: {"text": "hello"})
    flags: Flags = msgspec.field(default_factory=Flags)
    capsules: dict[str, Capsule] = {}
    # Agents that were there, and are not any more.
    removed: tuple[str, ...] = ()
    layers: tuple[StoredLayer, ...] = ()
    roles: tuple[StoredRole, ...] = ()
    personas: dict[str, StoredPersona] = {}
    # By tenant; `None` where relations are not asked for.
    relations: dict[str, list[str]] | None = None
    policy: PolicyText = msgspec.field(default_factory=PolicyText)
    caller: Who = msgspec.field(default_factory=Who)

    @property
    def allowed(self) -> bool:
        return self.want in {"call", "add"}

    @property
    def adds(self) -> bool:
        return self.want in {"add", "refuse"}

    def who(self) -> Caller:
        fields = {
            name: getattr(self.caller, name)
            for name in ("tenant", "agent", "user", "persona", "roles", "session")
        }
        task = self.caller.context
        context = Context(
            read_only=task.read_only,
            no_web=task.no_web,
            allow=task.allow,
            deny=task.deny,
            facts=tuple(task.facts.items()),
        )
        handed = [Delegation(**msgspec.structs.asdict(step)) for step in self.caller.delegation]
        return Caller(**fields, context=context, delegation=tuple(handed))

    def bundle(self) -> Bundle:
        return _built(msgspec.json.encode(self.policy))


@cache
def _built(policy: bytes) -> Bundle:
    """Most cases have the same one."""
    given = msgspec.json.decode(policy, type=PolicyText)
    texts = {"case.rego": given.rego} if given.rego else {}
    return build(texts, given.data, bundled=given.bundled)


@cache
def read_cases() -> Sequence[Case]:
    """Every case of every file."""
    return tuple(
        msgspec.convert(given, Case)
        for file in sorted(_FOLDER.glob("*.yaml"))
        for given in yaml.safe_load(file.read_text("utf-8"))["cases"]
    )


async def put(tenancy: Tenancy, case: Case) -> None:
    """Say what the case has on record, as an operator would."""
    await put_flags(tenancy, case.flags.everyone, case.flags.tenants)
    for whose, capsule in case.capsules.items():
        await put_capsule(tenancy, whose, capsule.mode, capsule.tools, capsule.care)
    for whose in case.removed:
        tenant, agent = whose.split("/")
        await tenancy.set_agent(tenant, agent)
        await tenancy.remove_agent(tenant, agent)
    for one in case.layers:
        layer = Layer(allow=one.allow, deny=one.deny, reason=one.reason)
        await tenancy.set_layer(one.name, layer, role=one.role, tenant=one.tenant)
    for role in case.roles:
        await tenancy.set_role(role.role, role.may, tenant=role.tenant)
    for name, persona in case.personas.items():
        if persona.can_add_tools is not None:
            await tenancy.set_persona(name, persona.can_add_tools)
        for tool, said in persona.tools.items():
            await tenancy.restrict(name, tool, allowed=said.allowed, reason=said.reason)
    for tenant, relations in (case.relations or {}).items():
        await tenancy.relate(tenant, add=relations)


def by_note(case: object) -> str | None:
    return case.note if isinstance(case, Case) else None


def write_house(root: Path, case: Case) -> Path:
    """The case's tools, policy and settings as files; what is on record is put later."""
    write_tools(root)
    policies = root / "policies"
    policies.mkdir()
    if case.policy.rego:
        (policies / "case.rego").write_text(case.policy.rego, "utf-8")
    if case.policy.data:
        (policies / "data.json").write_bytes(msgspec.json.encode(case.policy.data))
    mode = "observe" if case.observe else "enforce"
    engine = "off" if case.relations is None else "store"
    (root / "toolgate.toml").write_text(
        f'[tools]\nbuiltin = []\n[policy]\nmode = "{mode}"\n'
        f"bundled = {str(case.policy.bundled).lower()}\n"
        f"unlisted_personas_may_add = {str(case.unlisted_may_add).lower()}\n"
        f'[relations]\nengine = "{engine}"\n',
        "utf-8",
    )
    return root / "toolgate.toml"
