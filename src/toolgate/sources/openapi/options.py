"""What an operator says about an import."""

from collections.abc import Sequence

import msgspec

from toolgate.sources.openapi.selection import Selection


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator says about an import."""

    # What its tools are listed under, and its secrets are called by; else its title.
    name: str = ""
    prefix: str = ""
    server: str = ""
    client_id: str = ""
    selection: Selection = Selection()
    # The security schemes to take where an operation offers several.
    auth: Sequence[str] = ()
    # Where the document was, if it was fetched; then it may not lower the care for its tools.
    address: str = ""
