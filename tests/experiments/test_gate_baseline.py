"""This project's own gates in its own CI: the sweep of experiments/plans/gate_smoke.plan against
reports/gates.tsv and reports/baselines/smoke.tsv. Every verdict must be PASS: a change of bytes is a
change of meaning, and is made with `run_gate --update-baseline` and reviewed as a diff.

ctest-labels: nosan
ctest-timeout: 300"""

import json
import os
import pathlib
import subprocess
import time

from sweep_tools import Folder, check

SOURCE = pathlib.Path(os.environ["QG_SOURCE_DIR"])
RUN_GATE = pathlib.Path(os.environ["QG_BIN_DIR"]) / "run_gate"

with Folder(["--plan", str(SOURCE / "experiments/plans/gate_smoke.plan")]) as folder:
    start = time.monotonic()
    done = folder.run("-q")
    check(done.returncode == 0, "the sweep failed:", done.stderr)
    swept = time.monotonic()
    baseline = SOURCE / "reports/baselines/smoke.tsv"
    done = subprocess.run([RUN_GATE, "--baseline", baseline, folder.file], capture_output=True,
                          text=True)
    print(done.stdout)
    check(done.returncode == 0, "run_gate:", done.returncode, done.stderr)
    check(done.stdout.splitlines()[-1].startswith("PASS: "), "no PASS")
    check(" NEW" not in done.stdout and " MISSING" not in done.stdout, "the baseline is not whole")
    print(f"sweep {swept - start:.1f} s, gates {time.monotonic() - swept:.1f} s")

    # Written again from the same results it is the same file, to the byte.
    again = folder.path / "again.tsv"
    done = subprocess.run([RUN_GATE, "--update-baseline", "--baseline", again, folder.file],
                          capture_output=True, text=True)
    check(done.returncode == 0, "update:", done.returncode, done.stderr)
    check(again.read_bytes() == baseline.read_bytes(), "the baseline is written differently")
    done = subprocess.run([RUN_GATE, "--update-baseline", "--baseline", again, folder.file],
                          capture_output=True, text=True)
    check("0 rows added, 0 removed, 0 changed" in done.stdout, done.stdout)

    # Without --baseline it is the one that is found.
    done = subprocess.run([RUN_GATE, "--format", "json", folder.file], capture_output=True, text=True)
    check(done.returncode == 0 and "smoke.tsv" in done.stderr, done.stderr)
    found = json.loads(done.stdout)
    check(found["verdict"] == "PASS" and found["baseline"].endswith("smoke.tsv"), found["verdict"])
