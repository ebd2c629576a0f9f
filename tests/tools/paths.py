"""Paths that lead out of a folder, or try to: written in all the ways that somebody has found."""

import itertools

TARGETS = ("etc/passwd", "outside.txt", "secret/keys.json", "..")
_UPS = (
    "../",
    "..\\",
    "./../",
    ".././",
    "..//",
    "%2e%2e/",
    "%2e%2e%2f",
    "..%2f",
    "%2E%2E/",
    "..%5c",
    "%252e%252e/",
    "..%252f",
    "%2e./",
    ".%2e/",
    "..%00/",
    ".. /",
    "... /../",
    "....//../",
    "\\..\\",
    "a/../../",
)
_ABSOLUTES = (
    "/etc/passwd",
    "//etc/passwd",
    "///etc/passwd",
    "/./etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/proc/1/cwd/etc/passwd",
    "/dev/zero",
    "/dev/stdin",
    "/dev/tcp/127.0.0.1/80",
    "/ETC/PASSWD",
    "\\etc\\passwd",
    "\\\\server\\share\\file",
    "//server/share/file",
    "C:\\Windows\\win.ini",
    "C:/Windows/win.ini",
    "c:",
    "\\\\?\\C:\\boot.ini",
    "\\\\.\\COM1",
    "file:///etc/passwd",
    "file:/etc/passwd",
    "http://127.0.0.1/etc/passwd",
    "FILE:///etc/passwd",
    "php://filter/resource=/etc/passwd",
    "jar:file:///etc/passwd!/",
)
_HOMES = ("~", "~/", "~/.ssh/id_rsa", "~root", "~root/.bashrc", "~+/x", "~-/x")
_BROKEN = (
    "\0",
    "note.txt\0",
    "note.txt\0.png",
    "a\0/../outside.txt",
    "note\n.txt",
    "note\r.txt",
    "note\t.txt",
    "note\x1b[31m.txt",
    "note\x7f.txt",
    "note\u202etxt.exe",
    "note\u2028.txt",
    "\ud800.txt",
    "a" * 256,
    "a" * 5_000,
    "/".join("a" * 70),
    "d/" * 2_500 + "x",
    "é" * 200,
)
# No file may be given such a name; to read one finds nothing.
UNFIT = (
    "note.txt.",
    "note.txt ",
    " note.txt",
    "note.",
    "folder./note.txt",
    "folder /note.txt",
    "NUL",
    "con",
    "Aux",
    "COM1",
    "lpt9",
    "folder/PRN",
    "a\\b",
    "note%2etxt",
    "a%2fb",
    "a%5cb",
    "%c0%ae%c0%ae",
    "a%u2216b",
    "0x2e0x2e0x2fetc",
    "\u2215etc",
    "a\uff0fb",
    "\uff0e\uff0e",
    "..\u2216x",
    "a\u2044b",
)


def leading_out() -> list[str]:
    """Those that are refused for what they are, whether there is anything or not."""
    found = [
        up * count + target for up, count, target in itertools.product(_UPS, (1, 2, 8), TARGETS)
    ]
    nested = [f"folder/{one}" for one in found if one.startswith(("../", "%2e", "..%", "..\\"))]
    dots = ["..", "...", "....", "../", "./..", "a/..", "a/../..", "folder/..", "folder/.../x"]
    siblings = ["../files-more/sibling.txt", "../files", "../FILES/x", "../files2", "../files/../x"]
    everything = [*found, *nested, *dots, *siblings, *_ABSOLUTES, *_HOMES, *_BROKEN]
    return list(dict.fromkeys(everything))
