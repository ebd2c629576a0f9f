# A refund is for an order that this session has looked up, not for one that a model made up.
package toolgate

restrict contains reason if {
	input.tool.name == "refund_order"
	not _looked_up
	reason := {
		"reason": "this session has not looked that order up",
		"remedy": "call get_order with the same order_id first",
	}
}

# One refund an order and session, however often it is asked for.
restrict contains "this session has already refunded that order" if {
	input.tool.name == "refund_order"
	input.args.order_id in input.history.session.tools.refund_order.args.order_id
}

_looked_up if input.args.order_id in input.history.session.tools.get_order.args.order_id
