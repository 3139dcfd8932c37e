"""What the tests of interrupted sweeps share: starting run_sweep, reading its files, checking that
nothing is lost. Not a test itself."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import h5py

RUN_SWEEP = pathlib.Path(os.environ["QG_BIN_DIR"]) / "run_sweep"
LAUNCHER_WORDS = ("OMPI_", "PMI_", "PMIX_", "SLURM_")
# A second or two of small cases; all of them RAN.
PLAN = ["--formats", "e4m3,mxfp8,nvfp4", "--ops", "error", "--data", "normal", "--m", "1,17",
        "--k", "120,1024", "--seeds", "1:16:1", "--threads", "1", "--backends", "emulator"]


def check(condition, *words):
    if not condition:
        print("FAILED:", *words)
        sys.exit(1)


def environment(**extra):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_WORDS)}
    return {**kept, **extra}


class Folder:
    """A scratch folder with one result file."""

    def __init__(self, plan=PLAN):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="sweep_test."))
        self.plan = plan
        self.file = self.path / "results.h5"
        self.parts = self.path / "results.h5.parts"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def command(self, *more):
        return [str(RUN_SWEEP), *self.plan, "--out", str(self.file), *more]

    def start(self, *more, **extra):
        return subprocess.Popen(self.command(*more), stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, env=environment(**extra))

    def run(self, *more, **extra):
        return subprocess.run(self.command(*more), capture_output=True, text=True,
                              env=environment(**extra), timeout=300)

    def clear(self):
        self.file.unlink(missing_ok=True)
        shutil.rmtree(self.parts, ignore_errors=True)

    def digest(self):
        """Of the whole FILE."""
        with h5py.File(self.file) as file:
            check(file.attrs["complete"] == 1, self.file, "is not complete")
            return file.attrs["content_digest"]

    def texts(self, column):
        """A column of /cases in the whole FILE."""
        with h5py.File(self.file) as file:
            return [text.decode() for text in file["cases/" + column][:]]

    def part_cases(self):
        """The ids of the cases in the parts: every part must be whole."""
        cases = set()
        for path in self.parts.glob("*.h5"):
            try:
                with h5py.File(path) as file:
                    cases.update(int(i) for i in file["cases/case_id"][:])
            except FileNotFoundError:
                pass  # merged and removed in between
        return cases

    def leftovers(self):
        return sorted(p.name for p in self.path.iterdir() if p != self.file)


def reference(plan=PLAN):
    """Content digest and seconds of the sweep without interruption."""
    with Folder(plan) as folder:
        start = time.monotonic()
        done = folder.run("-q")
        seconds = time.monotonic() - start
        check(done.returncode == 0, "the sweep failed:", done.stderr)
        check(folder.leftovers() == [], "left behind:", folder.leftovers())
        return folder.digest(), seconds


def worker_of(pid):
    """The worker of a sweep, 0 if it has none."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return int(children[0]) if children else 0


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, "waited in vain until", what)
        time.sleep(0.005)


def write_until(sweep, condition, what):
    """Makes a sweep write parts (SIGUSR1) until the condition holds. False if it ended before."""
    def holds():
        if worker_of(sweep.pid):  # its handlers are in place
            sweep.send_signal(signal.SIGUSR1)
        return sweep.poll() is not None or condition()
    wait_until(holds, what, 200)
    return sweep.poll() is None


def kill_at(sweep, folder, chance):
    """Kills a sweep after some progress, then a moment later: at once, in its start, between or in
    the writing of parts, in the merge. What the machine does beside it only shifts the moment."""
    moment = chance.choice(["start", "worker", "parts", "parts", "parts", "merge"])
    before = {p.name for p in folder.parts.glob("*.h5")}
    wanted = chance.randrange(1, 4)
    temporary = folder.path / "results.h5.tmp"
    if moment == "start":
        time.sleep(chance.uniform(0, 0.05))
    elif moment == "worker":
        wait_until(lambda: worker_of(sweep.pid) or sweep.poll() is not None, "it runs")
    elif moment == "parts":
        write_until(sweep, lambda: len({p.name for p in folder.parts.glob("*.h5")} - before) >=
                    wanted, "it wrote parts")
        time.sleep(chance.uniform(0, 0.05))
    else:
        wait_until(lambda: temporary.exists() or sweep.poll() is not None, "it merges", 200)
    worker, merging = worker_of(sweep.pid), temporary.exists()
    sweep.kill()
    _, messages = sweep.communicate()
    return worker, merging, messages


def kill_often(kills, chance, digest=None, plan=PLAN, finishes=None):
    """Kills a sweep at moments of its progress, `kills` times, and lets it resume until it is done,
    as often as that takes or `finishes` times. How many kills hit what is printed, not checked: that
    is chance. digest: of the plan's content where it is known."""
    digest = digest or reference(plan)[0]
    finishes = finishes or 10 * kills
    counts = {"killed": 0, "finished": 0, "with parts": 0, "in the merge": 0}
    with Folder(plan) as folder:
        known = set()
        while counts["killed"] < kills and counts["finished"] < finishes:
            sweep = folder.start("-q")
            worker, merging, messages = kill_at(sweep, folder, chance)
            code = sweep.returncode
            if code == 0:
                counts["finished"] += 1
                check(folder.digest() == digest, "content differs after resuming")
                check(folder.leftovers() == [], "left behind:", folder.leftovers())
                folder.clear()
                known = set()
                continue
            check(code == -signal.SIGKILL, "the sweep failed with", code, messages)
            counts["killed"] += 1
            counts["in the merge"] += merging
            if folder.file.exists():
                check(folder.digest() == digest, "FILE is there, but not whole")
            else:
                cases = folder.part_cases()
                check(known <= cases, "written cases are lost")
                known = cases
                counts["with parts"] += bool(cases)
            if worker and chance.random() < 0.3:
                wait_until(lambda: not is_alive(worker), "the worker ended with its parent")
        done = folder.run("-q")
        check(done.returncode == 0, "the last run failed:", done.stderr)
        check(folder.digest() == digest, "content differs after resuming")
        check(folder.leftovers() == [], "left behind:", folder.leftovers())
    print(counts)


def seeded(text):
    """Random moments that can be repeated: SWEEP_TEST_SEED."""
    seed = os.environ.get("SWEEP_TEST_SEED", str(random.randrange(10**9)))
    print("SWEEP_TEST_SEED =", seed)
    return random.Random(text + seed)
