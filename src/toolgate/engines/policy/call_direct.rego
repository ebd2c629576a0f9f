# Whoever may call a tool under this policy may see it, so one question is enough.
package toolgate_gate

default call := false

call if {
	input.action == "tool.request"
	data.toolgate.allow == true
}
