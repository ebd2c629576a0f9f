# A policy is tried on what was decided before. In a fresh copy of examples/project.
set +e # a command that answers no exits with 1; what follows is run all the same
copy=$(mktemp -d) && cp -r "$(dirname "$0")"/* "$copy" || exit 1
cd "$copy/project" && rm -rf .toolgate policies || exit 1
toolgate call mark_paid --args '{"invoice_id": "I-1"}' --persona clerk
toolgate call mark_paid --args '{"invoice_id": "I-2"}' --persona guest
toolgate policy replay --since 1h --path ../policies/guests-read-only
toolgate policy replay --since 1h --path ../policies/spending-limit
