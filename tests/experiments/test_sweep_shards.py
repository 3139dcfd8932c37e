"""Shards: by hand, under MPI, in a job array; merged they equal the sweep in one piece. Two runs of
one shard, a merge that lacks cases, a merge killed again and again.

ctest-timeout: 900"""

import fcntl
import os
import shutil
import signal
import subprocess
import time

import sweep_tools
from sweep_tools import Folder, check

digest, _ = sweep_tools.reference()


def merge_of_nothing():
    with Folder() as folder:
        done = folder.run("--merge")
        check(done.returncode == 3 and done.stdout == "", done.returncode, done.stdout)
        check(done.stderr.count("\n") == 1 and "no result yet" in done.stderr, done.stderr)
        check(folder.leftovers() == [], "left behind:", folder.leftovers())


def by_hand():
    with Folder() as folder:
        for shard in ("1/3", "3/3"):
            done = folder.run("--shard", shard)
            check(done.returncode == 0, shard, done.stderr)
            check(f"shard {shard}" in done.stderr, "the shard is not named:", done.stderr)
            check(not folder.file.exists(), "merged too early")
            check(done.stdout.startswith(f"shard {shard}: ") and done.stdout.count("\n") == 2,
                  "not two lines for an unfinished sweep:", done.stdout)
        done = folder.run("--merge")
        check(done.stdout == "" and done.stderr.count("\n") == 1, "not one line:", done.stdout,
              done.stderr)
        check(done.returncode == 3, "--merge of 2 of 3 shards gave", done.returncode, done.stderr)
        check("shard 2/3" in done.stderr, "--merge does not name the shard:", done.stderr)
        check(not folder.file.exists(), "merged without all cases")
        done = folder.run("--shard", "2/3")
        check(done.returncode == 0 and folder.file.exists(), done.stderr)
        check(done.stdout.startswith("format "), "the last shard prints no table:", done.stdout)
        check(folder.digest() == digest, "three shards differ from one")
        check(folder.leftovers() == [], "left behind:", folder.leftovers())
        done = folder.run("--merge")
        check(done.returncode == 0, "--merge of a whole file:", done.returncode, done.stderr)


def other_split():
    """What one split finished, another reuses."""
    with Folder() as folder:
        check(folder.run("--shard", "1/3").returncode == 0, "shard 1/3")
        done = folder.run("--shard", "1/1")
        check(done.returncode == 0 and "reused" in done.stderr, done.stderr)
        check(folder.digest() == digest, "a sweep after a shard differs")


def at_once():
    with Folder() as folder:
        runs = [folder.start("--shard", f"{i}/4", "-q") for i in (1, 2, 3, 4)]
        for run in runs:
            _, messages = run.communicate()
            check(run.returncode == 0, run.returncode, messages)
        check(folder.digest() == digest, "four shards at once differ from one")
        check(folder.leftovers() == [], "left behind:", folder.leftovers())


def under_mpi():
    if not shutil.which("mpirun"):
        print("no mpirun: not tested under MPI")
        return
    with Folder() as folder:
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = subprocess.run(["mpirun", "--oversubscribe", "-n", "3", *folder.command("-q")],
                              capture_output=True, text=True, timeout=300,
                              env=sweep_tools.environment(**root))
        if done.returncode and "run_sweep" not in done.stderr:
            print("mpirun does not work here: not tested under MPI:", done.stderr[-300:])
            return
        check(done.returncode == 0, done.returncode, done.stderr)
        check(folder.digest() == digest, "under MPI it differs")
        check(folder.leftovers() == [], "left behind:", folder.leftovers())


def in_a_job_array():
    with Folder() as folder:
        for task, shard in ((3, 2), (1, 1), (5, 3)):  # --array=1-5:2
            done = folder.run(SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_TASK_MIN="1",
                              SLURM_ARRAY_TASK_MAX="5", SLURM_ARRAY_TASK_STEP="2")
            check(done.returncode == 0, task, done.returncode, done.stderr)
            check(f"shard {shard} of 3" in done.stderr, "the shard is not named:", done.stderr)
        check(folder.digest() == digest, "as a job array it differs")


def twice():
    """The second of two runs is refused; the first is not disturbed."""
    with Folder(sweep_tools.PLAN + ["--seeds", "1:200:1"]) as folder:
        first = folder.start("-q")
        sweep_tools.wait_until(lambda: sweep_tools.worker_of(first.pid), "the first run runs")
        first.send_signal(signal.SIGSTOP)  # so that it does not end before the others are refused
        second = folder.run()
        check(second.returncode == 5, "the second run gave", second.returncode, second.stderr)
        check(f"process {first.pid}" in second.stderr, "it does not name it:", second.stderr)
        third = folder.run("--shard", "2/3")
        check(third.returncode == 5, "another split gave", third.returncode, third.stderr)
        first.kill()
        first.communicate()
        done = folder.run("-q", "--max-seconds", "0.3")  # no lock has remained
        check(done.returncode in (0, 3), done.returncode, done.stderr)


def collect_parts(folder):
    """All parts of a sweep whose merge was held up."""
    folder.parts.mkdir()
    with open(folder.parts / "2-of-1.lock", "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)  # as another shard would
        done = folder.run("-q")
        check(done.returncode == 0, done.returncode, done.stderr)
    check(not folder.file.exists(), "merged although another shard runs")
    check(folder.part_cases(), "no parts")


def merge_killed():
    chance = sweep_tools.seeded("merge")
    with Folder() as folder:
        collect_parts(folder)
        copy = folder.path / "copy"
        shutil.copytree(folder.parts, copy)
        start = time.monotonic()
        check(folder.run("--merge", "-q").returncode == 0, "--merge")
        seconds = time.monotonic() - start
        counts = {"whole": 0, "absent": 0, "half": 0}
        for _ in range(25):
            folder.clear()
            shutil.copytree(copy, folder.parts)
            merge = folder.start("--merge", "-q")
            time.sleep(chance.uniform(0.2 * seconds, 1.2 * seconds))
            merge.kill()
            merge.communicate()
            counts["half"] += (folder.path / "results.h5.tmp").exists()
            counts["whole" if folder.file.exists() else "absent"] += 1
            if folder.file.exists():
                check(folder.digest() == digest, "FILE is there, but not whole")
            done = folder.run("-q")
            check(done.returncode == 0, done.returncode, done.stderr)
            check(folder.digest() == digest, "content differs after a killed merge")
            check(folder.leftovers() == ["copy"], "left behind:", folder.leftovers())
        print(counts)


if os.environ.get("SWEEP_TEST_ONLY"):
    globals()[os.environ["SWEEP_TEST_ONLY"]]()
else:
    for test in (merge_of_nothing, by_hand, other_split, at_once, under_mpi, in_a_job_array, twice,
                 merge_killed):
        print(test.__name__, flush=True)
        test()
