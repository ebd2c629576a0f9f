"""Ways to write an address that is not to be reached, and tricks to have a URL read as another."""

from collections.abc import Callable, Iterator, Mapping

_METADATA, _LOOPBACK, _PRIVATE = "169.254.169.254", "127.0.0.1", "10.0.0.7"


def _number(address: str) -> int:
    a, b, c, d = map(int, address.split("."))
    return a << 24 | b << 16 | c << 8 | d


def _odd(address: str) -> Iterator[str]:
    """Notations that `getaddrinfo` takes, and a strict reader does not."""
    number = _number(address)
    a, b, c, d = address.split(".")
    yield str(number)
    yield f"0{number:o}"
    yield hex(number)
    yield hex(number).upper().replace("0X", "0x")
    yield ".".join(f"0{int(part):o}" for part in (a, b, c, d))
    yield ".".join(hex(int(part)) for part in (a, b, c, d))
    yield f"{a}.{int(b) << 16 | int(c) << 8 | int(d)}"
    yield f"{a}.{b}.{int(c) << 8 | int(d)}"
    yield f"{hex(int(a))}.{b}.{c}.{d}"
    yield f"{a}.0{int(b):o}.{c}.{d}"
    yield f"{address}."
    yield f"{a}.{b}.{c}.00{d}"


def _within(address: str) -> Iterator[str]:
    """The same, inside of an IPv6 address."""
    number = _number(address)
    high, low = number >> 16, number & 0xFFFF
    tail = f"{high:x}:{low:x}"
    yield f"[::ffff:{address}]"
    yield f"[::ffff:{tail}]"
    yield f"[0:0:0:0:0:ffff:{tail}]"
    yield f"[::{address}]"
    yield f"[::ffff:0:{tail}]"
    yield f"[64:ff9b::{address}]"
    yield f"[64:ff9b::{tail}]"
    yield f"[64:ff9b:1::{tail}]"
    yield f"[2002:{tail}::1]"
    yield f"[2001:0:4136:e378:8000:63bf:{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}]"
    yield f"[2a00:1450::5efe:{address}]"
    yield f"[2a00:1450::200:5efe:{tail}]"
    yield f"[fe80::5efe:{address}]"


_PLAIN = (
    *(_METADATA, _LOOPBACK, _PRIVATE, "127.255.255.254", "0.1.2.3", "10.255.255.255"),
    "0.0.0.0",  # noqa: S104  nothing is bound to it
    *("100.64.0.1", "100.100.100.200", "168.63.129.16", "169.254.170.2", "172.16.0.1"),
    *("172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1"),
    *("198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250"),
    *("240.0.0.1", "255.255.255.255"),
    *("[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[fc00::1]", "[fd00:ec2::254]", "[fd20:ce::254]"),
    *("[fe80::1]", "[febf::1]", "[fec0::1]", "[ff02::1]", "[ff0e::1]", "[2001:db8::1]"),
    *("[2001:10::1]", "[2001:20::1]", "[2001:2::1]", "[3fff::1]", "[100::1]", "[5f00::1]"),
    *("[4000::1]", "[fe80::1%eth0]", "[fe80::1%25eth0]", "[::1%lo]"),
    *("localhost", "localhost.", "LOCALHOST", "ip6-localhost"),
)

FORMS: tuple[str, ...] = tuple(
    dict.fromkeys(
        (
            *_PLAIN,
            *(form for address in (_METADATA, _LOOPBACK, _PRIVATE) for form in _odd(address)),
            *(form for address in (_METADATA, _LOOPBACK, _PRIVATE) for form in _within(address)),
        )
    )
)

# Each makes a URL of a form; `api.example.com` is a public host.
TRICKS: Mapping[str, Callable[[str], str]] = {
    "plain": lambda form: f"http://{form}/latest/meta-data",
    "tls": lambda form: f"https://{form}/",
    "port": lambda form: f"http://{form}:8080/",
    "capitals": lambda form: f"HTTP://{form}/",
    "user": lambda form: f"http://api.example.com@{form}/",
    "user and password": lambda form: f"http://api.example.com:80@{form}:80/",
    "backslash": lambda form: f"http://{form}\\@api.example.com/",
    "fragment": lambda form: f"http://{form}#@api.example.com/",
    "question": lambda form: f"http://{form}?@api.example.com/",
    "tab": lambda form: f"ht\ttp://{form}/",
    "line break": lambda form: f"http://{form}/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
    "full width": lambda form: f"http://{form.replace('.', '。')}。/",
}
