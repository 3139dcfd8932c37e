"""Sweeps that are stopped or refused: signals, limits, a full disk, places that cannot be written,
files of other plans. What was finished stays, and the same command goes on.

ctest-timeout: 900"""

import os
import pty
import re
import signal
import subprocess
import time

import sweep_tools
from sweep_tools import Folder, check

digest, _ = sweep_tools.reference()
LONG = sweep_tools.PLAN + ["--seeds", "1:400:1"]


def resume(folder, wanted):
    done = folder.run("-q")
    check(done.returncode == 0, done.returncode, done.stderr)
    check(folder.digest() == wanted, "content differs after resuming")


def stopped_by_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with Folder() as folder:
            sweep = folder.start()
            going = sweep_tools.write_until(sweep, folder.part_cases, "a part is there")
            if going:
                sweep.send_signal(number)
                sweep.send_signal(number)  # as `timeout` does: the group is told, too
            _, messages = sweep.communicate()
            if sweep.returncode == 0:
                continue  # it was done already
            check(sweep.returncode == 3, number, "gave", sweep.returncode, messages)
            check(number.name in messages, "it does not say why:", messages)
            check(not folder.file.exists(), "an incomplete FILE was written")
            check(folder.part_cases(), number, "lost what was finished")
            resume(folder, digest)


def group_told():
    """Ctrl-C reaches worker and parent alike."""
    with Folder(LONG) as folder:
        sweep = subprocess.Popen(folder.command(), stdout=subprocess.DEVNULL, text=True,
                                 stderr=subprocess.PIPE, env=sweep_tools.environment(),
                                 start_new_session=True)
        check(sweep_tools.write_until(sweep, folder.part_cases, "a part is there"), "it ended")
        os.killpg(sweep.pid, signal.SIGINT)
        _, messages = sweep.communicate()
        check(sweep.returncode == 3, "gave", sweep.returncode, messages)
        check("CRASHED" not in messages, "the worker was hit:", messages)


def told_to_write():
    """More parts than the intervals of 2, 4, 8, ... s bring before the sweep is done."""
    with Folder(LONG) as folder:
        sweep = folder.start("-q")
        wrote = sweep_tools.write_until(sweep, lambda: len(list(folder.parts.glob("*.h5"))) >= 6,
                                        "SIGUSR1 made it write")
        check(wrote, "it ended before it had written as often as told")
        sweep.kill()
        sweep.communicate()


def written_in_time():
    """Nothing asks for it: a part after 2 s."""
    with Folder(LONG) as folder:
        sweep = folder.start("-q")
        sweep_tools.wait_until(lambda: folder.part_cases() or sweep.poll() is not None,
                               "2 s made it write", 200)
        check(sweep.poll() is None, "it ended without a part")
        sweep.kill()
        sweep.communicate()


def out_of_time():
    with Folder(LONG) as folder:
        done = folder.run("--max-seconds", "0.5")
        check(done.returncode == 3, "--max-seconds gave", done.returncode, done.stderr)
        check("--max-seconds" in done.stderr, "it does not say why:", done.stderr)
        missing, total = re.search(r"(\d+) of (\d+) cases have no result yet", done.stdout).groups()
        check(len(folder.part_cases()) == int(total) - int(missing), "lost what was finished")


def case_out_of_time():
    plan = ["--formats", "e4m3", "--layouts", "per_tensor", "--ops", "error", "--data", "normal",
            "--m", "1,4096", "--k", "4096", "--threads", "1", "--backends", "emulator"]
    with Folder(plan) as folder:
        done = folder.run("--case-timeout", "0.1")
        check(done.returncode == 3, "--case-timeout gave", done.returncode, done.stderr)
        statuses = folder.texts("status")  # a busy machine may not do the small one in time either
        check(statuses[1] == "TIMEOUT" and statuses[0] in ("RAN", "TIMEOUT"), statuses)
        done = folder.run("--case-timeout", "250")  # that case is tried again
        check(done.returncode == 0, done.returncode, done.stderr)
        check(folder.texts("status") == ["RAN", "RAN"], folder.texts("status"))


def crashing_case():
    """Whoever kills the worker: one case is CRASHED, the sweep goes on, the next run repairs it."""
    with Folder() as folder:
        sweep = folder.start()
        going = sweep_tools.write_until(sweep, folder.part_cases, "a part is there")
        worker = sweep_tools.worker_of(sweep.pid)
        if going and worker:
            os.kill(worker, signal.SIGKILL)
        _, messages = sweep.communicate()
        if sweep.returncode == 0:
            return  # it fell between two cases
        check(sweep.returncode == 1, "gave", sweep.returncode, messages)
        check(folder.texts("status").count("CRASHED") == 1, "not one case CRASHED")
        check("killed by SIGKILL (perhaps out of memory)" in folder.texts("reason"),
              folder.texts("reason"))
        resume(folder, digest)


