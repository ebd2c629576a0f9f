# The policy hides tools by name only: the list is decided without looking at the tools.
package toolgate_gate

default listed := false

listed if {
	input.action == "tool.view"
	data.toolgate.allow == true
}

visible := {name | some name in input.names} - data.toolgate.hidden
