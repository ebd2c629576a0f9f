# Exports need a second person: the application puts the name of whoever agreed into the context.
# In an emergency the role "on-call" may export alone, if the context names the incident.
package toolgate

deny contains reason if {
	"exports" in input.tool.tags
	not _agreed
	not _emergency
	reason := {
		"reason": "an export needs a second person who agreed",
		"remedy": "put their name into the context as the fact approved_by",
	}
}

_agreed if {
	is_string(input.context.facts.approved_by)
	input.context.facts.approved_by != ""
	input.caller.user != ""
	input.context.facts.approved_by != input.caller.user
}

_emergency if {
	"on-call" in input.caller.roles
	startswith(input.context.facts.incident, "INC-")
}
