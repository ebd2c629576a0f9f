# Two phases refuse, and each says what would help. In a fresh copy of examples/project.
set +e # a command that answers no exits with 1; what follows is run all the same
copy=$(mktemp -d) && cp -r "$(dirname "$0")"/* "$copy" || exit 1
cd "$copy/project" && rm -rf .toolgate policies || exit 1
toolgate tools disable mark_paid --tenant demo --why "audit"
toolgate layers set month-end --deny mark_paid --reason "books are closed"
toolgate explain mark_paid
toolgate tools enable mark_paid --tenant demo
toolgate layers permit month-end mark_paid
toolgate explain mark_paid
