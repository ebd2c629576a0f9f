# In examples/project, with examples/policies beside it.
cp -r ../policies/guests-read-only policies
toolgate policy check
toolgate policy test
toolgate explain mark_paid --persona guest
toolgate call mark_paid --args '{"invoice_id": "I-1"}' --persona guest
