# In examples/project, with examples/policies and examples/refused beside it.
toolgate policy put guests ../policies/guests-read-only/policy.rego --why "guests are strangers"
toolgate policy list
toolgate policy put broken ../refused/policy.rego
toolgate policy remove guests --why "guests sign in now"
toolgate audit
