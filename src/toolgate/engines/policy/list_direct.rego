# Whoever may call a tool under this policy may see it, and no single call is looked at.
package toolgate_gate

default listed := false

listed if data.toolgate.allow == true with input.action as "tool.request"

visible := [name | some name, tool in input.tools; _callable(tool)]

_callable(tool) if data.toolgate.allow == true with input as _question(tool, "tool.request")

# The rest of `input`, without the list: it is copied for every tool.
_question(tool, action) := object.union(_rest, {"tool": _document(tool), "action": action})

_rest := object.remove(input, ["tools"])

# In process a tool is named by its key in the engine's data; a server is sent its document.
_document(tool) := tool if is_object(tool)

_document(tool) := data.toolgate_tools[tool] if is_string(tool)
