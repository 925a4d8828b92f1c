"""Reads protocol/control.api. Errors name file and line."""

import re
from dataclasses import dataclass, field


class SpecError(Exception):
    def __init__(self, path, line, text):
        super().__init__(f"{path}:{line}: {text}")


SCALARS = {"u32": ("uint32_t", 4), "u64": ("uint64_t", 8), "i32": ("int32_t", 4), "f64": ("double", 8)}
PARTIES = {"client", "control", "server", "executor", "ui"}
HEADER_BYTES = 16   # struct wire_header
PACKET_MAX = 65536  # WIRE_PACKET_MAX of wire/codec.h
FDS_MAX = 4  # TP_FDS_MAX of transport/sock.h
PHASES = {"opening": 1, "open": 2, "any": 3}
NAME = re.compile(r"[a-z][a-z0-9_]*\Z")


@dataclass
class Field:
    type: str          # a scalar, "str", "bytes" or "list"
    name: str
    max: int = 0
    element: str = ""  # of a list
    comment: str = ""
    line: int = 0


@dataclass
class Item:
    kind: str          # message, struct, record, enum
    name: str
    line: int
    number: int = 0
    sender: str = ""
    receiver: str = ""
    fds_min: int = 0
    fds: int = 0
    phase: str = "open"
    answer: str = ""   # of a message: what comes back with its serial; "later": nobody waits for it
    fields: list = field(default_factory=list)
    values: list = field(default_factory=list)  # of an enum: (name, number)


@dataclass
class Spec:
    version: int
    items: list

    def of(self, kind):
        return [i for i in self.items if i.kind == kind]


def parse(path, text):
    version = None
    items = []
    names = {}
    numbers = {"message": {}, "record": {}}
    current = None

    def fail(n, why):
        raise SpecError(path, n, why)

    def number(n, word):
        if not word.isdigit():
            fail(n, f"'{word}' is not a number")
        return int(word)

    for n, raw in enumerate(text.splitlines(), 1):
        code, _, comment = raw.partition("#")
        words = code.split()
        if not words:
            continue
        if not raw[0].isspace():
            current = None
            head = words[0]
            if head == "version":
                if len(words) != 2:
                    fail(n, "version needs one number")
                version = number(n, words[1])
                continue
            if head not in ("message", "struct", "record", "enum"):
                fail(n, f"unknown word '{head}'")
            if len(words) < 2 or not NAME.match(words[1]):
                fail(n, f"{head} needs a name in lower case")
            item = Item(head, words[1], n)
            if (head, item.name) in names:
                fail(n, f"{head} {item.name} is already defined in line {names[head, item.name]}")
            names[head, item.name] = n
            rest = words[2:]
            if head in numbers:
                if not rest:
                    fail(n, f"{head} needs a number")
                item.number = number(n, rest.pop(0))
                if not 0 < item.number < 65536:
                    fail(n, f"number {item.number} is not in 1..65535")
                if item.number in numbers[head]:
                    fail(n, f"number {item.number} is taken by {numbers[head][item.number]}")
                numbers[head][item.number] = item.name
            if head == "message":
                if not rest or "->" not in rest[0]:
                    fail(n, "message needs FROM->TO")
                item.sender, _, item.receiver = rest.pop(0).partition("->")
                for party in (item.sender, item.receiver):
                    if party not in PARTIES:
                        fail(n, f"unknown party '{party}'")
                while len(rest) > 1 and rest[0] in ("fds", "phase", "answer"):
                    word, value = rest[:2]
                    rest = rest[2:]
                    if word == "fds":
                        least, dash, most = value.partition("-")
                        item.fds_min = number(n, least)
                        item.fds = number(n, most) if dash else item.fds_min
                        if not item.fds_min <= item.fds <= FDS_MAX or not item.fds:
                            fail(n, f"'{value}' is not a number of descriptors")
                    elif word == "answer":
                        item.answer = value
                    elif value not in PHASES:
                        fail(n, f"unknown phase '{value}'")
                    else:
                        item.phase = value
            if rest:
                fail(n, f"unexpected '{rest[0]}'")
            items.append(item)
            current = item
            continue

        if current is None:
            fail(n, "a field outside of message, struct, record and enum")
        if current.kind == "enum":
            if len(words) != 2:
                fail(n, "an enum value is NAME NUMBER")
            if any(words[0] == name for name, _ in current.values):
                fail(n, f"value {words[0]} is already there")
            current.values.append((words[0], number(n, words[1])))
            continue
        f = Field(words[0], "", comment=comment.strip(), line=n)
        rest = words[1:]
        if f.type == "list":
            if not rest:
                fail(n, "list needs an element")
            f.element = rest.pop(0)
        elif f.type not in SCALARS and f.type not in ("str", "bytes"):
            fail(n, f"unknown type '{f.type}'")
        if not rest or not NAME.match(rest[0]):
            fail(n, "a field needs a name in lower case")
        f.name = rest.pop(0)
        if any(f.name == other.name for other in current.fields):
            fail(n, f"field {f.name} is already there")
        if f.type not in SCALARS:
            if not rest:
                fail(n, f"{f.type} needs a maximum")
            f.max = number(n, rest.pop(0))
        if rest:
            fail(n, f"unexpected '{rest[0]}'")
        if current.kind == "record":
            if current.fields and current.fields[-1].type == "bytes":
                fail(n, "bytes must be the last field of a record")
            if f.type in ("str", "list"):
                fail(n, f"a record has no {f.type}")
        current.fields.append(f)

    if version is None:
        fail(1, "no version")
    structs = {i.name: i for i in items if i.kind == "struct"}
    messages = {i.name: i for i in items if i.kind == "message"}
    for item in items:
        # A list's elements are counted by decoding them: each must take at least a byte.
        if item.kind != "message" and not (item.values if item.kind == "enum" else item.fields or item.kind == "record"):
            fail(item.line, f"{item.kind} {item.name} is empty")
        for f in item.fields:
            if f.type == "list" and f.element not in structs:
                fail(f.line, f"unknown struct '{f.element}'")
            if f.type == "list" and item.kind == "struct" and structs[f.element].line >= item.line:
                fail(f.line, f"struct {f.element} must be defined before it is used in a struct")
        if item.answer and item.answer != "later":
            answer = messages.get(item.answer)
            if not answer or (answer.sender, answer.receiver) != (item.receiver, item.sender):
                fail(item.line, f"'{item.answer}' is no message from {item.receiver} to {item.sender}")
        if item.kind == "record":
            check_layout(path, item)
        if item.kind == "message" and HEADER_BYTES + largest(item, structs) > PACKET_MAX:
            fail(item.line, f"message {item.name} can be larger than a packet: {largest(item, structs)} bytes")
    return Spec(version, items)


def largest(item, structs):
    """The most bytes that an item's fields can take."""
    size = 0
    for f in item.fields:
        if f.type in SCALARS:
            size += SCALARS[f.type][1]
        elif f.type == "list":
            size += 4 + f.max * largest(structs[f.element], structs)
        else:
            size += 4 + f.max + (f.type == "str")
    return size


def check_layout(path, item):
    """A record is a C struct that crosses processes: no padding may hide in it."""
    offset = 0
    for f in item.fields:
        if f.type == "bytes":
            continue
        size = SCALARS[f.type][1]
        if offset % size:
            raise SpecError(path, f.line, f"field {f.name} would be padded; reorder or add a reserved field")
        offset += size
    if offset % 8:
        raise SpecError(path, item.line, f"record {item.name} is not a multiple of 8 bytes")
