# What a policy may not hold. In a fresh copy of examples/project.
set +e # a command that answers no exits with 1; what follows is run all the same
copy=$(mktemp -d) && cp -r "$(dirname "$0")"/* "$copy" || exit 1
cd "$copy/project" && rm -rf .toolgate policies || exit 1
toolgate policy check --path ../refused
