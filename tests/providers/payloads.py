"""What arguments of commands try: to be read by a shell, to be an option, to be a list of files."""

from itertools import product

CANARY = "canary"
_DOES = f"touch {CANARY}"
# Each would run `touch canary` if a shell read it behind `rm `.
FIRING = (
    f"x; {_DOES}",
    f"x;{_DOES};",
    f"x && {_DOES} || {_DOES}",
    f"x || {_DOES}",
    f"x | {_DOES}",
    f"x & {_DOES}",
    f"x\n{_DOES}",
    f"x\n\n{_DOES}\n",
    f"$({_DOES})",
    f"`{_DOES}`",
    f'"$({_DOES})"',
    f"x > {CANARY}",
    f"x >{CANARY} 2>&1",
    f"<({_DOES})",
    f"${{x:-$({_DOES})}}",
    f"$(({CANARY}=1)); {_DOES}",
    f"x'; {_DOES}; '",
    f'x"; {_DOES}; "',
    f"x\\\n; {_DOES}",
    f"x;\t{_DOES}",
    f"x # \n {_DOES}",
    f"$(eval '{_DOES}')",
)
_BEFORE = ("", "x", "./x ", "a b", "'", '"', "\\", "/x/../", "\u00a0", "x=1 ", "\x1b[2J", "%s")
_INSIDE = (
    ";reboot",
    "&&id",
    "||id",
    "|sh",
    "&",
    "$(id)",
    "`id`",
    "${IFS}id",
    "$'\\x41'",
    ">out",
    "<in",
    "2>&1",
    "*",
    "?",
    "[a-z]",
    "{a,b}",
    "{path}",
    "{0}",
    "~root",
    "$HOME",
    "!!",
    "\nid",
    "\r\nid",
    "\tid",
)
# Literal, whatever they hold: none begins like an option or like a list of files.
LITERAL = tuple(dict.fromkeys([*FIRING, *(a + b for a, b in product(_BEFORE, _INSIDE))]))

_DASHES = ("-", "--", "+", "\u2010", "\u2011", "\u2013", "\u2014", "\u2212", "\u00ad", "\uff0d")
_UNSEEN = ("", " ", "\t", "\u200b", "\ufeff", "\u2060", "\n")
OPTIONS = tuple(
    dict.fromkeys(
        [
            "-",
            "--",
            "-rf",
            "-r",
            "--no-preserve-root",
            "--output=/etc/passwd",
            "-oProxyCommand=touch canary",
            "--upload-pack=touch canary",
            "--exec=sh",
            "-c core.pager=sh",
            "--config=x",
            "--use-compress-program=sh",
            "--checkpoint-action=exec=sh",
            "-I{}",
            "-5",
            "-1e9",
            "-e print",
            "--eval=1",
            *(unseen + dash + "rf" for dash, unseen in product(_DASHES, _UNSEEN[:5])),
        ]
    )
)
FILE_LISTS = ("@file", "@/etc/passwd", " @x", "\u200b@x", "\uff20x", "@", "@-", "\ufe6bx")
# What no program can be given.
IMPOSSIBLE = ("a\0b", "\0", "x" * 100_001, "\ud800", "a\udc80")
