#!/usr/bin/env python3
"""Shows a program's session as it lies in memory: error, ring, streams.  session.py PID [-r]

PID is a client (or an executor: then every session that it has mapped). -r lists the ring's records that nobody has
taken yet. Needs the right to trace the process. The layout is that of src/transport/session.h and ring.h.
"""

import argparse
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MAGIC, VERSION = 0x78756D67, 4
FAILED = 2**64 - 1
CONTROL, RING, SLOT = 4096, 4096 + 256, 128  # struct tp_session_control, its ring, struct tp_stream_slot
HEADER = struct.Struct("<IIQIIIIII")  # magic, version, size, streams, events and ring: where, how many


def sessions(pid):
    """Start and end of each session in the process."""
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        if "/memfd:gmux-session" in line:
            yield [int(part, 16) for part in line.split()[0].split("-")]


def record_names():
    text = (ROOT / "protocol/control.api").read_text()
    return {int(number): name for name, number in re.findall(r"^record (\w+) (\d+)", text, re.M)}


def show_records(data, head, tail, names):
    ring = data + data[:24]  # a record's head may begin at the end and go on at the beginning
    while head != tail:
        op, _, size, stream, _, seq = struct.unpack_from("<HHIIIQ", ring, head % len(data))
        print(f"    {names.get(op, op)}: stream {stream}, seq {seq}, {size} bytes")
        if size < 24 or size > (tail - head) % 2**32:
            print("    (not a record: the ring is broken)")
            return
        head = (head + size + 7 & ~7) % 2**32


def show(memory, start, end, records):
    memory.seek(start)
    data = memory.read(end - start)
    magic, version, _, streams_at, streams, _, _, ring_at, ring_size = HEADER.unpack_from(data)
    if (magic, version) != (MAGIC, VERSION):
        sys.exit(f"session.py: a session of version {version}; this script knows {VERSION}")
    error, generation, fault, share = struct.unpack_from("<IIQI", data, CONTROL)
    tail, = struct.unpack_from("<I", data, RING)
    head, = struct.unpack_from("<I", data, RING + 64)
    sleeps, _, full = struct.unpack_from("<III", data, RING + 128)
    print(f"session at {start:#x}: error {error}" + (f" at {fault:#x}" if fault else "") +
          f", generation {generation} of the executor, share {share / 10:g} %")
    print(f"  ring: {(tail - head) % 2**32} of {ring_size} bytes wait (taken {head}, written {tail})" +
          (", reader asleep" if sleeps else "") + (", writer waits for room" if full else ""))
    if records:
        show_records(data[ring_at:ring_at + ring_size], head, tail, record_names())
    for i in range(streams):
        at = streams_at + SLOT * i
        completed, sleepers, _, accepted, arrived = struct.unpack_from("<QIIQQ", data, at)
        gate, priority, device = struct.unpack_from("<QiI", data, at + 64)
        if not (completed or accepted):
            continue
        print(f"  stream {i}, device {device}: accepted {accepted}, completed "
              f"{'all, since it failed' if completed == FAILED else completed}" +
              (f", priority {priority}" if priority else "") +
              (f", at the gate of {arrived}, open up to {gate}" if arrived > gate else "") +
              (", somebody waits" if sleepers else ""))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("pid", type=int)
    arguments.add_argument("-r", "--records", action="store_true", help="list what is in the ring")
    given = arguments.parse_args()
    try:
        found = list(sessions(given.pid))
        if not found:
            sys.exit(f"session.py: process {given.pid} has no session")
        with open(f"/proc/{given.pid}/mem", "rb", buffering=0) as memory:
            for start, end in found:
                show(memory, start, end, given.records)
    except OSError as e:
        sys.exit(f"session.py: {e}")


if __name__ == "__main__":
    main()
