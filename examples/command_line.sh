# A folder with a toolgate.toml and tools/*.yaml: a fresh copy of examples/project.
set +e # a command that answers no exits with 1; what follows is run all the same
copy=$(mktemp -d) && cp -r "$(dirname "$0")"/* "$copy" || exit 1
cd "$copy/project" && rm -rf .toolgate policies || exit 1
toolgate tools list
toolgate call open_invoices --args '{"customer": "C-7"}'
toolgate tools disable open_invoices --tenant demo
toolgate explain open_invoices
toolgate tools enable open_invoices --tenant demo
toolgate tools export --format prompt
