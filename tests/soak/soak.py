#!/usr/bin/env python3
"""Twenty programs that keep data on the software device and check it, while everything around them is killed, stopped,
removed and used up at random. Afterwards not a word was wrong, nobody has lost anything that was not in flight, and
nothing has grown.

    soak.py BUILD [--seconds T] [--seed N] [--clients N] [--users N]

Rounds of some seconds follow each other. In a *steady* one only programs die and are stopped, so that the same daemon,
server and executor are there afterwards: what they hold is compared. In a *wild* one it is the turn of all. A round ends
with all programs asked to check everything a last time and to end; then nobody may be charged for anything.

Who may lose what: a program whose work was in flight when its executor was killed, or that gave it work before its server
had noticed, all programs of a server that was
killed, and one that was about to connect to somebody who was killed or stopped. Nobody else, and nobody when something
was only stopped.

With --users the programs are those of so many users, who share one server (gmux-control -M). Needs root.
"""
import argparse
import ctypes
import mmap
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

ROUND_S = 5.0
BOUND_S = 60.0  # for everything that is waited for
SLOT = 64
FIRST_USER = 61000
FIELDS = ("stop", "started", "attached", "began", "failed", "result", "words", "pad")
LOG_BYTES = 1 << 20  # of the file system that the logs are on
GROWTH = {"gmux-control": 256 << 10, "gmux-server": 1 << 20, "gmux-executor": 8 << 20}  # caches, arenas of threads


class Failed(Exception):
    pass


def wait_until(what, true):
    end = time.monotonic() + BOUND_S
    while not true():
        if time.monotonic() > end:
            raise Failed(f"not within {BOUND_S:.0f} s: {what}")
        time.sleep(0.01)


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


class Events:
    """What was done to whom, and when."""

    def __init__(self):
        self.spans = {}
        self.dying = []  # (pid, span): whose parent has not noticed yet

    def add(self, kind, began, dies=None):
        span = [began, time.monotonic_ns() if dies is None else sys.maxsize]
        self.spans.setdefault(kind, []).append(span)
        if dies is not None:
            self.dying.append((dies, span))

    def notice(self):
        for pid, span in self.dying[:]:
            if not os.path.exists(f"/proc/{pid}"):
                self.dying.remove((pid, span))
                span[1] = time.monotonic_ns()

    def within(self, kinds, begin, end):
        return any(b <= end and e >= begin for k in kinds for b, e in self.spans.get(k, []))

    def counts(self):
        return ", ".join(f"{len(s)} x {k}" for k, s in sorted(self.spans.items()))


