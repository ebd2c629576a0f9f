# See first what a policy would refuse. In a fresh copy of examples/project.
set +e # a command that answers no exits with 1; what follows is run all the same
copy=$(mktemp -d) && cp -r "$(dirname "$0")"/* "$copy" || exit 1
cd "$copy/project" && rm -rf .toolgate policies || exit 1
cp -r ../policies/guests-read-only policies
printf '\n[policy]\nmode = "observe"\n' >> toolgate.toml
toolgate call mark_paid --args '{"invoice_id": "I-1"}' --persona guest
toolgate explain mark_paid --persona guest
