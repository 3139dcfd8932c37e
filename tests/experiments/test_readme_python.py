"""Every Python block of the README runs, in a folder with the results that it reads, and prints
something."""

import os
import pathlib
import re
import subprocess
import sys

from sweep_tools import Folder, check

readme = pathlib.Path(os.environ["QG_SOURCE_DIR"]) / "README.md"
blocks = re.findall(r"^```python\n(.*?)^```$", readme.read_text(), re.M | re.S)
check(len(blocks) >= 2, "the README has fewer Python blocks than it had:", len(blocks))

with Folder(["--formats", "e4m3,mxfp8", "--ops", "error", "--level", "smoke"]) as folder:
    done = folder.run("-q")
    check(done.returncode == 0, "the sweep failed:", done.stderr)
    for block in blocks:
        done = subprocess.run([sys.executable, "-c", block], cwd=folder.path, capture_output=True,
                              text=True)
        check(done.returncode == 0, block, done.stderr)
        check("mxfp8" in done.stdout or "rceil" in done.stdout, block, done.stdout)
print(f"{len(blocks)} blocks")
