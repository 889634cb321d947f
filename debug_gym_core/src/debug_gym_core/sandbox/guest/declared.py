"""In which encoding a Python file says that it is, and lines as text by that; the host takes this from here as well."""

import codecs
import contextlib

HEAD = 1 << 16  # bytes of a file in which its first two lines are looked for
LONGEST = 40  # characters of an encoding's name

# What is the same text in each encoding whose lines can be read one by one: all ASCII that source has, what is an
# escape in `raw_unicode_escape`, and what shifts to other characters in ISO-2022-KR, which only its first line chooses.
ASCII = "".join(map(chr, range(32, 127))) + "\t\n\f\r\\u0041\x0e\x0f"

LEAST = "a =\n"  # what has to be ASCII in what is written; `mac_arabic` writes a blank, and most signs, as other bytes

DECLARATION = rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)"
BLANK = rb"[ \t\f]*(?:#.*)?\r?$"


def is_python(path: str) -> bool:
    """Whether a file is Python source, which may declare its encoding."""
    return path.endswith((".py", ".pyi", ".pyw"))


def declaration(data: bytes) -> str:
    """What a Python file calls its encoding (PEP 263).

    `data` is its content, or the first `HEAD` bytes of that. Empty: it does not say; or has a byte order mark, which
    says more.
    """
    head = data[:HEAD]
    if b"coding" not in head or head.startswith(codecs.BOM_UTF8):
        return ""
    import re

    first, _, rest = head.partition(b"\n")
    found = re.match(DECLARATION, first)
    if found is None and re.match(BLANK, first):
        found = re.match(DECLARATION, rest.partition(b"\n")[0])
    return "" if found is None else found.group(1).decode("ascii")


def codec_of(declared: str) -> str:
    """The codec of what is written to a file that declares so; UTF-8 where that names none that can be mixed in."""
    name = declared.lower().replace("_", "-") + "-"
    if name.startswith(("latin-1-", "iso-8859-1-", "iso-latin-1-")):  # Python reads `latin-1-unix` so, too
        return "iso8859-1"
    if name.startswith(("utf-8-", "-")) or len(name) > LONGEST:
        return "utf-8"
    try:
        codec = codecs.lookup(declared).name
        return codec if LEAST.encode(codec, "surrogateescape") == LEAST.encode() else "utf-8"
    except (LookupError, UnicodeError, ValueError, TypeError):
        return "utf-8"


def line_codec_of(declared: str) -> str:
    """The codec of each line in a file with such a declaration; UTF-8 for one in which ASCII is not always ASCII.

    In such, what a line is depends on those above, or its text is less like the file than its bytes are.
    """
    codec = codec_of(declared)
    try:
        plain = ASCII.encode(codec) == ASCII.encode("ascii") and ASCII.encode("ascii").decode(codec) == ASCII
    except UnicodeError:
        return "utf-8"
    return codec if plain else "utf-8"


def shifts(data: bytes, codec: str) -> bool:
    """Whether lines of the codec, one of `line_codec_of`, may escape to characters that look like ASCII (ISO-2022)."""
    return codec != "utf-8" and b"\x1b" in data


def text_of(data: bytes, codec: str) -> str:
    """Lines as text, each by itself; bytes that are no characters of the codec's become surrogates."""
    if codec == "utf-8":
        return data.decode("utf-8", "surrogateescape")
    if not shifts(data, codec):
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode(codec)  # the same, and faster
    return "\n".join([_text_of_line(line, codec) for line in data.split(b"\n")])


def _text_of_line(line: bytes, codec: str) -> str:
    try:
        return line.decode(codec, "surrogateescape")
    except UnicodeDecodeError:  # of several bytes of a 7 bit encoding, such as ISO-2022-JP
        return line.decode("ascii", "surrogateescape")
