# Nobody spends more at once than data.spending_limit allows for the persona; or for "others".
package toolgate

restrict contains reason if {
	"spends" in input.tool.tags
	not _within
	reason := {
		"reason": sprintf("amount has to be a number from 0 to %v", [_limit]),
		"remedy": "ask for less, or ask somebody with a higher limit",
	}
}

# An amount that is missing, negative or a text is not within the limit.
_within if {
	is_number(input.args.amount)
	input.args.amount >= 0
	input.args.amount <= _limit
}

_limit := object.get(data.spending_limit, input.caller.persona, data.spending_limit.others)
