// SiLU times up: the exponential's borders, special values, errors on a dense sample and bits; the
// activation of every bf16 gate against a correctly rounded one; special values.
#include <exponential_error.h>
#include <require.h>
#include <run_suite.h>

#include <qg_codec.h>
#include <qg_digest.h>

#include <stdio.h>

static const float INF = (float)INFINITY;

static uint32_t bits_of(float x) { return qg_bits_of_float(x); }

// ---------------------------------------------------------------------------------- exponential

START_TEST(exponential_of_special_values) {
    static const struct {
        float x;
        uint32_t result;
    } cases[] = {
        {0.0f,            0x3f800000u},
        {-0.0f,           0x3f800000u},
        {0x1p-149f,       0x3f800000u},
        {1.0f,            0x402df854u},
        {-1.0f,           0x3ebc5ab2u},
        {INFINITY,        0x7f800000u},
        {-INFINITY,       0x00000000u},
        {0x1.62e42ep+6f,  0x7f7fff84u}, // the largest x whose exp is finite
        {0x1.62e430p+6f,  0x7f800000u},
        {3e38f,           0x7f800000u},
        {-0x1.5d589ep+6f, 0x00800026u}, // the smallest normal result
        {-0x1.5d58a0p+6f, 0x007fffe6u},
        {-0x1.9fe368p+6f, 0x00000001u}, // the smallest x whose exp is not 0
        {-0x1.9fe36ap+6f, 0x00000000u},
        {-104.0f,         0x00000000u},
        {-3e38f,          0x00000000u},
        {-0x1.9d1da0p+6f, 0x00000001u}, // 1.4 of the smallest subnormal
        {0x1.3687a8p+1f,  0x413504f0u}, // not those of a log2 e one ulp larger
        {0x1.e7f9cp+1f,   0x423504f0u},
        {0x1.04e342p-2f,  0x3fa52441u}, // nor of such a first coefficient
        {0x1.224c14p-2f,  0x3fa9f40au},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        REQUIRE(bits_of(qg_exponential(cases[i].x)) == cases[i].result, "exp(%a) is %08x, not %08x",
                (double)cases[i].x, bits_of(qg_exponential(cases[i].x)), cases[i].result);
}
END_TEST

// Signalling ones are not asked for: some calling conventions quiet them.
START_TEST(nan_comes_back_as_it_is) {
    static const uint32_t nans[] = {0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0xffc12345u};
    for (size_t i = 0; i < sizeof nans / sizeof nans[0]; i++)
        ck_assert_uint_eq(bits_of(qg_exponential(qg_float_of_bits(nans[i]))), nans[i]);
}
END_TEST

// Every 2003rd number, and what lies around the multiples of ln 2 / 2, where n changes.
START_TEST(exponential_is_within_the_stated_errors) {
    exponential_errors e = {0};
    for (uint64_t i = 0; i < 1ull << 32; i += 2003)
        exponential_add(&e, qg_float_of_bits((uint32_t)i));
    for (int half = -300; half <= 256; half++) {
        uint32_t middle = bits_of((float)(half * 0x1.62e42fefa39efp-2));
        for (uint32_t step = 0; step < 2048; step++)
            exponential_add(&e, qg_float_of_bits(middle - 1024 + step));
    }
    // The worst of all, as test_silu_exhaustive finds them.
    exponential_add(&e, 0x1.206e3ap+2f);
    exponential_add(&e, -0x1.5ed742p+6f);
    printf("exp: %.4f ulp at %a, subnormal %.4f ulp at %a, %lld of %lld not the nearest\n",
           e.normal, (double)e.normal_at, e.subnormal, (double)e.subnormal_at,
           (long long)e.misrounded, (long long)e.compared);
    ck_assert_int_eq(e.wrong, 0);
    ck_assert(e.normal <= EXPONENTIAL_NORMAL_ULPS && e.normal > EXPONENTIAL_NORMAL_ULPS - 1e-4);
    ck_assert(e.subnormal <= EXPONENTIAL_SUBNORMAL_ULPS &&
              e.subnormal > EXPONENTIAL_SUBNORMAL_ULPS - 1e-4);
}
END_TEST

// The same bits whatever compiles it: a fused operation, another order, and another last digit of a
// constant show. Every 149th number of 2^-12 to 104, both signs.
START_TEST(bits_are_pinned) {
    enum { COUNT = 1 << 21 };
    static uint32_t results[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t magnitude = 0x39800000u + i / 2 * 149u;
        results[i] = bits_of(qg_exponential(qg_float_of_bits(magnitude | i << 31)));
    }
    uint64_t exponentials = qg_digest_bytes(results, sizeof results);
    for (uint32_t i = 0; i < 65536; i++)
        results[i] = bits_of(qg_silu_times_up(qg_float_of_bits(i << 16), 1.5f));
    uint64_t activations = qg_digest_bytes(results, 65536 * sizeof *results);
    REQUIRE(exponentials == 0xaaffd95a42a7f56fu && activations == 0x8f75019e024ffc5cu,
            "digests %016llx %016llx", (unsigned long long)exponentials,
            (unsigned long long)activations);
}
END_TEST

// ----------------------------------------------------------------------------------- activation

static long double silu(float g) { return (long double)g / (1.0L + expl(-(long double)g)); }

static long double bf16_ulp(long double y) {
    int exponent;
    (void)frexpl(y, &exponent);
    return ldexpl(1.0L, (exponent < -125 ? -125 : exponent) - 8);
}

// From -88.5 up: with u = 1 to half an ulp of bf16, where the long double can tell; that is, the
// nearest bf16. Below: -0 for at most 1.99e-37.
START_TEST(silu_of_every_gate) {
    double worst = 0.0, flushed = 0.0;
    float worst_at = 0.0f;
    int gates = 0;
    for (uint32_t code = 0; code < 65536; code++) {
        float g = qg_float_of_bf16((uint16_t)code), r = qg_silu_times_up(g, 1.0f);
        if (!qg_float_is_finite(g))
            continue;
        ck_assert_uint_eq(bits_of(r) & 0xffff, 0);
        long double y = silu(g);
        double error = (double)(fabsl((long double)r - y) / bf16_ulp(y));
        if (g < -88.5f) {
            REQUIRE(bits_of(r) == 0x80000000u, "SiLU(%a) is %a", (double)g, (double)r);
            flushed = fmax(flushed, (double)fabsl(y));
            continue;
        }
        gates++;
        if (error > worst)
            worst = error, worst_at = g;
        REQUIRE((bits_of(r) ^ bits_of(g)) >> 31 == 0, "the sign of SiLU(%a)", (double)g);
    }
    printf("SiLU: %d gates, worst %.9f ulp of bf16 at %a; %g becomes -0\n", gates, worst,
           (double)worst_at, flushed);
    ck_assert_int_eq(gates, 49714);
    ck_assert(worst <= 0.5000001 && flushed > 1.9e-37 && flushed < 1.99e-37);
}
END_TEST

START_TEST(activations_of_special_values) {
    static const struct {
        float gate, up;
        uint16_t result;
    } cases[] = {
        {0.0f,         1.0f,     0x0000},
        {-0.0f,        1.0f,     0x8000},
        {0.0f,         -1.0f,    0x8000},
        {INFINITY,     1.0f,     0x7f80},
        {INFINITY,     -2.0f,    0xff80},
        {INFINITY,     0.0f,     0x7fc0},
        {-INFINITY,    1.0f,     0x7fc0}, // -Inf * 0
        {-INFINITY,    INFINITY, 0x7fc0},
        {-89.0f,       1.0f,     0x8000}, // the exponential overflows
        {-89.0f,       -1.0f,    0x0000},
        {-89.0f,       INFINITY, 0x7fc0},
        {-88.5f,       1.0f,     0x82dd},
        {0.0f,         INFINITY, 0x7fc0},
        {1.0f,         INFINITY, 0x7f80},
        {-1.0f,        INFINITY, 0xff80},
        {1.0f,         1.0f,     0x3f3b},
        {100.0f,       3.0e38f,  0x7f80}, // overflow to infinity
        {3.4e38f,      1.0f,     0x7f80}, // of the rounding to bf16
        {0x1.fep+127f, 1.0f,     0x7f7f},
        {0x1p-133f,    1.0f,     0x0000}, // half the smallest: to even
        {0x3p-133f,    1.0f,     0x0002},
        {NAN,          1.0f,     0x7fc0},
        {1.0f,         NAN,      0x7fc0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float r = qg_silu_times_up(cases[i].gate, cases[i].up);
        REQUIRE(bits_of(r) == (uint32_t)cases[i].result << 16, "SiLU(%a) %a is %08x, not %04x",
                (double)cases[i].gate, (double)cases[i].up, bits_of(r), cases[i].result);
    }
    float r = qg_silu_times_up(qg_float_of_bits(0xffc12345u), -INF);
    ck_assert_uint_eq(bits_of(r), 0x7fc00000u);
}
END_TEST

// The definition, a rounding a line.
static float stepwise(float gate, float up) {
    volatile float g = qg_float_of_bf16(qg_bf16_of_float(gate));
    volatile float u = qg_float_of_bf16(qg_bf16_of_float(up));
    volatile float denominator = 1.0f + qg_exponential(-g);
    volatile float sigmoid = 1.0f / denominator;
    volatile float silu = g * sigmoid;
    volatile float product = silu * u;
    return qg_float_of_bf16(qg_bf16_of_float(product));
}

// Of binary32 gates and ups, which are rounded first, and with products that are not associative.
START_TEST(every_rounding_point_is_kept) {
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t a = 0x3c000000u + i * 2654435761u % 0x06000000u;
        uint32_t b = 0x3c000000u + (i * 2246822519u + 77u) % 0x06000000u;
        float gate = qg_float_of_bits(a | (i & 1) << 31), up = qg_float_of_bits(b);
        float got = qg_silu_times_up(gate, up), want = stepwise(gate, up);
        REQUIRE(bits_of(got) == bits_of(want), "SiLU(%a) * %a is %a, not %a", (double)gate,
                (double)up, (double)got, (double)want);
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {exponential_of_special_values,
                            nan_comes_back_as_it_is,
                            exponential_is_within_the_stated_errors,
                            bits_are_pinned,
                            silu_of_every_gate,
                            activations_of_special_values,
                            every_rounding_point_is_kept};
    return RUN_SUITE("silu", tests);
}
