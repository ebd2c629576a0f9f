# What is on record, the proof of it, and the same proof by others. In a fresh copy of examples/project.
set +e # a command that answers no exits with 1; what follows is run all the same
copy=$(mktemp -d) && cp -r "$(dirname "$0")"/* "$copy" || exit 1
cd "$copy/project" && rm -rf .toolgate policies || exit 1
toolgate tenants add acme --why "a new customer"
toolgate audit list --tenant acme
toolgate audit anchor --tenant acme
toolgate audit verify --tenant acme
toolgate audit verify --anchor 1:0000000000000000000000000000000000000000000000000000000000000000
toolgate audit export --tenant acme | python ../audit/verify.py
