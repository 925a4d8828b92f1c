#!/usr/bin/env python3
"""What operating gmux costs: rows of bench/run.py, and the endurance run.

usage: operate.py BUILD [--cycles N] [--kills N]   many clients come and go, the daemon is killed again and again; fails if
                                                   memory, descriptors or files of daemon, server and executor grow
"""

import argparse
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

CLIENTS = 300
ROUNDS = 20


def gmux(b):
    return str(b.build / "src/cli/gmux")


def ask(b, env, *words):
    return subprocess.run([b.control, *words], env=env, check=True, capture_output=True, text=True).stdout


class Program:
    """bench/steady, which always has work; `options` are those of gmux run."""

    def __init__(self, b, env, *options):
        self.process = subprocess.Popen([gmux(b), "run", *options, "--", b.tool("steady")], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("bench/steady does not run")

    def done(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self):
        self.process.kill()
        self.process.communicate()


def progress(programs, seconds):
    """How many kernels each has done within that time."""
    before = [p.done() for p in programs]
    time.sleep(seconds)
    return [p.done() - n for p, n in zip(programs, before)]


def parts(did):
    return [100 * n / sum(did) for n in did]


def bench_crowd(b):
    """300 clients at once, and `gmux ls` while they are there."""
    connect, listed = [], []
    for _ in range(3):
        with b.daemon(GMUX_DEVICE="null") as e:
            subprocess.run([b.tool("crowd"), "cycles", "1", "1"], env=e, check=True, stdout=subprocess.DEVNULL)
            crowd = subprocess.Popen([b.tool("crowd"), "together", str(CLIENTS)], env=e, text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            ms, good = crowd.stdout.readline().split()
            if int(good) != CLIENTS:
                raise RuntimeError(f"{good} of {CLIENTS} clients have a session")
            connect.append(float(ms))
            for _ in range(ROUNDS):
                begin = time.monotonic()
                lines = subprocess.run([gmux(b), "ls"], env=e, check=True, capture_output=True, text=True).stdout
                listed.append(1e3 * (time.monotonic() - begin))
                if lines.count("\n") != CLIENTS + 1:
                    raise RuntimeError("gmux ls does not show all of them")
            crowd.communicate()
    b.row("clients_300", "null", "ms", all_connected=statistics.median(connect), most=max(connect), must=2000)
    b.row("gmux_ls_300", "null", "ms", median=statistics.median(listed), most=max(listed), must=20)


def bench_run(b):
    """From exec to the end of the first kernel, under `gmux run` and without it, alternating."""
    with b.daemon() as e:
        def once(*prefix):
            begin = repr(time.clock_gettime(time.CLOCK_MONOTONIC))
            return float(subprocess.run([*prefix, b.tool("first_kernel"), begin], env=e, check=True, text=True,
                                        capture_output=True).stdout)
        once()
        plain, run = [], []
        for _ in range(ROUNDS):
            plain.append(once())
            run.append(once(gmux(b), "run", "--share", "50", "--"))
    p, r = statistics.median(plain), statistics.median(run)
    b.row("gmux_run", "soft", "ms", without=p, with_run=r, adds=r - p, must_add=10)


def bench_live(b):
    """From `gmux set` to the end of the first fifth of a second in which a program that had a half has next to nothing."""
    times = []
    with b.daemon() as e:
        p, other = Program(b, e), Program(b, e)
        try:
            for _ in range(5):
                subprocess.run([gmux(b), "set", str(p.process.pid), "share="], env=e, check=True)
                time.sleep(0.5)
                begin = time.monotonic()
                subprocess.run([gmux(b), "set", str(p.process.pid), "share=1"], env=e, check=True)
                while True:
                    did = progress([p, other], 0.2)
                    if sum(did) and did[0] <= 0.15 * sum(did):
                        break
                    if time.monotonic() - begin > 10:
                        raise RuntimeError("the limit has no effect")
                times.append(1e3 * (time.monotonic() - begin))
        finally:
            p.end()
            other.end()
    b.row("live_limit", "soft", "ms", median=statistics.median(times), most=max(times), must=1000)


def bench_guarantees(b):
    """Soft limits: three programs that are guaranteed parts of which nothing is left, then without the first of them."""
    asked = [60, 25, 15]
    with b.daemon() as e:
        programs = [Program(b, e, "--guarantee", str(g)) for g in asked]
        try:
            time.sleep(0.5)
            got = parts(progress(programs, 20))
            programs[0].end()
            time.sleep(0.5)
            rest = parts(progress(programs[1:], 5))
        finally:
            for p in programs[1:]:
                p.end()
    b.row("guarantees_60_25_15", "soft", "%", first=got[0], second=got[1], third=got[2],
          deviation=max(abs(g - a) for g, a in zip(got, asked)), must_deviation=2)
    b.row("… without the first", "soft", "%", second=rest[0], third=rest[1])


def bench_partitions(b):
    """Two static partitions of one chunk each: two programs in the first, one in the second."""
    with b.daemon() as e:
        subprocess.run([b.control, "quit", "-t", "0"], env=e, check=True)
        subprocess.run([b.control, "-d", "-S"], env=e, check=True)
        device = ask(b, e, "lspart").splitlines()[2].split()
        if int(device[1]) < 2:
            return
        first, second = (ask(b, e, "sm_partition", "add", device[0], "1").split()[1] for _ in range(2))
        programs = [Program(b, e, "--partition", p) for p in (first, first, second)]
        try:
            time.sleep(0.5)
            got = parts(progress(programs, 20))
        finally:
            for p in programs:
                p.end()
    b.row("partitions_2_and_1", "soft", "%", first=got[0] + got[1], second=got[2], within_first=got[0] - got[1],
          deviation=abs(got[2] - 50), must_deviation=2)


def bench_flood(b):
    """How long one user's program takes to have its session, while another user's come as fast as they can and without
    them, alternating. Needs root."""
    if os.geteuid() != 0:
        return
    def of_user(user, *command):
        return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
    with b.daemon(GMUX_DEVICE="null") as e:
        pathlib.Path(e["CUDA_MPS_PIPE_DIRECTORY"]).chmod(0o755)
        def once():
            crowd = subprocess.Popen(of_user(12346, b.tool("crowd"), "together", "1"), env=e, text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            ms, good = crowd.stdout.readline().split()
            crowd.communicate()
            if good != "1":
                raise RuntimeError("it has no session")
            return float(ms)
        once()
        alone, beside = [], []
        for _ in range(ROUNDS):
            alone.append(once())
            with subprocess.Popen(of_user(12345, b.tool("crowd"), "cycles", "1000000", "4"), env=e, stdout=subprocess.DEVNULL,
                                  start_new_session=True) as flood:
                time.sleep(0.2)
                beside.append(once())
                os.killpg(flood.pid, signal.SIGKILL)
    a, f = statistics.median(alone), statistics.median(beside)
    b.row("connect_beside_flood", "null", "ms", alone=a, beside=f, adds=f - a, must_add=50)


def bench_quit(b):
    """`quit -t 1` with a program that works and one that is stopped."""
    times = []
    for _ in range(3):
        with b.daemon() as e:
            p, stopped = Program(b, e), Program(b, e)
            os.kill(stopped.process.pid, signal.SIGSTOP)
            begin = time.monotonic()
            ask(b, e, "quit", "-t", "1")
            times.append(1e3 * (time.monotonic() - begin))
            os.kill(stopped.process.pid, signal.SIGCONT)
            p.end()
            stopped.end()
    b.row("quit_after_1_s", "soft", "ms", median=statistics.median(times), most=max(times), must=1500)


BENCHES = {"crowd": bench_crowd, "flood": bench_flood, "quit": bench_quit, "gmux_run": bench_run, "live_limit": bench_live, "guarantees": bench_guarantees,
           "partitions": bench_partitions}


# ---- endurance ----

def kib(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(x) for x in re.findall(r"^Private_Dirty: +(\d+) kB", text, re.M))


def holds(pid):
    """Private memory in KiB, descriptors, mappings."""
    return kib(pid), len(os.listdir(f"/proc/{pid}/fd")), pathlib.Path(f"/proc/{pid}/maps").read_text().count("\n")


def at_rest(names):
    """{name: holds(pid)} when ends of clients are over, which the server and the executor see to behind their backs: as soon as two
    readings agree in descriptors and mappings, after 10 s at most."""
    until = time.monotonic() + 10
    last, now = None, {name: holds(pid) for name, pid in names.items()}
    while time.monotonic() < until and (last is None or any(last[name][1:] != now[name][1:] for name in names)):
        time.sleep(0.1)
        last, now = now, {name: holds(pid) for name, pid in names.items()}
    return now


def endure(b, cycles, kills):
    """True if nothing has grown by more than is allowed for: what the first tenth of the cycles left is the start."""
    def the_daemon(e):
        return int(pathlib.Path(e["CUDA_MPS_PIPE_DIRECTORY"], "nvidia-cuda-mps-control.pid").read_text())

    def crowd(e, n):
        subprocess.run([b.tool("crowd"), "cycles", str(n), "4"], env=e, check=True, stdout=subprocess.DEVNULL)

    def states(e):
        """What must outlive a daemon: who is where with which limits."""
        return (ask(b, e, "namespace", "list", "--format=csv,noheader"), ask(b, e, "client", "list", "--all", "--format=csv,noheader"),
                [line.split("\t")[:5] for line in ask(b, e, "clients", str(server)).splitlines()])

    def the_same(e, wanted):
        until = time.monotonic() + 10
        while (now := states(e)) != wanted:
            if time.monotonic() > until:
                raise RuntimeError(f"the next daemon has {now}, not {wanted}")

    good = True
    with b.daemon(GMUX_DEVICE="null", CUDA_MPS_PROTOCOL_VERSION="3") as e:
        for words in ("server create training", "namespace create batch --server=training",
                      "namespace set batch --server=training --active-thread-percentage=25 --pinned-memory-limit=4G"):
            ask(b, e, *words.split())
        there = {**e, "CUDA_MPS_PIPE_DIRECTORY": e["CUDA_MPS_PIPE_DIRECTORY"] + "/training/batch"}
        stays = subprocess.Popen([b.tool("crowd"), "together", "1"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 env=there)
        stays.stdout.readline()
        server = int(ask(b, e, "server", "get", "training", "pid"))
        executor = int(pathlib.Path(f"/proc/{server}/task/{server}/children").read_text().split()[0])
        crowd(there, max(cycles // 10, 100))
        names = {"daemon": the_daemon(e), "server": server, "executor": executor}
        before = at_rest(names)
        files = sorted(os.listdir(e["CUDA_MPS_PIPE_DIRECTORY"]))
        begin = time.monotonic()
        crowd(there, cycles)
        took = time.monotonic() - begin
        after = at_rest(names)
        for name in names:
            grown = [a - n for a, n in zip(after[name], before[name])]
            fine = grown[0] <= 512 and grown[1] <= 4 and grown[2] <= 64
            good &= fine
            print(f"{cycles} clients in {took:.1f} s: {name}: memory {before[name][0]} KiB {grown[0]:+d}, descriptors "
                  f"{before[name][1]} {grown[1]:+d}, mappings {before[name][2]} {grown[2]:+d}{'' if fine else ': GREW'}")
        lasting = {name: names[name] for name in ("server", "executor")}
        before = at_rest(lasting)
        wanted = states(e)
        begin = time.monotonic()
        for _ in range(kills):
            if ask(b, e, "restart") != "Restarting\n":
                raise RuntimeError("the daemon does not start anew")
            the_same(e, wanted)
            os.kill(the_daemon(e), signal.SIGKILL)
            while True: # the lock is free once it is gone
                if subprocess.run([b.control, "-d"], env=e, check=False, stderr=subprocess.DEVNULL).returncode == 0:
                    break
            the_same(e, wanted)
        took = time.monotonic() - begin
        crowd(there, 10)
        after = at_rest(lasting)
        for name in lasting:
            grown = [a - n for a, n in zip(after[name], before[name])]
            fine = grown[0] <= 512 and grown[1] <= 4
            good &= fine
            print(f"{kills} daemons started anew and killed in {took:.1f} s: {name}: memory {grown[0]:+d} KiB, descriptors {grown[1]:+d}"
                  f"{'' if fine else ': GREW'}")
        now = sorted(os.listdir(e["CUDA_MPS_PIPE_DIRECTORY"]))
        if now != files:
            good = False
            print(f"files of the pipe directory: {files}, now {now}")
        stays.communicate()
    return good


def main():
    from run import Bench
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build")
    p.add_argument("--cycles", type=int, default=10000)
    p.add_argument("--kills", type=int, default=100)
    args = p.parse_args()
    return 0 if endure(Bench(args.build), args.cycles, args.kills) else 1


if __name__ == "__main__":
    sys.exit(main())
