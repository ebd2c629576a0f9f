# In examples/project, with examples/policies beside it: see what a policy would refuse first.
cp -r ../policies/guests-read-only policies
printf '\n[policy]\nmode = "observe"\n' >> toolgate.toml
toolgate call mark_paid --args '{"invoice_id": "I-1"}' --persona guest
toolgate explain mark_paid --persona guest
