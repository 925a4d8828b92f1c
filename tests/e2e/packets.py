"""The packets of protocol/control.api that the stand-ins below speak, written out by hand.

By hand on purpose: the daemon uses generated code, and a mistake in the generator must not hide here as well.
"""

import socket
import struct

VERSION = 1
HELLO, REFUSED, UI_COMMAND, UI_REPLY, WAITING = 1, 2, 3, 4, 5
(LINK_SETUP, LINK_READY, LINK_FAILED, LINK_CLIENT, LINK_CLIENT_STATE, LINK_LIMITS, LINK_TERMINATE,
 LINK_TERMINATED, LINK_SHUTDOWN, LINK_FAULT, LINK_LOG) = range(16, 27)
LINK_CLIENT_LIMITS = 27
LINK_RETURN, LINK_RETURN_CLIENT = 30, 31
LINK_CLIENT_SPACE, LINK_RETURN_SPACE = 55, 56
STATUS = 46
CONNECTED, ACTIVE, INACTIVE, EXITED = 1, 2, 3, 4


def text(s):
    b = s.encode()
    return struct.pack("<I", len(b)) + b + b"\0"


def blob(b):
    return struct.pack("<I", len(b)) + b


def packet(kind, body=b"", serial=0):
    return struct.pack("<HHIQ", kind, 0, 16 + len(body), serial) + body


class Reader:
    """Takes a packet apart."""

    def __init__(self, data):
        self.kind, _, self.size, self.serial = struct.unpack_from("<HHIQ", data)
        self.data = data
        self.at = 16

    def number(self, form):
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self):
        n = self.number("I")
        s = self.data[self.at:self.at + n].decode()
        self.at += n + 1
        return s


def hello(version=VERSION, minimum=VERSION, share=0.0, priority=-1, memory="", command="program"):
    return packet(HELLO, struct.pack("<IQIdi", version, 0, minimum, share, priority) + text(memory) + text(command))


def ui_command(line):
    return packet(UI_COMMAND, text(line))


def connect(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # Blocking, as programs connect: one that is not gets an error where a flood fills the queue for a moment.
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 20, 0))
    s.connect(path)
    s.settimeout(20)
    return s
