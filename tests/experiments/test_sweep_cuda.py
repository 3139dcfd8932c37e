"""Backend cuda in a sweep, through the shim's module: its bytes are the emulator's, and where there is
no module, driver or device the other cases run, with a reason and exit code 5. The parent process
opens no device.

ctest-timeout: 600"""

import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess

import h5py
import numpy
from sweep_tools import RUN_SWEEP, Folder, check, environment, worker_of, write_until

BUILD = pathlib.Path(os.environ["QG_BUILD_DIR"])
MODULES = BUILD / "tests" / "bin"
SHIM = str(MODULES / "quantgauge_cuda_shim.so")
NO_LIBRARY = "/nonexistent/libcublasLt.so"
SMALL = ["--formats", "e4m3,mxfp8,nvfp4", "--level", "smoke", "--data", "normal", "--m", "1,17",
         "--k", "120,160", "--threads", "1"]
ONE = ["--formats", "mxfp8", "--rules", "rceil", "--data", "normal", "--m", "3", "--k", "64",
       "--ops", "error"]


def fake(name):
    return str(MODULES / f"fake_module_{name}.so")


def columns(folder, *names):
    with h5py.File(folder.file) as file:
        return [numpy.char.decode(c) if c.dtype.kind == "S" else c
                for c in (file[name][:] for name in names)]


def bytes_are_the_emulators():
    """Asked for by name, and by default where a device answers."""
    for backends in (["--backends", "emulator,cuda"], []):
        with Folder(SMALL + ["--ops", "error", "--inputs", "fp32,bf16,fp16"]) as folder:
            done = folder.run("-v", *backends, QG_CUDA_MODULE=SHIM, QG_CUBLASLT=NO_LIBRARY)
            check(done.returncode == 0, backends, done.returncode, done.stderr, done.stdout)
            backend, status, impl, codes, scales = columns(
                folder, "cases/backend", "cases/status", "cases/impl_used",
                "counts/code_mismatches", "counts/scale_mismatches")
            cuda = backend == "cuda"
            check(cuda.sum() == (backend == "emulator").sum() > 0, "cases", backend)
            check(set(status[cuda]) == {"PASSED"}, set(status[cuda]), done.stdout)
            check((codes[cuda] == 0).all() and (scales[cuda] == 0).all(), codes, scales)
            check({"cuda group_shared", "cuda tensor", "cuda row", "cuda block"} <= set(impl[cuda]),
                  set(impl[cuda]))
            check("group kernel: shared" in done.stderr and "too_few_ctas" in done.stderr,
                  done.stderr)
            if backends:
                check("cpu" not in backend, backend)
                run = h5py.File(folder.file)["runs/0"].attrs
                check(run["gpu"] not in ("", "none") and re.fullmatch(r"\d+\.\d", run["cuda"]) and
                      re.fullmatch(r"\d+\.\d", run["driver"]) and run["cublaslt"] == "none",
                      dict(run))
            else:
                check("cpu" in backend, backend)


def the_lever_counts():
    plan = ["--formats", "e4m3", "--layouts", "group:128", *SMALL[2:], "--ops", "error"]
    for lever, kernel in (("hopper", "cuda group_hopper"), ("shared", "cuda group_shared")):
        with Folder(plan) as folder:
            done = folder.run("-q", "--backends", "emulator,cuda", QG_CUDA_MODULE=SHIM,
                              QG_GROUP_KERNEL=lever)
            backend, status, impl = columns(folder, "cases/backend", "cases/status",
                                            "cases/impl_used")
            check(done.returncode == 0 and set(impl[backend == "cuda"]) == {kernel}, done.stderr)
            check(set(status[backend == "cuda"]) == {"PASSED"}, status)


def products_and_times():
    """Without a library the product is that of unit fp32_fma, bit for bit; no bound judges it."""
    plan = ["--formats", "e4m3,mxfp8,nvfp4", "--rules", "default", *SMALL[2:], "--backends",
            "emulator,cuda"]
    with Folder(plan + ["--ops", "gemm", "--units", "native,fp32_fma", "--layouts", "default",
                        "--n", "5", "--bias", "--out-types", "fp32,bf16"]) as folder:
        done = folder.run("-q", QG_CUDA_MODULE=SHIM, QG_CUBLASLT=NO_LIBRARY)
        check(done.returncode == 0, done.returncode, done.stderr)
        backend, unit, status, impl, digest = columns(
            folder, "cases/backend", "cases/unit", "cases/status", "cases/impl_used",
            "cases/output_digest")
        native = unit == "native"
        check((backend[native] == "cuda").all() and native.any(), backend, unit)
        check(set(status) == {"RAN"}, set(status))
        check(all(i.startswith("cuda fp32_fma: ") for i in impl[native]), set(impl[native]))
        # Rows: two references a case; plan order differs in the unit alone.
        check(sorted(digest[native]) == sorted(digest[unit == "fp32_fma"]), "bits differ")
    with Folder(plan + ["--ops", "throughput"]) as folder:
        done = folder.run("-q", QG_CUDA_MODULE=SHIM)
        check(done.returncode == 0, done.returncode, done.stderr)
        status, impl, seconds, samples = columns(folder, "cases/status", "cases/impl_used",
                                                 "timing/median_s", "timing/samples")
        check(set(status) == {"RAN"}, set(status))
        check(all(i.startswith("cuda ") for i in impl), impl)
        check((seconds > 0).all() and (samples >= 5).all(), seconds, samples)


