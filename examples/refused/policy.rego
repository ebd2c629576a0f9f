package toolgate

# Reaches out: a decision would depend on a server that nobody sees in it.
deny contains "not on the list" if http.send({"method": "get", "url": "https://example.com"}).status_code != 200

# Where there is no path at all, one engine says true and another drops the rule.
restrict contains "stay below /tmp" if not startswith(input.args.path, "/tmp/")

# With the bundled policy, rules only take away.
allow if input.caller.persona == "admin"
