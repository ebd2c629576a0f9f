# Tools with the tag "office-hours" run on working days, during the hours in data.office_hours (UTC).
package toolgate

restrict contains reason if {
	"office-hours" in input.tool.tags
	not _open
	reason := {
		"reason": sprintf("it runs on working days from %v to %v UTC", [
			data.office_hours.from,
			data.office_hours.to,
		]),
		"remedy": "call it then",
	}
}

_open if {
	not input.time.weekday in {"saturday", "sunday"}
	input.time.hour >= data.office_hours.from
	input.time.hour < data.office_hours.to
}
