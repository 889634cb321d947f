"""Programs that end the guest, stop it, or would speak in its place: what runs in the sandbox, as data.

Each of `ATTACKS` is Python 3.6 code behind `PRELUDE`, run by a command beside the guest; the module `impostors` has
programs that have the guest's stream already.
"""

from __future__ import annotations

from collections.abc import Mapping

LITTER = "litter"
"""Where in the workspace they leave what they leave; `began` says that one ran, `failed` how it broke."""

LIE = "impostor"
"""What is in all that they say for the guest."""

PRELUDE = r"""
import ctypes, fcntl, json, os, platform, select, shutil, signal, struct, sys, time, traceback

LIE = "impostor"
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
INTEL = platform.machine() == "x86_64"
PIDFD_OPEN, PIDFD_GETFD = 434, 438
PTRACE, VM_READ, VM_WRITE = (101, 310, 311) if INTEL else (117, 270, 271)
mine = os.getpid()

def leave(name, text=""):
    os.makedirs("litter", exist_ok=True)
    with open("litter/" + name, "w") as file:
        file.write(text)

def broke(kind, error, trace):
    leave("failed", "".join(traceback.format_exception(kind, error, trace)))
sys.excepthook = broke

def system(number, *arguments):
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return libc.syscall(ctypes.c_long(number), *(given + [ctypes.c_long(0)] * (6 - len(given))))

def attempt(function, *arguments):
    try:
        return function(*arguments)
    except (OSError, ValueError):
        return None

def processes():
    return sorted((int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()),
                  reverse=True)

def frame(header, body=b"", head=None):
    head = json.dumps(header).encode() if head is None else head
    return struct.pack(">II", len(head), len(body)) + head + body

def lies():
    body = (LIE + "\n").encode()
    fields = dict(version=1, pid=1, python=[3, 6, 0], notes=[], magic="00", status=0, timed_out=False, seconds=0.0,
                  cut=0, head=len(body), known=True, real=LIE, declared="", total=1, length=len(body), entry=None,
                  text=LIE)
    entry = json.dumps([[LIE, "file", 0, 0o644, 0, None, ""]]).encode()
    frames = b""
    for number in range(40):
        kinds = ("boot",) if number == 0 else ("hello", "entries", "data", "done")
        for kind in kinds:
            frames += frame(dict(fields, id=number, t=kind), entry if kind == "entries" else body)
    return frames
LIES = lies()

def speak(descriptor, words=LIES):
    # What cannot be written at once is not waited for: there are other descriptors.
    if descriptor is None or descriptor < 0:
        return
    flags = attempt(fcntl.fcntl, descriptor, fcntl.F_GETFL)
    if flags is not None:
        attempt(fcntl.fcntl, descriptor, fcntl.F_SETFL, flags | os.O_NONBLOCK)
        attempt(os.write, descriptor, words)

def by_path(process):
    for name in attempt(os.listdir, "/proc/%d/fd" % process) or ("0", "1", "2"):
        descriptor = attempt(os.open, "/proc/%d/fd/%s" % (process, name), os.O_WRONLY | os.O_NONBLOCK)
        if descriptor is not None:
            speak(descriptor)
            attempt(os.close, descriptor)

def by_pidfd(process):
    handle = system(PIDFD_OPEN, process, 0)
    if handle >= 0:
        for number in range(8):
            taken = system(PIDFD_GETFD, handle, number, 0)
            if taken >= 0:
                speak(taken)
                attempt(os.close, taken)
        attempt(os.close, handle)

def by_trace(process):
    if system(PTRACE, 0x4206, process, 0, 0) == 0 or system(PTRACE, 16, process, 0, 0) == 0:
        by_path(process)
        by_memory(process)

def by_memory(process):
    try:
        with open("/proc/%d/maps" % process) as file:
            writable = [line.split()[0].split("-") for line in file if " rw" in line]
        with open("/proc/%d/mem" % process, "r+b", 0) as memory:
            for start, end in writable:
                memory.seek(int(start, 16))
                memory.write((LIE.encode() * 512)[:int(end, 16) - int(start, 16)])
    except (OSError, ValueError, OverflowError):
        pass

def by_writing(process):
    space = ctypes.create_string_buffer(LIE.encode() * 8)
    try:
        with open("/proc/%d/maps" % process) as file:
            writable = [int(line.split("-")[0], 16) for line in file if " rw" in line]
    except OSError:
        writable = [ctypes.addressof(space)]
    for start in writable:
        here = (ctypes.c_ulong * 2)(ctypes.addressof(space), 64)
        there = (ctypes.c_ulong * 2)(start, 64)
        system(VM_WRITE, process, here, 1, there, 1, 0)

def signalled(number):
    return lambda process: attempt(os.kill, process, number)

def helper(function):
    # Of no session and no parent that somebody would end it by.
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            try:
                function()
            except BaseException:
                broke(*sys.exc_info())
            os._exit(0)
        os._exit(0)
    os.wait()

def alone(then):
    # Kill whatever can be killed, then go on; the command itself dies of it too.
    def run():
        for _ in range(3):
            attempt(os.kill, -1, signal.SIGSTOP)
            attempt(os.kill, -1, signal.SIGKILL)
        then()
    helper(run)
    signal.pause()

def await_others(act, seconds):
    # In a tight loop, so as to be there before a new guest is out of reach.
    end = time.time() + seconds
    while time.time() < end:
        for process in processes():
            act(process)

def race(act, seconds=4):
    alone(lambda: await_others(act, seconds))

def wander(act):
    # Never the same process for long, so that who lists them first and looks at them then finds none.
    def run():
        end, known = time.time() + 60, set(processes())
        while time.time() < end:
            if os.fork():
                os._exit(0)
            for process in processes():
                if process not in known:
                    act(process)
    alone(run)

leave("began")
"""

