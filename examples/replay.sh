# In examples/project, with examples/policies beside it: a policy is tried on what was decided before.
toolgate call mark_paid --args '{"invoice_id": "I-1"}' --persona clerk
toolgate call mark_paid --args '{"invoice_id": "I-2"}' --persona guest
toolgate policy replay --since 1h --path ../policies/guests-read-only
toolgate policy replay --since 1h --path ../policies/spending-limit
