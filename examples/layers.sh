# Layers and personas take away. In a fresh copy of examples/project.
set +e # a command that answers no exits with 1; what follows is run all the same
copy=$(mktemp -d) && cp -r "$(dirname "$0")"/* "$copy" || exit 1
cd "$copy/project" && rm -rf .toolgate policies || exit 1
toolgate layers set month-end --deny mark_open --reason "books are closed" --why "month end"
toolgate roles set auditor --categories finance --forbid mark_paid
toolgate roles set clerk --allow group:all
toolgate layers list
toolgate explain mark_open --role clerk
toolgate explain mark_paid --role auditor
toolgate explain open_invoices --role intern
toolgate explain mark_paid --role clerk --read-only
toolgate personas restrict trainee mark_paid --reason "sits next to somebody"
toolgate explain mark_paid --role clerk --persona trainee
