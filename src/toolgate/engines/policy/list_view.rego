# The policy looks at the single call, so a list can only ask whether a tool may be seen.
package toolgate_gate

default listed := false

listed if data.toolgate.allow == true with input.action as "tool.view"

visible := [name | some name, tool in input.tools; _seen(tool)]

_seen(tool) if data.toolgate.allow == true with input as _question(tool, "tool.view")

# The rest of `input`, without the list: it is copied for every tool.
_question(tool, action) := object.union(_rest, {"tool": _document(tool), "action": action})

_rest := object.remove(input, ["tools"])

# In process a tool is named by its key in the engine's data; a server is sent its document.
_document(tool) := tool if is_object(tool)

_document(tool) := data.toolgate_tools[tool] if is_string(tool)
