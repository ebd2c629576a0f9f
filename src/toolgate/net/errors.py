"""What can go wrong on the way out: whether anything left is what a caller has to know."""

from toolgate.errors import SourceUnavailable


class NotSent(SourceUnavailable):
    """Nothing left this machine: there is no connection, or what was asked cannot be sent."""


class NotAllowed(NotSent):
    """The guard does not let it out. Trying again does not help; the settings can."""

    retryable = False


class Lost(SourceUnavailable):
    """It was sent, or a part of it, and no whole answer came: it may have been done."""


class Gone(Lost):
    """A connection ended after the request was written, and before a byte of the answer."""


class Late(Lost):
    """The answer was not whole when its time was over."""
