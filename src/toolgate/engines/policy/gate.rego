# What the gate itself asks. Always loaded, beside whichever policy is there.
package toolgate_gate

# Why something is refused, as texts.
reasons contains text if {
	_by_deny
	some entry in data.toolgate.deny
	text := _told(entry)
}

reasons contains text if {
	_by_deny
	some entry in data.toolgate.restrict
	text := _told(entry)
}

reasons contains text if {
	input.action == "tool.enable"
	some entry in data.toolgate.unaddable
	text := _told(entry)
}

_by_deny if input.action != "tool.enable"

_by_deny if not data.toolgate.unaddable

_told(entry) := entry if is_string(entry)

_told(entry) := sprintf("%v (%v)", [entry.reason, entry.remedy]) if is_object(entry)

_told(entry) := sprintf("%v", [entry.reason]) if {
	is_object(entry)
	not entry.remedy
}
