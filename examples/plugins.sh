# A plugin is put into its folder, looked at, agreed to and called; then it changes. In a fresh copy of examples/project.
set +e # a command that answers no exits with 1; what follows is run all the same
copy=$(mktemp -d) && cp -r "$(dirname "$0")"/* "$copy" || exit 1
cd "$copy/project" && rm -rf .toolgate policies || exit 1
cp -r ../plugins plugins
toolgate plugins show units
toolgate plugins approve units --why "read it"
toolgate call convert_units --args '{"value": 26.2188, "unit": "mi", "to": "km"}'
mkdir plugin_settings && echo '{"custom_config": {"digits": 3}}' > plugin_settings/units.json
toolgate call convert_units --args '{"value": 26.2188, "unit": "mi", "to": "km"}'
sed -i "s/:.{settings/:.{1 + settings/" plugins/units/tools.py
toolgate plugins show units
