"""What the suite starts for each of its scenarios: it tells the client, which runs already.

Dozens are started at once; none of them can wait for all that a client imports.
"""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    asked = {
        "url": sys.argv[-1],
        "scenario": os.environ.get("MCP_CONFORMANCE_SCENARIO", ""),
        "context": os.environ.get("MCP_CONFORMANCE_CONTEXT", ""),
    }
    line.sendall(json.dumps(asked).encode() + b"\n")
    said = b""
    while piece := line.recv(65_536):
        said += piece
sys.exit(said.decode())
