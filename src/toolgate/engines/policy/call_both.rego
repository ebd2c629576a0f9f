# A tool that is hidden is not called either, whatever the policy says about the call.
package toolgate_gate

default call := false

call if {
	data.toolgate.allow == true with input.action as "tool.view"
	data.toolgate.allow == true with input.action as "tool.request"
}