def places():
    with Folder() as folder:
        missing = folder.path / "missing" / "results.h5"
        done = folder.run("--out", str(missing))
        check(done.returncode == 5, "a missing folder gave", done.returncode, done.stderr)
        check(done.stderr.count("\n") <= 1 and "missing" in done.stderr, done.stderr)
        if os.geteuid() != 0:
            folder.path.chmod(0o555)
            done = folder.run()
            folder.path.chmod(0o755)
            check(done.returncode == 5, "a read-only folder gave", done.returncode, done.stderr)
        done = folder.run("--out", "/proc/results.h5")
        check(done.returncode == 5, "/proc gave", done.returncode, done.stderr)


def other_results():
    with Folder() as folder:
        check(folder.run("-q").returncode == 0, "the first plan")
        other = Folder([*sweep_tools.PLAN, "--seeds", "17,18"])
        other.file = folder.file
        done = other.run()
        check(done.returncode == 2, "another plan gave", done.returncode, done.stderr)
        check("--overwrite" in done.stderr and "--reuse" in done.stderr, done.stderr)
        check(folder.digest() == digest, "FILE was touched")
        check(folder.leftovers() == [], "left behind:", folder.leftovers())
        with other:
            fresh = Folder(other.plan)
            with fresh:
                check(fresh.run("-q").returncode == 0, "the other plan")
                wanted = fresh.digest()
            done = other.run("--reuse")
            check(done.returncode == 0 and "reused" in done.stderr, done.stderr)
            check(other.digest() == wanted, "--reuse differs from a fresh sweep")
        done = folder.run("-q", "--overwrite")
        check(done.returncode == 0 and folder.digest() == digest, "--overwrite", done.stderr)
        folder.file.write_text("not a result file\n")
        done = folder.run()
        check(done.returncode == 5, "a foreign file gave", done.returncode, done.stderr)
        check(folder.file.read_text() == "not a result file\n", "the foreign file was touched")


def nothing_to_do():
    with Folder() as folder:
        check(folder.run("-q").returncode == 0, "the sweep")
        before = folder.file.stat().st_mtime_ns
        done = folder.run()
        check(done.returncode == 0, done.returncode, done.stderr)
        check("already" in done.stderr, "it does not say so:", done.stderr)
        check(folder.file.stat().st_mtime_ns == before, "FILE was written again")
        done = folder.run("-q")
        check(done.stderr == "", "-q is not quiet:", done.stderr)


def full_disk():
    with Folder(sweep_tools.PLAN + ["--seeds", "1:200:1"]) as folder:
        disk = folder.path / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)],
                                 capture_output=True, text=True)
        if mounted.returncode:
            print("no right to mount: not tested on a full disk")
            return
        try:
            done = folder.run("-q", "--out", str(disk / "results.h5"))
            check(done.returncode == 5, "a full disk gave", done.returncode, done.stderr)
            check("No space left" in done.stderr, "it does not say why:", done.stderr)
            check(done.stderr.count("\n") == 1, "more than one line:", done.stderr)
            check(not (disk / "results.h5").exists(), "FILE was written")
            check(not list(disk.rglob("*.tmp")), "temporary files are left")
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            done = folder.run("-q", "--out", str(disk / "results.h5"))
            check(done.returncode == 0, "after making room:", done.returncode, done.stderr)
        finally:
            subprocess.run(["umount", str(disk)], check=False)


def bar():
    """On a terminal one line that is redrawn and taken away; no escape codes elsewhere."""
    with Folder(LONG) as folder:
        parent, child = pty.openpty()
        start = time.monotonic()
        sweep = subprocess.Popen(folder.command(), stdout=subprocess.DEVNULL, stderr=child,
                                 env=sweep_tools.environment(TERM="xterm"))
        os.close(child)
        shown, told = b"", False
        while True:
            try:
                piece = os.read(parent, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
            if not told and shown.count(b"\r") >= 5 and b"ETA" in shown:
                sweep.send_signal(signal.SIGINT)
                told = True
        os.close(parent)
        sweep.wait()
        redrawn = shown.count(b"\r")
        most = 5 + 10 * (time.monotonic() - start)
        check(5 <= redrawn <= most, "redrawn", redrawn, "times, not at most", most, shown[-500:])
        check(b"/s" in shown and b"ETA" in shown and b"RAN" in shown, shown[-500:])
        done = folder.run("--overwrite", "--max-seconds", "0.3")
        check("\033" not in done.stderr and "\r" not in done.stderr, repr(done.stderr))


if os.environ.get("SWEEP_TEST_ONLY"):
    globals()[os.environ["SWEEP_TEST_ONLY"]]()
else:
    for test in (stopped_by_signals, group_told, told_to_write, written_in_time, out_of_time,
                 case_out_of_time, crashing_case, places, other_results, nothing_to_do, full_disk,
                 bar):
        print(test.__name__, flush=True)
        test()
