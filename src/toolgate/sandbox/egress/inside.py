"""Run beside a sandbox: opens a listening socket in its network, and hands that over.

It is read as text, and imports nothing of ours. A socket stays in the network that it was made in;
so what listens for the program is our own process, and nothing of ours is inside.
"""

import ctypes
import fcntl
import os
import socket
import sys

# Of <linux/nsfs.h> and <sched.h>.
_OWNER_OF_NAMESPACE = 0xB701
_NEW_USERS, _NEW_NETWORK = 0x10000000, 0x40000000

network = os.open(f"/proc/{sys.argv[1]}/ns/net", os.O_RDONLY)
# Whoever may enter the users that the network belongs to may enter the network; the users that
# the program is among are others again.
users = fcntl.ioctl(network, _OWNER_OF_NAMESPACE)
libc = ctypes.CDLL(None, use_errno=True)
for space, kind in ((users, _NEW_USERS), (network, _NEW_NETWORK)):
    if libc.setns(space, kind) != 0:
        raise OSError(ctypes.get_errno(), "setns")
listener = socket.socket()
listener.bind(("127.0.0.1", int(sys.argv[2])))
listener.listen()
socket.send_fds(socket.socket(fileno=0), [b"x"], [listener.fileno()])
