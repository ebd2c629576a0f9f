# A policy for every node at once. In a fresh copy of examples/project.
set +e # a command that answers no exits with 1; what follows is run all the same
copy=$(mktemp -d) && cp -r "$(dirname "$0")"/* "$copy" || exit 1
cd "$copy/project" && rm -rf .toolgate policies || exit 1
toolgate policy put guests ../policies/guests-read-only/policy.rego --why "guests are strangers"
toolgate policy list
toolgate policy put broken ../refused/policy.rego
toolgate policy remove guests --why "guests sign in now"
toolgate audit list
