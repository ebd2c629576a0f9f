# In examples/project.
printf '\n[relations]\nengine = "store"\n' >> toolgate.toml
toolgate relations add 'tool:mark_paid#executor@group:finance#member' 'group:finance#member@user:ann'
toolgate explain mark_paid --user ann
toolgate explain mark_paid --user ben
toolgate relations add 'tool:mark_paid#executor@role:clerk'
toolgate relations list
