"""The channel to the host: the configuration comes over it first, then reports go."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Config = dict[str, Any]
    Send = Callable[..., None]


def open_channel(descriptor: int) -> "tuple[Config, Send]":
    """Take over the channel and read the configuration.

    The descriptor is moved to a high number that no child inherits. The nonce is kept in a closure only: out of plain
    sight, not out of reach.

    Args:
        descriptor: the inherited one

    Returns:
        the configuration without the nonce, and `send(kind, **fields)`
    """
    import fcntl
    import json
    from json import encoder

    read, write, getpid, from_json = os.read, os.write, os.getpid, json.loads

    def receive(size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = read(descriptor, size - len(parts))
            if not part:
                raise SystemExit("debug-gym: the channel ended")
            parts += part
        return parts

    config = from_json(receive(int.from_bytes(receive(4), "big")).decode())
    nonce = config.pop("nonce")
    for lowest in (700 + int(nonce[:2], 16), 100):
        try:
            channel = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
            break
        except (OSError, ValueError):
            continue
    else:
        raise SystemExit("debug-gym: no descriptor is free")
    os.close(descriptor)
    owner = getpid()
    seal = nonce.encode()
    count = [0]
    under_way = []  # type: list[str]
    del nonce
    make_encoder = getattr(encoder, "c_make_encoder", None)
    if make_encoder:
        # An object without Python code in it: test code cannot change what it writes.
        text = encoder.encode_basestring_ascii
        encode = make_encoder(None, str, text, None, ":", ",", False, False, True)
        join = "".join  # type: Any
    else:
        encode, join = lambda value, level: json.dumps(value), str

    def send(kind: str, **fields: "Any") -> None:
        if getpid() != owner or under_way:  # A signal came in the middle of a message: another would break it.
            return
        under_way.append(kind)
        try:
            fields["t"] = kind
            fields["i"] = count[0]
            count[0] += 1
            message = seal + join(encode(fields, 0)).encode()
            data = len(message).to_bytes(4, "big") + message
            while data:
                data = data[write(channel, data) :]
        except OSError:
            pass  # The host is gone or the channel was closed: nothing is left to tell and nobody to tell it.
        finally:
            under_way.pop()

    return config, send
