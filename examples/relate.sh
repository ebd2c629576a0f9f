# A tool is for those who are related to it. In a fresh copy of examples/project.
set +e # a command that answers no exits with 1; what follows is run all the same
copy=$(mktemp -d) && cp -r "$(dirname "$0")"/* "$copy" || exit 1
cd "$copy/project" && rm -rf .toolgate policies || exit 1
printf '\n[relations]\nengine = "store"\n' >> toolgate.toml
toolgate relations add 'tool:mark_paid#executor@group:finance#member' 'group:finance#member@user:ann'
toolgate explain mark_paid --user ann
toolgate explain mark_paid --user ben
toolgate relations add 'tool:mark_paid#executor@role:clerk'
toolgate relations list