ATTACKS: Mapping[str, str] = {
    "kills the guest": """
parent = os.getppid()
for process in processes():
    attempt(os.kill, process, signal.SIGKILL)
""",
    "kills everything, again and again": "race(signalled(signal.SIGKILL))",
    "stops everything": "attempt(os.kill, -1, signal.SIGSTOP)\nsignal.pause()",
    "stops each that comes": "race(signalled(signal.SIGSTOP))",
    "sends every signal": """
for number in range(1, signal.NSIG):
    for process in processes():
        attempt(os.kill, process, number)
race(lambda process: [attempt(os.kill, process, number) for number in (1, 2, 3, 10, 12, 14, 15, 18, 20)])
""",
    "speaks on its own descriptors": """
for descriptor in range(256):
    speak(descriptor)
""",
    "speaks on its own descriptors when all else is dead": """
def run():
    for _ in range(20):
        for descriptor in range(256):
            speak(descriptor)
        time.sleep(0.1)
alone(run)
""",
    "speaks on those of others, by path": """
for process in processes():
    by_path(process)
race(by_path)
""",
    "takes descriptors": """
for process in processes():
    by_pidfd(process)
race(by_pidfd)
""",
    "traces": """
for process in processes():
    by_trace(process)
race(by_trace)
""",
    "writes to memory by file": """
for process in processes():
    by_memory(process)
race(by_memory)
""",
    "writes to memory by system call": """
for process in processes():
    by_writing(process)
race(by_writing)
""",
    "takes, traces and stops for longer than anybody waits": """
def act(process):
    by_pidfd(process)
    by_path(process)
    by_trace(process)
race(act, 90)
""",
    "goes from one process to the next": """
def act(process):
    by_pidfd(process)
    by_path(process)
wander(act)
""",
    "goes from one process to the next, and stops what comes": "wander(signalled(signal.SIGSTOP))",
    "doubles": """
def run():
    end = time.time() + 4
    while time.time() < end:
        attempt(os.fork)
        for process in processes()[:4]:
            by_pidfd(process)
alone(run)
""",
    "doubles beside the guest": """
end = time.time() + 3
while time.time() < end:
    attempt(os.fork)
    attempt(os.setsid)
""",
    "leaves daemons": """
def run():
    for number in range(1, signal.NSIG):
        attempt(signal.signal, number, signal.SIG_IGN)
    await_others(by_pidfd, 4)
for _ in range(5):
    helper(run)
alone(run)
""",
    "changes its environment": """
environment = {"PATH": "/proc/self", "LD_PRELOAD": "/tmp/none.so", "PYTHONHOME": "/tmp", "PYTHONPATH": "litter"}
code = "import time; time.sleep(5)"
for _ in range(3):
    helper(lambda: os.execve(sys.executable, [sys.executable, "-I", "-S", "-E", "-c", code], environment))
alone(lambda: os.execve(sys.executable, [sys.executable, "-I", "-S", "-E", "-c", code], environment))
""",
    "has the guest's command line": """
code = "# debug-gym: guest\\nimport os, sys, time\\nwords = %r\\nfor _ in range(20):\\n" % (LIES,)
code += "    for descriptor in 0, 1, 2:\\n        try: os.write(descriptor, words)\\n        except OSError: pass\\n"
code += "    time.sleep(0.1)\\n"
alone(lambda: os.execv(sys.executable, [sys.executable, "-I", "-S", "-B", "-c", code]))
""",
    "replaces programs and modules": """
fake = "#!/bin/sh\\necho %s; exit 0\\n" % LIE
for place in ("litter", "/tmp", os.path.expanduser("~")):
    for name in ("python", "python3", "sh", "bash", "echo", "cat", "env"):
        path = os.path.join(place, name)
        try:
            with open(path, "w") as file:
                file.write(fake)
            os.chmod(path, 0o755)
        except OSError:
            pass
    for name in ("sitecustomize", "usercustomize", "os", "json", "encodings", "guest", "ctypes"):
        try:
            with open(os.path.join(place, name + ".py"), "w") as file:
                file.write("print(%r)\\nraise SystemExit(0)\\n" % LIE)
        except OSError:
            pass
for path in [sys.executable] + [shutil.which(name) for name in ("sh", "bash", "echo", "env")]:
    attempt(os.replace, "litter/sh", path)
    attempt(os.unlink, path)
    try:
        with open(path, "w") as file:
            file.write(fake)
    except (OSError, TypeError):
        pass
alone(lambda: None)
""",
    "a false PATH": """
for name in (".profile", ".bashrc", ".bash_profile", ".bash_env", ".pam_environment"):
    try:
        with open(os.path.join(os.path.expanduser("~"), name), "w") as file:
            file.write("PATH=$PWD/litter; echo %s; exit 0\\n" % LIE)
    except OSError:
        pass
os.environ.update(PATH="litter", BASH_ENV="litter/began", ENV="litter/began", PYTHONSTARTUP="litter/began")
alone(lambda: time.sleep(1))
""",
    "replaces what is in /tmp": """
def run():
    end = time.time() + 3
    while time.time() < end:
        for place, directories, files in os.walk("/tmp"):
            for name in files:
                try:
                    with open(os.path.join(place, name), "w") as file:
                        file.write(LIE)
                except OSError:
                    pass
                attempt(os.unlink, os.path.join(place, name))
            for name in directories:
                attempt(os.rename, os.path.join(place, name), os.path.join(place, LIE))
alone(run)
""",
    "closes its descriptors": """
os.closerange(0, 4096)
helper(lambda: time.sleep(3))
attempt(os.kill, os.getppid(), signal.SIGKILL)
time.sleep(2)
""",
    "starves and bounds the others": """
import resource
for process in processes():
    attempt(os.setpriority, os.PRIO_PROCESS, process, 19)
    attempt(os.sched_setscheduler, process, os.SCHED_IDLE, os.sched_param(0))
    for limit in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
        attempt(resource.prlimit, process, limit, (0, 0))
alone(lambda: await_others(lambda process: attempt(resource.prlimit, process, resource.RLIMIT_NOFILE, (0, 0)), 4))
""",
    "waits for the interpreter to be opened": """
def run():
    notifier = libc.inotify_init()
    libc.inotify_add_watch(notifier, os.path.realpath(sys.executable).encode(), 0x20)
    end = time.time() + 4
    while time.time() < end:
        if select.select([notifier], [], [], 0.2)[0]:
            os.read(notifier, 4096)
            for process in processes():
                by_pidfd(process)
                by_path(process)
alone(run)
""",
    "fills the table of processes": """
def run():
    for _ in range(5000):
        try:
            if os.fork() == 0:
                time.sleep(4)
                os._exit(0)
        except OSError:
            break
    await_others(by_pidfd, 3)
alone(run)
""",
}
"""What a command does to the guest, its keepers, and the guest that comes after it."""


def attack(name: str) -> str:
    """The program of one of `ATTACKS`."""
    return PRELUDE + ATTACKS[name]