def products_of_the_library():
    """In the library's own forms of codes and scales: the fake multiplies what it is told to."""
    library = MODULES / "fake_cublaslt.so"
    plan = ["--formats", "e4m3,mxfp8,nvfp4", "--rules", "default", "--data", "normal", "--m", "16",
            "--n", "32", "--k", "256", "--ops", "gemm", "--units", "native", "--bias", "--backends",
            "cuda"]
    for arch, layouts in (("90", {"per_tensor", "per_row", "group:128"}),
                          ("100", {"per_tensor", "group:32", "group:16"})):
        with Folder(plan) as folder:
            done = folder.run("-q", QG_CUDA_MODULE=SHIM, QG_SHIM_ARCH=arch,
                              QG_CUBLASLT=str(library))
            check(done.returncode == 0, arch, done.returncode, done.stderr)
            layout, status, impl, reference, error = columns(
                folder, "cases/layout", "cases/status", "cases/impl_used", "cases/reference",
                "metrics/rel_frobenius")
            by_library = numpy.char.startswith(impl, "cuda cublaslt: algo ")
            check(set(status) == {"RAN"}, arch, set(status))
            check(set(layout[by_library]) == layouts, arch, set(layout[by_library]))
            check(numpy.char.startswith(impl[~by_library], "cuda fp32_fma: ").all(), set(impl))
            check((error[reference == "quantized"] < 1e-6).all(), arch, error)


def absences():
    """The file holds a phrase; the message also says what to do."""
    digests = {}
    for phrase, advice, extra in (
            ("the CUDA module was not found", "no such file", {"QG_CUDA_MODULE": "/none/a.so"}),
            ("the CUDA module was not found", "no such file", {"QG_CUDA_MODULE": "b.so"}),
            ("the CUDA module was not found", "cannot be loaded", {"QG_CUDA_MODULE": __file__}),
            ("the CUDA module is of another version", "ABI", {"QG_CUDA_MODULE": fake("abi")}),
            ("no NVIDIA driver is installed", "install or update it",
             {"QG_CUDA_MODULE": SHIM, "QG_SHIM_PROBE_ERROR": "35"}),
            ("the driver library is the toolkit's stub", "LD_LIBRARY_PATH",
             {"QG_CUDA_MODULE": SHIM, "QG_SHIM_PROBE_ERROR": "34"}),
            ("the driver finds no device", "CUDA_VISIBLE_DEVICES",
             {"QG_CUDA_MODULE": SHIM, "QG_SHIM_DEVICES": "0"}),
            ("the module holds no kernels", "CMAKE_CUDA_ARCHITECTURES",
             {"QG_CUDA_MODULE": fake("no_image")}),
            ("the CUDA runtime failed", "signal 6",
             {"QG_CUDA_MODULE": fake("none"), "FAKE_MODULE_DIES": "1"})):
        with Folder(ONE) as folder:
            done = folder.run("--backends", "emulator,cuda", **extra)
            check(done.returncode == 5, phrase, done.returncode, done.stderr)
            check(done.stderr.count("backend cuda does not answer: ") == 1 and
                  advice in done.stderr, phrase, done.stderr)
            check("1 RAN, 1 UNAVAILABLE" in done.stdout, done.stdout)
            status, reason = columns(folder, "cases/status", "cases/reason")
            check(list(status) == ["RAN", "UNAVAILABLE"] and reason[1].startswith(phrase), reason)
            check(digests.setdefault(reason[1], folder.digest()) == folder.digest(),
                  "the same absence gives another content:", reason[1])
            folder.clear()
            # By default only what answers runs, and nothing is said.
            done = folder.run("-q", **extra)
            check(done.returncode == 0 and done.stderr == "", phrase, done.returncode, done.stderr)
            check(set(columns(folder, "cases/backend")[0]) == {"emulator", "cpu"}, phrase)
    check(len(digests) == 7, digests)