class Soak:
    def __init__(self, args):
        self.build = os.path.abspath(args.build)
        self.random = random.Random(args.seed)
        self.clients = args.clients
        self.users = args.users
        self.directory = tempfile.mkdtemp(prefix="gmux-soak-")
        os.chmod(self.directory, 0o755)
        self.pipe, self.log = self.directory + "/pipe", self.directory + "/log"
        os.mkdir(self.log)
        self.small_disk = mount_small(self.log)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("GMUX_", "CUDA_"))}
        self.env |= {
            "CUDA_MPS_PIPE_DIRECTORY": self.pipe,
            "CUDA_MPS_LOG_DIRECTORY": self.log,
            "GMUX_DEVICE": "soft",
            "GMUX_GENUINE_LIBCUDA": "none",
            "LD_LIBRARY_PATH": f"{self.build}/src/client:{self.build}/src/device/soft",
        }
        # The address sanitizer keeps what was freed for a while, which is no growth of ours.
        quarantine = "quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
        self.env["ASAN_OPTIONS"] = ":".join(filter(None, (self.env.get("ASAN_OPTIONS"), quarantine)))
        with open(self.directory + "/slots", "w+b") as f:
            f.truncate(SLOT * (self.clients + 2))
            self.slots = mmap.mmap(f.fileno(), 0)
            os.fchmod(f.fileno(), 0o666)  # for all users
        self.processes = {}  # slot: Popen
        self.stopped = {}  # pid: when it goes on
        self.events = Events()
        self.words = self.lost = self.ended = 0
        self.last_kill = 0.0
        self.daemon = None

    # --- programs ---------------------------------------------------------------------------------------------

    def slot(self, i):
        return dict(zip(FIELDS, struct.unpack_from("<8Q", self.slots, SLOT * i)))

    def set(self, i, field, value):
        struct.pack_into("<Q", self.slots, SLOT * i + 8 * FIELDS.index(field), value)

    def start_client(self, i, *more):
        self.slots[SLOT * i : SLOT * (i + 1)] = bytes(SLOT)
        self.set(i, "started", time.monotonic_ns())
        user = FIRST_USER + i % self.users if self.users else None
        out = open(f"{self.directory}/out.{i}", "wb")
        self.processes[i] = subprocess.Popen(
            [f"{self.build}/tests/soak/keeper", self.directory + "/slots", str(i), str(self.random.getrandbits(40)), *more],
            env=self.env, stdout=out, stderr=subprocess.STDOUT, user=user, group=user,
            extra_groups=[] if self.users else None)
        out.close()

    def may_lose(self, s):
        """Whether what was done to others explains that the program in this slot got an error."""
        connected = s["attached"] or s["failed"]
        return (
            self.events.within(["executor killed"], s["began"] or s["failed"], s["failed"])
            or self.events.within(["server killed", "daemon ended"], s["started"], s["failed"])
            or (not s["attached"] and self.events.within(list(self.events.spans), s["started"], connected)))

    def reap(self, final=False):
        """Looks at programs that have ended; starts others in their place."""
        self.events.notice()
        for i, p in list(self.processes.items()):
            if p.poll() is None:
                continue
            s = self.slot(i)
            out = read(f"{self.directory}/out.{i}").decode(errors="replace")
            self.words += s["words"]
            self.ended += 1
            del self.processes[i]
            self.stopped.pop(p.pid, None)
            if p.returncode == 3 and not self.may_lose(s):
                raise Failed(f"program {p.pid} got an error although nothing of it was in flight: {out}{s}")
            if p.returncode not in (0, 3, -signal.SIGKILL):
                raise Failed(f"program {p.pid} ended with {p.returncode}: {out}")
            self.lost += p.returncode == 3
            if not final and i <= self.clients:
                self.start_client(i)

    # --- ours -------------------------------------------------------------------------------------------------

    def ours(self):
        """pid: name of every process of ours that belongs to this directory."""
        found = {}
        tag = f"CUDA_MPS_PIPE_DIRECTORY={self.pipe}\0".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                name = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            except OSError:
                continue
            if name in GROWTH and tag in read(f"/proc/{pid}/environ") + b"\0":
                found[int(pid)] = name
        return found

    def of_name(self, name):
        return [pid for pid, n in sorted(self.ours().items()) if n == name]

    def start_daemon(self):
        options = ["-f", "-M"] if self.users else ["-f"]
        self.daemon = subprocess.Popen([f"{self.build}/src/control/gmux-control", *options], env=self.env,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until("the daemon listens", lambda: os.path.exists(self.pipe + "/control"))

    def signal(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    # --- what is done to them -----------------------------------------------------------------------------------

    def kill(self, name):
        victims = self.of_name(name)
        began = time.monotonic_ns()
        if victims:
            victim = self.random.choice(victims)
            self.signal(victim, signal.SIGKILL)
            self.events.add(name.removeprefix("gmux-") + " killed", began, victim)

    def kill_executor(self):
        # Two deaths in a row cost a program whose module was being loaded meanwhile: it is the likely cause.
        if time.monotonic() - self.last_kill > 2:
            self.kill("gmux-executor")
            self.last_kill = time.monotonic()

    def kill_server(self):
        self.kill("gmux-server")

    def kill_daemon(self):
        began = time.monotonic_ns()
        self.daemon.kill()
        self.daemon.wait()
        self.events.add("daemon killed", began)
        self.start_daemon()

    def remove_directory(self):
        began = time.monotonic_ns()
        shutil.rmtree(self.pipe, ignore_errors=True)
        self.daemon.terminate()
        self.signal(self.daemon.pid, signal.SIGCONT)
        self.stopped.pop(self.daemon.pid, None)
        wait_until("the daemon ends whose directory was removed", lambda: self.daemon.poll() is not None)
        self.events.add("daemon ended", began)
        self.start_daemon()

    def stop(self, pids, kind):
        if not pids:
            return
        pid = self.random.choice(pids)
        began = time.monotonic_ns()
        self.signal(pid, signal.SIGSTOP)
        self.stopped[pid] = time.monotonic() + self.random.uniform(0.01, 0.7)
        self.events.add(kind + " stopped", began)

    def go_on(self, all_of_them=False):
        for pid, until in list(self.stopped.items()):
            if all_of_them or time.monotonic() > until:
                del self.stopped[pid]
                self.signal(pid, signal.SIGCONT)

    def kill_client(self):
        p = self.random.choice(list(self.processes.values()))
        began = time.monotonic_ns()
        p.kill()
        self.events.add("program killed", began)

    def flood(self):
        """Descriptors: more connections than the daemon may have, which say nothing."""
        began = time.monotonic_ns()
        held = []
        for _ in range(300):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.setblocking(False)
            held.append(s)
            try:
                s.connect(self.pipe + "/control")
            except OSError:
                break
        for s in held:
            s.close()
        self.events.add("flood", began)

    def hog(self):
        """Memory, and everything else that there is a number of."""
        if self.clients + 1 not in self.processes:
            began = time.monotonic_ns()
            self.start_client(self.clients + 1, "hog")
            self.events.add("hog", began)

    def fill_disk(self):
        if not self.small_disk:
            return
        began = time.monotonic_ns()
        path = self.log + "/full"
        try:
            with open(path, "wb", buffering=0) as f:
                while f.write(bytes(1 << 16)):
                    pass
        except OSError:
            pass
        self.filled = time.monotonic() + 0.3
        self.events.add("disk full", began)

    def empty_disk(self):
        if getattr(self, "filled", None) and time.monotonic() > self.filled:
            os.unlink(self.log + "/full")
            self.filled = None

    def trim_logs(self):
        """As log rotation does."""
        for name in ("control.log", "server.log"):
            if os.path.exists(f"{self.log}/{name}") and os.path.getsize(f"{self.log}/{name}") > LOG_BYTES // 8:
                os.truncate(f"{self.log}/{name}", 0)

    def act(self, wild):
        clients = [p.pid for p in self.processes.values()]
        actions = [
            (30, self.kill_client),
            (20, lambda: self.stop(clients, "program")),
        ]
        if wild:
            actions += [
                (8, self.kill_executor),
                (3, self.kill_server),
                (2, self.kill_daemon),
                (1, self.remove_directory),
                (5, lambda: self.stop(self.of_name("gmux-executor"), "executor")),
                (4, lambda: self.stop(self.of_name("gmux-server"), "server")),
                (4, lambda: self.stop([self.daemon.pid], "daemon")),
                (3, self.flood),
                (3, self.hog),
                (3, self.fill_disk),
            ]
        weights, functions = zip(*actions)
        self.random.choices(functions, weights)[0]()

    # --- rounds -----------------------------------------------------------------------------------------------

    def run_round(self, seconds, wild):
        self.set(0, "stop", 0)
        for i in range(1, self.clients + 1):
            self.start_client(i)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0.005, 0.1))
            self.reap()
            self.act(wild)
            self.go_on()
            self.empty_disk()
            self.trim_logs()
        self.set(0, "stop", 1)
        self.go_on(all_of_them=True)
        if getattr(self, "filled", None):
            self.filled = 1
            self.empty_disk()

        def all_ended():
            self.reap(final=True)
            return not self.processes
        wait_until("all programs have checked all they have", all_ended)

    def charges(self, server):
        """What the server says when it is asked: {quantity: amount}, and the number of its sessions."""
        log = self.log + "/server.log"
        at = len(read(log))
        self.signal(server, signal.SIGUSR1)
        text = ""

        def said():
            nonlocal text
            text = read(log)[at:].decode(errors="replace")
            return "Charged imported_bytes" in text
        wait_until(f"server {server} says what it has charged", said)
        charges = {m[1]: int(m[2]) for m in re.finditer(r"Charged (\w+): (\d+)", text)}
        charges["clients"] = int(re.search(r"Sessions: (\d+)", text)[1])
        return charges

    def settle(self):
        """Nobody is left: nothing is charged, and all that is there is one of each. {pid: (name, descriptors, bytes)}"""
        self.trim_logs()

        def one_of_each():  # and none that is ending because its daemon was killed while it had no clients
            if set(self.of_name("gmux-server")) - self.listed():
                return False
            names = sorted(self.ours().values())
            return names in (["gmux-control"], ["gmux-control", "gmux-executor", "gmux-server"])
        wait_until("servers without clients have ended", one_of_each)
        for server in self.of_name("gmux-server"):
            wait_until("nothing is charged", lambda: not any(self.charges(server).values()))
        return {pid: (name, self.descriptors(pid), self.private_bytes(pid)) for pid, name in self.ours().items()}

    def listed(self):
        """Servers that the daemon has: its own, and those that came back from one that was killed."""
        done = subprocess.run([f"{self.build}/src/control/gmux-control", "get_server_list"], env=self.env,
                              capture_output=True, text=True, timeout=BOUND_S, check=False)
        return {int(pid) for pid in done.stdout.split() if pid.isdigit()}

    @staticmethod
    def descriptors(pid):
        return len(os.listdir(f"/proc/{pid}/fd"))

    @staticmethod
    def private_bytes(pid):
        return 1024 * sum(map(int, re.findall(rb"Private_\w+:\s+(\d+)", read(f"/proc/{pid}/smaps_rollup"))))

    def compare(self, before, after):
        for pid, (name, descriptors, size) in after.items():
            if pid not in before:
                raise Failed(f"{name} {before} has ended in a steady round")
            wait_until(f"{name} has no more than {before[pid][1]} descriptors",
                       lambda pid=pid: self.descriptors(pid) <= before[pid][1])
            if size > before[pid][2] + GROWTH[name]:
                raise Failed(f"{name} has grown from {before[pid][2]} to {size} bytes")

    def files(self):
        shared = [name for name in os.listdir("/dev/shm") if "gmux" in name]
        return sorted(os.listdir(self.pipe)) + sorted(os.listdir(self.log)) + shared

    def run(self, seconds):
        end = time.monotonic() + seconds
        self.start_daemon()
        files, rounds = None, 0
        while time.monotonic() < end or rounds < 2:
            self.run_round(0.5, False)  # starts what the last round has ended, and fills caches
            before = self.settle()
            files = files or self.files()
            for wild in (False, True):
                self.run_round(min(ROUND_S, max(seconds / 4, 1.0)), wild)
                after = self.settle()
                if not wild:
                    self.compare(before, after)
                if self.files() != files:
                    raise Failed(f"files were {files} and are {self.files()}")
                rounds += 1
            print(f"{rounds} rounds, {self.ended} programs, {self.words} words right, {self.lost} lost what was in flight",
                  flush=True)
        print(self.events.counts() + ("" if self.small_disk else " (no small disk to fill: mount is not permitted)"))

    def clean(self):
        for p in self.processes.values():
            p.kill()
        self.go_on(all_of_them=True)
        for pid in self.ours():
            self.signal(pid, signal.SIGKILL)
        if self.small_disk:
            subprocess.run(["umount", "-l", self.log], check=False)  # who was killed may not be gone yet
        shutil.rmtree(self.directory, ignore_errors=True)


def mount_small(path):
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={LOG_BYTES}", "none", path], stderr=subprocess.DEVNULL,
                          check=False)
    return done.returncode == 0


def own_mounts():
    """A mount namespace of our own, if that may be: what is mounted here is gone with us."""
    CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) == 0:
        libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("build")
    p.add_argument("--seconds", type=float, default=3600)
    p.add_argument("--seed", type=int, default=None)
    p.add_argument("--clients", type=int, default=20)
    p.add_argument("--users", type=int, default=0)
    args = p.parse_args()
    args.seed = random.SystemRandom().getrandbits(32) if args.seed is None else args.seed
    print(f"seed {args.seed}", flush=True)
    if args.users and os.geteuid() != 0:
        print("skipped: several users are only root's to be")
        return 77
    own_mounts()
    soak = Soak(args)
    try:
        soak.run(args.seconds)
    except Failed as e:
        print(f"FAILED (seed {args.seed}): {e}")
        print(soak.events.counts())
        print(read(soak.log + "/server.log")[-6000:].decode(errors="replace"))
        print(read(soak.log + "/control.log")[-3000:].decode(errors="replace"))
        return 1
    finally:
        soak.clean()
    return 0


if __name__ == "__main__":
    sys.exit(main())
