"""Ways for GPU programs to run at the same time: natively, under NVIDIA's MPS, under gmux. For scripts that compare them.

A way is an environment and, but for the native one, a daemon of its own in private directories. Programs are started in
process groups of their own, with a deadline, and killed when it has passed: nothing here waits for ever.
"""

import dataclasses
import mmap
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

DRIVER_PLACES = ("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/nvidia/current",
                 "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib", "/run/opengl-driver/lib")
MPS_PLACES = ("/usr/local/nvidia", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/cuda", "/opt")
OURS = ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_CLIENT_PRIORITY",
        "CUDA_VISIBLE_DEVICES_MPS", "GMUX_LOG", "GMUX_TRACE", "GMUX_DEVICE", "GMUX_GENUINE_LIBCUDA", "LD_PRELOAD")


class Failed(Exception):
    """A program ended with an error or did not end in time; the text is one line for a person."""


def contains(path, word):
    try:
        with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
            return m.find(word) >= 0
    except (OSError, ValueError):
        return False


def find_driver():
    """The genuine libcuda.so.1, or None. A library of ours that lies on the search path is passed over."""
    places = [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p] + list(DRIVER_PLACES)
    try:
        cache = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, timeout=20, check=False).stdout
        places += [os.path.dirname(x.split("=>")[1].strip()) for x in cache.splitlines() if "libcuda.so.1 " in x]
    except (OSError, subprocess.SubprocessError):
        pass
    for place in places:
        path = pathlib.Path(place) / "libcuda.so.1"
        if path.is_file() and not contains(path, b"gmux_client_library"):
            return path
    return None


def find_mps():
    """NVIDIA's control program, or None, and the places that were searched."""
    name = "nvidia-cuda-mps-control"
    looked = ["PATH", *MPS_PLACES]
    found = [shutil.which(name)]
    for top in MPS_PLACES:
        depth = top.count("/") + 3
        for where, folders, files in os.walk(top):
            if where.count("/") >= depth:
                folders.clear()
            if name in files:
                found.append(os.path.join(where, name))
    for path in found:
        if path and os.access(path, os.X_OK) and not contains(path, b"gmux"):
            return pathlib.Path(path), looked
    return None, looked


def stage(build, target):
    """Copies what runs from a build tree to a place that every user may read; returns it."""
    build, target = pathlib.Path(build), pathlib.Path(target)
    for top in ("src", "bench", "examples", "tests/api"):
        for path in (build / top).rglob("*"):
            wanted = path.is_file() and (os.access(path, os.X_OK) or ".so" in path.name)
            if not wanted or ".p" in {p.suffix for p in path.parents}:
                continue
            copy = target / path.relative_to(build)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755)
    return target


@dataclasses.dataclass
class Result:
    lines: list
    seconds: float  # from its start to its end
    status: int
    errors: list = dataclasses.field(default_factory=list)  # lines of stderr

    def words(self, first):
        """The words of the line that begins so."""
        for line in self.lines:
            if line.startswith(first):
                return line.split()
        raise Failed(f"it printed no line with {first!r}")


