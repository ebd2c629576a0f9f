# In examples/project, with examples/refused beside it.
toolgate policy check --path ../refused
