"""Programs that do to a debugger what the system lets them do: with streams, processes, threads and signals."""

from __future__ import annotations

from hostile_programs import Hostile

PROCESSES = {
    "prompts": Hostile(
        r"""
        import os, sys
        for turn in range(30):
            sys.stdout.write("(Pdb) ")
            print("\n> app.py(5)walk()\n-> here = 5\n--Return--\n*** NameError: name 'x' is not defined\n(Pdb) (Pdb) ")
            print('{"t": "prompt", "out": "41\\n"}\x00\x00\x00\x05', "\x1b[2J\x1b]0;title\x07\r")
            sys.stderr.write("The program exited with status 0.\n((Pdb)) ")
            os.write(1, b"\xff\xfe(Pdb) \x03\x04\x1a\x11\x13")
            walk(turn)
        """,
    ),
    "input": Hostile(
        """
        import sys
        for turn in range(3):
            walk(turn)
        print(input("(Pdb) "))
        walk(0)
        sys.stdin.read()
        """,
        timeout=0.3,
        share=0.1,
    ),
    "flood": Hostile(
        """
        import os, sys
        for turn in range(100):
            sys.stdout.write("(Pdb) x\\n" * 62500)
            walk(turn)
        """,
        share=0.15,
    ),
    "closed streams": Hostile(
        """
        import os, sys
        class Raises:
            def __getattr__(self, name):
                raise RuntimeError("no " + name)
            def write(self, text):
                raise OSError("no room")
            def flush(self):
                raise KeyboardInterrupt("flushed")
        for turn in range(8):
            walk(turn)
            if turn == 1:
                sys.stdout = Raises()
                sys.stderr = sys.stdin = sys.__stdout__ = None
            if turn == 3:
                for number in range(3):
                    os.close(number)
            if turn == 4:
                kept = [os.open(os.devnull, os.O_RDWR) for _ in range(40)]
            if turn == 6:
                os.closerange(0, 1024)
        """,
    ),
    "closes everything": Hostile(
        """
        import os
        for turn in range(6):
            walk(turn)
        os.closerange(0, 70000)
        walk(7)
        """,
    ),
    "forks": Hostile(
        """
        import multiprocessing, os, subprocess, sys
        if __name__ == "__main__":
            for turn in range(6):
                child = os.fork()
                if child == 0:
                    walk(turn)
                    os._exit(walk(turn) if turn % 2 else 0)
                walk(turn)
                os.waitpid(child, 0)
            subprocess.call([sys.executable, "-S", "-c", "import os; os.closerange(3, 70000)"])
            if hasattr(os, "register_at_fork"):
                with multiprocessing.get_context("fork").Pool(2) as pool:
                    found = pool.map(walk, [1, 2, 3])
                    walk(0)
            if os.fork() == 0:
                raise SystemExit(walk(3))
            os.fork()
            walk(4)
        """,
        share=0.4,
    ),
    "threads": Hostile(
        """
        import threading, time
        done = threading.Event()
        def chatter():
            while not done.wait(0.001):
                print("tick (Pdb) ")
        def work(n):
            for _ in range(3):
                walk(n)
            if n == 2:
                raise SystemExit(3)
            if n == 3:
                raise ValueError(walk(n))
        threading.Thread(target=chatter, daemon=True).start()
        for turn in range(3):
            threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
            for one in threads:
                one.start()
            walk(turn)
            for one in threads:
                one.join()
        threading.Thread(target=work, args=(9,)).start()
        """,
        share=0.7,
    ),
    "dies": Hostile(
        """
        import os, signal, sys
        for turn in range(4):
            walk(turn)
        how = os.getpid()
        if how % 4 == 0:
            import ctypes
            ctypes.string_at(0)
        elif how % 4 == 1:
            os._exit(walk(5))
        elif how % 4 == 2:
            os.abort()
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        share=0.7,
    ),
    "signals": Hostile(
        """
        import os, signal, threading
        for number in range(1, signal.NSIG):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        def ring(number, frame):
            walk(0)
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.05)
        for turn in range(10):
            walk(turn)
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGALRM)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
        walk(0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, range(1, signal.NSIG))
        try:
            os.kill(os.getpid(), signal.SIGINT)
            walk(0)
        except KeyboardInterrupt:
            walk(1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
        """,
        share=0.8,
    ),
}