def required():
    with Folder(ONE) as folder:
        for backends in ([], ["--backends", "cpu"]):
            done = folder.run(*backends, QG_REQUIRE_CUDA="1", QG_CUDA_MODULE="/none/a.so")
            check(done.returncode == 5 and "QG_REQUIRE_CUDA=1" in done.stderr and
                  "/none/a.so" in done.stderr and done.stdout == "", done)
            check(not folder.file.exists() and not folder.parts.exists(), "something ran")
        for extra in ({"QG_REQUIRE_CUDA": "1", "QG_CUDA_MODULE": SHIM},
                      {"QG_REQUIRE_CUDA": "0", "QG_CUDA_MODULE": "/none/a.so"}):
            done = folder.run("-q", "--overwrite", **extra)
            check(done.returncode == 0, extra, done.stderr)


def nothing_is_opened_in_vain():
    """Loading CUDA takes up to half a second: whoever did not ask for it does not wait for it."""
    with Folder(ONE) as folder:
        trace = folder.path / "opened"
        extra = {"QG_CUDA_MODULE": fake("no_device"), "FAKE_MODULE_TRACE": str(trace)}
        plan = folder.command("-q")
        for words in ([plan[0], "--help"], [plan[0], "--list-names"], [plan[0], "--version"],
                      plan + ["--backends", "emulator,cpu"]):
            done = subprocess.run(words, capture_output=True, text=True, env=environment(**extra),
                                  timeout=60)
            check(done.returncode == 0 and not trace.exists(), words, done)
        done = folder.run("-q", "--overwrite", **extra)
        check(done.returncode == 0 and trace.exists(), "the default asks", done)


def every_worker_opens_it():
    """The device is lost with the process that opened it: the next worker opens it for itself."""
    plan = ["--formats", "mxfp8", "--rules", "rceil", "--data", "normal", "--m", "8", "--k", "512",
            "--ops", "error", "--backends", "emulator,cuda", "--seeds", "1:200:1"]
    for _ in range(5):
        with Folder(plan) as folder:
            sweep = folder.start("-q", QG_CUDA_MODULE=SHIM)
            running = write_until(sweep, lambda: any(folder.parts.glob("*.h5")), "it wrote a part")
            worker = worker_of(sweep.pid)
            if running and worker:
                os.kill(worker, signal.SIGKILL)
            _, messages = sweep.communicate(timeout=120)
            status = list(columns(folder, "cases/status")[0])
            if "CRASHED" not in status:
                continue  # it was too late
            check(sweep.returncode == 1 and status.count("CRASHED") == 1, sweep.returncode, messages)
            after = status[status.index("CRASHED") + 1:]
            check(set(after) <= {"RAN", "PASSED"}, set(after))
            if "PASSED" in after:
                return
    check(False, "no worker could be killed in five sweeps")


def places():
    """Relative to the program in a build tree and in an installed one, and to the shared library."""
    libdir = next(line.split("=")[1] for line in (BUILD / "CMakeCache.txt").read_text().splitlines()
                  if line.startswith("CMAKE_INSTALL_LIBDIR:"))
    for place in ("lib", libdir):
        with Folder(ONE) as folder:
            program = folder.path / "tree" / "bin" / "run_sweep"
            module = folder.path / "tree" / place / "quantgauge" / "quantgauge_cuda.so"
            for path, source in ((program, RUN_SWEEP), (module, fake("no_device"))):
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, path)
            command = [str(program), *folder.command("--backends", "emulator,cuda")[1:]]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60,
                                  env=environment(QG_CUDA_MODULE=""))
            check(done.returncode == 5 and "the driver finds no device" in done.stderr, place, done)
            module.unlink()
            folder.clear()
            done = subprocess.run(command, capture_output=True, text=True, timeout=60,
                                  env=environment(QG_CUDA_MODULE=""))
            check(str(module) in done.stderr and "was not found" in done.stderr, place, done)
    library = next(iter(sorted((BUILD / "lib").glob("libquantgauge.so.*.*.*"))), None)
    if library is None or b"__asan_init" in library.read_bytes():
        print("not checked: the shared library")
        return
    with Folder(ONE) as folder:
        copy = folder.path / library.name
        module = folder.path / "quantgauge" / "quantgauge_cuda.so"
        module.parent.mkdir()
        shutil.copy(library, copy)
        shutil.copy(fake("no_device"), module)
        os.environ["QG_CUDA_MODULE"] = ""
        unavailable = ctypes.CDLL(str(copy)).qg_cuda_unavailable
        unavailable.restype = ctypes.c_char_p
        check(b"the driver finds no device" in unavailable(), unavailable())


if not pathlib.Path(SHIM).exists():
    print("skipped: the shim is not built")
    raise SystemExit(77)
bytes_are_the_emulators()
the_lever_counts()
products_and_times()
products_of_the_library()
absences()
required()
nothing_is_opened_in_vain()
every_worker_opens_it()
places()
