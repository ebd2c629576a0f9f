# Guests get the tools that change nothing. The others are hidden from them, and refused.
package toolgate

deny contains reason if {
	input.caller.persona == "guest"
	input.tool.effect != "pure"
	reason := {
		"reason": "guests may only use tools that change nothing",
		"remedy": "call with another persona",
	}
}
