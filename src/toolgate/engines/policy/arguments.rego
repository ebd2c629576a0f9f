# Arguments that are refused, by tenant and tool; "*" stands for every tenant, or every tool.
#
# data.restricted_arguments: {"acme": {"http_fetch": {"method": ["DELETE", "PUT"]}}}
#
# In a file of its own: a policy that looks at arguments has to be asked at every call, so this one
# is loaded only where there is such data.
package toolgate

restrict contains reason if {
	some tenant in {"*", input.caller.tenant}
	some tool in {"*", input.tool.name}
	some argument, refused in data.restricted_arguments[tenant][tool]
	input.args[argument] in refused
	# The value stays out: a reason goes on record, and an argument may be a secret.
	reason := {
		"reason": sprintf("argument '%v' may not have this value", [argument]),
		"remedy": "call it with another value, or change restricted_arguments",
	}
}
