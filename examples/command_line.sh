# In a folder with a toolgate.toml and tools/*.yaml (examples/project).
toolgate tools list
toolgate call open_invoices --args '{"customer": "C-7"}'
toolgate tools disable open_invoices --tenant demo
toolgate explain open_invoices
toolgate tools enable open_invoices --tenant demo
toolgate tools export --format prompt
