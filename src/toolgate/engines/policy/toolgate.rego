# The bundled policy. With no data it allows what the earlier phases of the gate have let pass.
#
# Extend it: put files of `package toolgate` beside your data, with more rules of these sets.
#
#   deny contains reason            this caller may not have this tool: it is hidden and refused
#   restrict contains reason        this one call may not be made: the tool stays listed
#   banned[name] contains reason    the tools, by name, that this caller may not have
#
# A reason is a text, or an object {"reason": "...", "remedy": "what would help"}.
# Replace it: set `bundled = false` below [policy], and define `allow` yourself.
package toolgate

default allow := false

# To see a tool.
allow if {
	input.action == "tool.view"
	count(deny) == 0
}

# To run it, with these arguments, now.
allow if {
	input.action == "tool.request"
	count(deny) == 0
	count(restrict) == 0
}

# To add it.
allow if {
	input.action == "tool.enable"
	count(unaddable) == 0
}

deny contains "it is switched off" if input.tool.enabled == false

deny contains reason if some reason in banned[input.tool.name]

# data.tenant_tool_flags: {"acme": {"code_execute": {"enabled": false}}}
deny contains reason if {
	flag := data.tenant_tool_flags[input.caller.tenant][input.tool.name]
	not _on(flag)
	reason := {
		"reason": sprintf("it is switched off for tenant '%v' in tenant_tool_flags", [input.caller.tenant]),
		"remedy": "set its flag to {\"enabled\": true}, or remove it",
	}
}

# data.tool_catalog: {"http_fetch": {"enabled": false}}. A tenant's own flag comes first.
deny contains reason if {
	entry := data.tool_catalog[input.tool.name]
	not _on(entry)
	not _flagged(input.tool.name)
	reason := {
		"reason": "it is switched off in tool_catalog",
		"remedy": "set it to {\"enabled\": true}, or give the tenant a flag of its own",
	}
}

# data.persona_tool_deny: {"intern": ["code_execute", "http_fetch"]}
deny contains reason if {
	input.tool.name in data.persona_tool_deny[input.caller.persona]
	reason := {
		"reason": sprintf("persona '%v' is kept from it in persona_tool_deny", [input.caller.persona]),
		"remedy": "remove it from the persona's list",
	}
}

# data.global_tool_deny: ["dangerous_tool"]. Nobody sees, runs or adds these.
deny contains _denied_everywhere if input.tool.name in data.global_tool_deny

# data.code_execution_restricted_tenants: ["sandbox"]
deny contains reason if {
	input.tool.name == "code_execute"
	input.caller.tenant in data.code_execution_restricted_tenants
	reason := {
		"reason": sprintf("tenant '%v' may not execute code", [input.caller.tenant]),
		"remedy": "remove the tenant from code_execution_restricted_tenants",
	}
}

# Nothing here looks at a single call; arguments.rego does, and your files may.
restrict contains "never" if false

# Nothing here; your files may.
banned[""] contains "never" if false

# The same rules as `deny`, for a whole list at once: every name that one of them hides.
# A ban whose conditions do not hold leaves its name behind, with no reason.
hidden contains name if {
	some name, reasons in banned
	count(reasons) > 0
}

hidden contains name if {
	some name, flag in data.tenant_tool_flags[input.caller.tenant]
	not _on(flag)
}

hidden contains name if {
	some name, entry in data.tool_catalog
	not _on(entry)
	not _flagged(name)
}

hidden contains name if some name in data.persona_tool_deny[input.caller.persona]

hidden contains name if some name in data.global_tool_deny

hidden contains "code_execute" if input.caller.tenant in data.code_execution_restricted_tenants

# Why a tool may not be added. A persona may where somebody said so, and nobody said no.
unaddable contains reason if {
	not _may_add
	reason := {
		"reason": sprintf("persona '%v' may not add tools", [input.caller.persona]),
		"remedy": "let the persona add tools, in persona_permissions or in the store",
	}
}

unaddable contains _denied_everywhere if input.tool.name in data.global_tool_deny

# data.persona_permissions: {"admin": {"can_add_tools": true}}
_may_add if {
	data.persona_permissions[input.caller.persona].can_add_tools == true
	not _said_no
}

_may_add if {
	input.persona.can_add_tools == true
	not _said_no
}

_may_add if {
	input.settings.unlisted_personas_may_add == true
	not _listed
}

_said_no if input.persona.can_add_tools == false

_said_no if data.persona_permissions[input.caller.persona].can_add_tools == false

_listed if is_boolean(input.persona.can_add_tools)

_listed if _ := data.persona_permissions[input.caller.persona]

_flagged(name) if _ := data.tenant_tool_flags[input.caller.tenant][name]

_on(flag) if flag == true

_on(flag) if flag.enabled == true

_denied_everywhere := {
	"reason": "it is denied everywhere in global_tool_deny",
	"remedy": "remove it from that list",
}