class Program:
    """A running program. Its output is read by a thread; with a gate it waits for go() once it has said "ready"."""

    def __init__(self, argv, env, cwd=None, user=None, errors=None):
        self.name = os.path.basename(argv[-1] if argv[0].endswith("python3") and len(argv) == 2 else argv[0])
        self.lines, self.errors = [], []
        self.ready = threading.Event()
        self.begin = time.monotonic()
        self.end = None
        who = {"user": user, "group": user, "extra_groups": []} if user else {}
        self.process = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
                                        **who)
        self.threads = [threading.Thread(target=self._read, args=a, daemon=True)
                        for a in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for t in self.threads:
            t.start()

    def _read(self, pipe, lines):
        for line in pipe:
            if lines is self.lines and line == "ready\n":
                self.ready.set()
            else:
                lines.append(line.rstrip("\n"))
        if lines is self.lines:
            self.end = time.monotonic()
            self.ready.set()

    def wait_ready(self, deadline):
        """False if it ended or the time passed before it was ready."""
        return self.ready.wait(max(0.0, deadline - time.monotonic())) and self.end is None

    def go(self):
        try:
            self.process.stdin.write("\n")
            self.process.stdin.close()
        except (OSError, ValueError):
            pass

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def finish(self, deadline, check=True):
        late = False
        try:
            self.process.wait(max(0.01, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            late = True
        self.kill()  # and whatever it may have left in its group
        status = self.process.wait()
        for t in self.threads:
            t.join(2)
        seconds = (self.end or time.monotonic()) - self.begin
        if check and late:
            raise Failed(f"{self.name}: not done after {seconds:.0f} s")
        if check and status:
            last = [x for x in self.errors + self.lines if x.strip()][-1:] or [""]
            raise Failed(f"{self.name}: status {status}: {last[0][:200]}")
        return Result(self.lines, seconds, 124 if late else status, self.errors)


class Way:
    def __init__(self, name, library, control=None, device=None, options=()):
        """`library`: the folder of the libcuda.so.1 to use; `control`: the daemon's program, with `options`."""
        self.name, self.library, self.control, self.device = name, str(library), control and str(control), device
        self.options, self.dir = list(options), None

    def variant(self, name, *options):
        """The same with other options of its daemon, not started."""
        return Way(name, self.library, self.control, self.device, options)

    def env(self, **extra):
        e = {k: v for k, v in os.environ.items() if k not in OURS and not k.startswith("CUDA_MPS_")}
        rest = [p for p in e.get("LD_LIBRARY_PATH", "").split(":")
                if p and not contains(os.path.join(p, "libcuda.so.1"), b"gmux_client_library")]
        e["LD_LIBRARY_PATH"] = ":".join([self.library, *rest])
        e["CUDA_MPS_PIPE_DIRECTORY"] = f"{self.dir}/pipe" if self.dir else "/nonexistent"
        e["CUDA_MPS_LOG_DIRECTORY"] = f"{self.dir}/log" if self.dir else "/nonexistent"
        if self.device:
            e["GMUX_DEVICE"] = self.device
        e.update(extra)
        return e

    def start(self, where):
        """Starts the daemon, if this way has one, with its files under `where`."""
        if not self.control:
            return
        self.dir = pathlib.Path(where) / self.name
        for name in ("pipe", "log"):
            (self.dir / name).mkdir(parents=True)
            (self.dir / name).chmod(0o755)
        self.dir.chmod(0o755)
        with open(self.dir / "out", "w") as out:
            status = subprocess.run([self.control, "-d", *self.options], env=self.env(), stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=out, timeout=30, check=False).returncode
        if status:
            text = (self.dir / "out").read_text().strip()
            self.dir = None
            raise Failed(f"the daemon does not start: status {status}: {text[:200]}")

    def ask(self, command, timeout=20):
        """What the daemon answers."""
        return subprocess.run([self.control], input=command + "\n", env=self.env(), capture_output=True, text=True,
                              timeout=timeout, check=False).stdout

    def stop(self):
        if not self.dir:
            return
        try:
            self.ask("quit -t 2")
        except subprocess.TimeoutExpired:
            print(f"{self.name}: the daemon did not answer quit", flush=True)
        self.dir = None

    def logs(self):
        return {p.name: p.read_text(errors="replace") for p in (self.dir / "log").glob("*.log")} if self.dir else {}

    def pids(self):
        """The daemon and all that it started."""
        found = [int((self.dir / "pipe" / "nvidia-cuda-mps-control.pid").read_text())]
        for p in found:
            for task in pathlib.Path(f"/proc/{p}/task").glob("*/children"):
                found += [int(c) for c in task.read_text().split()]
        return found

    def run(self, argv, timeout, check=True, cwd=None, user=None, **extra):
        """One program from start to end."""
        p = Program(argv, self.env(**extra), cwd=cwd, user=user)
        p.go()
        return p.finish(time.monotonic() + timeout, check)

    def together(self, argv, count, timeout, cwd=None, **extra):
        """`count` copies whose timed parts begin together (EX_GATE); their results."""
        deadline = time.monotonic() + timeout
        programs = [Program(argv, self.env(EX_GATE="1", **extra), cwd=cwd) for _ in range(count)]
        try:
            for p in programs:
                p.wait_ready(deadline)  # one that failed says so below
            for p in programs:
                p.go()
            return [p.finish(deadline) for p in programs]
        finally:
            for p in programs:
                p.kill()


def ways(build, device="cuda"):
    """The ways there are on this machine, and a line for each that is missing."""
    build = pathlib.Path(build).resolve()  # programs may start elsewhere
    driver = find_driver() if device == "cuda" else None
    missing, found = [], {}
    if driver:
        found["native"] = Way("native", driver.parent)
        mps, looked = find_mps()
        if mps:
            found["mps"] = Way("mps", driver.parent, mps)
        else:
            missing.append("no nvidia-cuda-mps-control in " + ", ".join(looked))
    elif device == "cuda":
        missing.append("no genuine libcuda.so.1 here")
    found["gmux"] = Way("gmux", build / "src/client", build / "src/control/gmux-control", device)
    return found, missing
