// Exhaustive check of the lemma behind the biased floor FMA (lib/emulator/fused_f13_avx512.c).
//
// With q the alignment quantum, S an accumulator of ulp q and X = |product| / q, one FMA in
// round-toward-zero mode of S > 0 with a * (b * (1 + eps)) adds floor(X) for a product >= 0 and
// -floor(X) - 1 for a product < 0, whether or not X is an integer. Zeros, stored as tiny numbers
// with their sign, obey the same rule, and so does a running sum with its lowest bit set.
// See fused_lemma.h for what is sampled.
#include <fused_lemma.h>
#include <qg_codec.h>
#include <require.h>

#include <fenv.h>
#include <math.h>
#include <string.h>

typedef struct operand {
    double value; // tiny for zero
    int exponent; // with the format's smallest exponent; meaningless for zero
    int negative, zero, finite;
} operand;

static operand operand_of(qg_format format, uint64_t code, double tiny) {
    qg_format_info info = qg_format_describe(format);
    operand o = {0};
    o.value = qg_decode(&info, code);
    o.finite = isfinite(o.value) != 0;
    o.negative = signbit(o.value) != 0;
    o.zero = o.value == 0;
    if (o.finite && !o.zero) {
        int least = 1 - info.bias;
        o.exponent = ilogb(o.value) > least ? ilogb(o.value) : least;
    }
    if (o.zero)
        o.value = copysign(tiny, o.value);
    return o;
}

static void expect(double got, double magnitude, int negative, const char *what) {
    double want = negative ? -floor(magnitude) - 1 : floor(magnitude);
    REQUIRE(got == want, "%s: got %.17g, want %.17g", what, got, want);
}

// How far the sum may be from the start value, in quanta: the bound of the kernels.
static const int32_t OFFSETS32[] = {0, 1, -1, (1 << 20) - 1, -(1 << 20)};
static const int64_t OFFSETS64[] = {0, 1, -1, (1ll << 34) - 1, -(1ll << 34)};

static void product32(operand a, operand b, int shift) {
    int emax = a.exponent + b.exponent + shift;
    float q = ldexpf(1, emax - 13), biased = (float)b.value * (1 + 0x1p-16f);
    double x = a.zero || b.zero ? 0 : fabs(a.value * b.value) / q;
    for (int i = 0; i < 5; i++) {
        float start = 1.5f * 0x1p23f * q + (float)OFFSETS32[i] * q;
        float sum = fmaf((float)a.value, biased, start);
        expect((sum - start) / q, x, a.negative != b.negative, "F = 13 product");
    }
}

static void product64(double a, double b, int negative, int zero, int emax, int bits) {
    double q = ldexp(1, emax - bits), biased = b * (1 + 0x1p-29);
    double x = zero ? 0 : fabs(a * b) / q;
    for (int i = 0; i < 5; i++) {
        double start = 1.5 * 0x1p52 * q + (double)OFFSETS64[i] * q;
        double sum = fma(a, biased, start);
        expect((sum - start) / q, x, negative, "F = 23 .. 25 product");
    }
}

static void every_fp8_pair(qg_format fa, qg_format fb, int step) {
    for (int i = 0; i < 256; i += step) {
        operand a32 = operand_of(fa, (uint64_t)i, 0x1p-110), a64 = a32;
        if (!a32.finite)
            continue;
        for (int j = 0; j < 256; j++) {
            operand b32 = operand_of(fb, (uint64_t)j, 0x1p-110), b64 = b32;
            if (!b32.finite)
                continue;
            for (int shift = 0; shift <= 40; shift++)
                product32(a32, b32, shift);
            if (a64.zero)
                a64.value = copysign(0x1p-1000, a64.value);
            if (b64.zero)
                b64.value = copysign(0x1p-1000, b64.value);
            for (int shift = 0; shift <= 60; shift += 1 + (shift > 30) * 5)
                product64(a64.value, b64.value, a64.negative != b64.negative, a64.zero || b64.zero,
                          a64.exponent + b64.exponent + shift, 25);
        }
    }
}

// Significands of up to 11 bits (FP16, TF32; BF16 is a subset) as integers over 2^10.
static void significand_pairs(int step, int bits) {
    for (int i = 1; i < 2048; i += step)
        for (int j = 1; j < 2048; j++)
            for (int shift = 0; shift <= 52; shift += step > 1 ? 1 : 4)
                for (int sign = 0; sign < 2; sign++)
                    product64((sign ? -i : i) * 0x1p-10, j * 0x1p-10, sign, 0, shift, bits);
}

// The running sum c with its lowest bit set, in binary32 (14 bits, F = 13) and in binary64 (24
// bits, F = 23 .. 25): a plain addition floors it in the same way.
static void running_sum(int step) {
    for (uint32_t c = 1 << 13; c < 1 << 14; c += (uint32_t)step)
        for (int shift = 0; shift <= 40; shift++)
            for (int sign = 0; sign < 2; sign++) {
                float q = ldexpf(1, shift - 13), value = (float)c * 0x1p-13f;
                uint32_t word;
                memcpy(&word, &value, 4);
                word |= 1 | (uint32_t)sign << 31;
                float nudged;
                memcpy(&nudged, &word, 4);
                float start = 1.5f * 0x1p23f * q, sum = start + nudged;
                expect((sum - start) / q, value / (double)q, sign, "F = 13 running sum");
            }
    for (uint64_t c = 1 << 23; c < 1 << 24; c += 61 * (uint64_t)step)
        for (int shift = 0; shift <= 60; shift++)
            for (int sign = 0; sign < 2; sign++) {
                double q = ldexp(1, shift - 25), value = (double)c * 0x1p-23;
                uint64_t word;
                memcpy(&word, &value, 8);
                word |= 1 | (uint64_t)sign << 63;
                double nudged;
                memcpy(&nudged, &word, 8);
                double start = 1.5 * 0x1p52 * q, sum = start + nudged;
                expect((sum - start) / q, value / q, sign, "F = 25 running sum");
            }
}

void fused_lemma_check(int fp8_step, int step) {
    static const qg_format formats[] = {QG_FORMAT_E4M3, QG_FORMAT_E5M2};
    fesetround(FE_TOWARDZERO);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            every_fp8_pair(formats[i], formats[j], fp8_step);
    for (int bits = 23; bits <= 25; bits++)
        significand_pairs(step, bits);
    running_sum(fp8_step);
    fesetround(FE_TONEAREST);
}
