"""Products obey the laws of error analysis: the noise of a product follows from that of its operands,
and accumulation error grows with K as the accumulator's rounding says. Plans of experiments/plans,
smaller in K. Limits are derived where they stand.

ctest-timeout: 600"""

import math
import os
import pathlib

import h5py
import numpy
from sweep_tools import Folder, check

PLANS = pathlib.Path(os.environ["QG_SOURCE_DIR"]) / "experiments" / "plans"


def measure(plan, *more):
    """The columns that the laws are about, of a plan's sweep."""
    with Folder(["--plan", str(PLANS / plan), "--backends", "emulator", *more]) as folder:
        done = folder.run("-q")
        check(done.returncode == 0, plan, done.returncode, done.stderr)
        with h5py.File(folder.file) as file:
            rows = {name: file["cases/" + name][:] for name in
                    ("op", "format", "unit", "data", "k", "seed", "reference")}
            for name in ("qsnr_db", "shrinkage", "rel_frobenius", "bias_rel", "backward_error"):
                rows[name] = file["metrics/" + name][:]
    return rows


def pick(rows, column, **wanted):
    chosen = numpy.ones(len(rows["op"]), bool)
    for name, value in wanted.items():
        chosen &= rows[name] == (value.encode() if isinstance(value, str) else value)
    check(chosen.any(), "no rows with", wanted)
    return rows[column][chosen]


def noise_of_a_product_is_that_of_its_operands():
    rows = measure("product_identity.plan", "--k", "32,512")
    for name in ("mxfp8", "mxfp4", "nvfp4"):
        for k in (32, 512):
            r = 10 ** (-pick(rows, "qsnr_db", op="error", format=name, k=k) / 10)
            s = pick(rows, "shrinkage", op="error", format=name, k=k)
            got = 10 ** (-pick(rows, "qsnr_db", op="gemm", format=name, k=k,
                               reference="source") / 10)
            law = 1 - 2 * (1 + s) ** 2 + (1 + 2 * s + r) ** 2
            # Both sides have a sampling error; b's operand error is known through a's law alone,
            # so it counts twice. 5 standard errors: once in 10^6.
            spread = math.sqrt((got.var(ddof=1) + 2 * law.var(ddof=1)) / len(got))
            away = (got.mean() - law.mean()) / spread
            print(f"{name} k={k}: {-10 * math.log10(got.mean()):.3f} dB, law "
                  f"{-10 * math.log10(law.mean()):.3f} dB, {away:+.2f} standard errors")
            check(abs(away) < 5, name, k, got.mean(), law.mean(), spread)
            # Without the law's cross terms (independent noises alone) it would be 2 r + r^2.
            check(4.343 * spread / law.mean() < 0.2, "too few samples to tell")


def slope(rows, column, **wanted):
    error, k = pick(rows, column, **wanted), pick(rows, "k", **wanted)
    return numpy.polyfit(numpy.log(k), numpy.log(error), 1)[0]


def error_grows_as_the_accumulator_rounds():
    rows = measure("accumulation.plan", "--k", "256:16384:*4")
    exact = {"op": "gemm", "reference": "quantized"}
    fp32 = {**exact, "format": "fp32", "unit": "fp32_sequential"}
    bf16 = {**exact, "format": "fp32", "unit": "bf16_sequential"}
    zero_mean, positive = {"data": "normal"}, {"data": "uniform:1:abs"}

    # Round to nearest: relative Frobenius error 0.4247 u sqrt(K/2), mean zero; 64 x 64 outputs of
    # chi-squared noise leave 2 %, the octave average 3 %.
    for u, unit in ((2.0 ** -24, fp32), (2.0 ** -8, bf16)):
        k = pick(rows, "k", **unit, **zero_mean)
        error = pick(rows, "rel_frobenius", **unit, **zero_mean)
        # BF16 leaves the law as more and more addends lie below half an ulp of the sum.
        small = error < 0.05
        law = 0.4247 * u * numpy.sqrt(k / 2)
        check((abs(error[small] / law[small] - 1) < 0.07).all(), unit, error / law)
    # Positive: 0.4247 u sqrt(K/3) averaged over an octave, 0.218 to 0.259 u sqrt(K) within it.
    scaled = pick(rows, "rel_frobenius", **fp32, **positive) / (
        2.0 ** -24 * numpy.sqrt(pick(rows, "k", **fp32, **positive)))
    check(((scaled > 0.20) & (scaled < 0.27)).all(), "fp32, positive:", scaled)

    # BF16 stagnates once the sum exceeds 2^8 addends: what is lost then is all that follows.
    lost = pick(rows, "rel_frobenius", **bf16, **positive)
    check(numpy.allclose(lost[1:], (0.215, 0.750, 0.9375), rtol=0.05), "bf16, positive:", lost)

    # Truncation of the running sum is biased: slope 1 in both, RN 1/2.
    rtz = {**exact, "format": "fp32", "unit": "fp32_sequential+rtz"}
    for unit, data, low, high in ((fp32, zero_mean, 0.45, 0.55), (fp32, positive, 0.45, 0.55),
                                  (rtz, zero_mean, 0.95, 1.05), (rtz, positive, 0.95, 1.05)):
        got = slope(rows, "rel_frobenius", **unit, **data)
        check(low < got < high, unit, data, "slope", got)
    bias = pick(rows, "bias_rel", **rtz, **positive)
    error = pick(rows, "rel_frobenius", **rtz, **positive)
    check((bias < 0).all() and (abs(bias / error + 1) < 0.02).all(), "truncation is not biased")


def promotion_stops_the_growth():
    rows = measure("accumulation.plan", "--k", "256:16384:*4", "--units",
                   "fp32_sequential,hopper_wgmma,hopper_wgmma+promote:128,blackwell_tcgen05",
                   "--where", "format=e4m3")
    gains = {}
    for data, least, most in (("normal", 5, 20), ("uniform:1:abs", 80, 250)):
        wanted = {"op": "gemm", "reference": "quantized", "data": data}
        hopper = {**wanted, "unit": "hopper_wgmma"}
        promoted = {**wanted, "unit": "hopper_wgmma+promote:128"}
        blackwell = {**wanted, "unit": "blackwell_tcgen05"}
        check(slope(rows, "rel_frobenius", **hopper) > 0.5, "hopper does not grow")
        check(abs(slope(rows, "rel_frobenius", **promoted)) < 0.1, "promotion leaves a growth")
        gains[data] = (pick(rows, "rel_frobenius", **hopper, k=4096)[0] /
                       pick(rows, "rel_frobenius", **promoted, k=4096)[0])
        # 32 intervals of equal error, all of one sign (positive: at least 32) or of either; the
        # accumulator's quantum grows with the sum besides.
        check(least < gains[data] < most, data, "promotion gains", gains[data])
        # 25 fraction bits against 13: at least 2^10 less.
        check((pick(rows, "rel_frobenius", **blackwell) * 1024 <
               pick(rows, "rel_frobenius", **hopper)).all(), "blackwell is no better")
    print("promotion at K = 4096 divides the error by",
          ", ".join(f"{gain:.1f} ({data})" for data, gain in gains.items()))


noise_of_a_product_is_that_of_its_operands()
error_grows_as_the_accumulator_rounds()
promotion_stops_the_growth()
