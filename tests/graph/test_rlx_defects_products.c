// RLX's known defects 8 and 9 as tests, as in test_rlx_defects_values: what must hold is a check
// that the library passes and the defect fails.
//   8 d08_bounds_and_codes_reject_what_a_cosine_accepts
//   9 d09_scales_enter_after_accumulation, d09_the_oracle_is_one_unit_of_several,
//     d09_accumulators_have_their_width
#include <require.h>
#include <rlx_faults.h>
#include <run_suite.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

// ----------------------------------------------------------------------------------------------- 8

enum { M = 4, K = 64, N = 8 }; // RLX's own test, on two smooth sines

typedef struct problem {
    float a[M * K], b[N * K];
    float wanted[M * N]; // of the unquantized operands, rounded once
    rlx_quantized lhs, rhs;
} problem;

static void set_up(problem *p, const char *recipe) {
    rlx_smooth(M * K, 0.05, p->a);
    rlx_smooth(N * K, 0.03, p->b);
    for (int i = 0; i < M * N; i++) {
        double sum = 0;
        for (int j = 0; j < K; j++)
            sum += (double)p->a[i / N * K + j] * (double)p->b[i % N * K + j];
        p->wanted[i] = (float)sum;
    }
    p->lhs = rlx_quantize("emulator", recipe, M, K, p->a);
    p->rhs = rlx_quantize("emulator", recipe, N, K, p->b);
}

static void tear_down(problem *p) {
    rlx_discard(&p->lhs);
    rlx_discard(&p->rhs);
}

// Half a step of the element's distance to the value, from format and scale alone.
static double half_step(const rlx_quantized *q, const float *x, int mbits, int64_t row, int64_t i) {
    double scale = (double)rlx_scale_of(q, row, i), magnitude = fabs((double)x[row * K + i]);
    double largest = scale * slow_value(q->format, slow_value_count(q->format) - 1);
    double subnormal = scale * slow_value(q->format, 1) / 2;
    double normal = ldexp(magnitude, -mbits - 1);
    return fmax(fmax(subnormal, normal), magnitude - largest);
}

// The gate that is held against the cosine: codes are those of nearest-even rounding, and every sum
// differs from that of the unquantized operands by no more than steps of rounding may add up to.
static bool within_bounds(const problem *p, int mbits, const float *got) {
    for (int i = 0; i < M * N; i++) {
        double room = 0x1p-22;
        for (int j = 0; j < K; j++) {
            double a = fabs((double)p->a[i / N * K + j]), b = fabs((double)p->b[i % N * K + j]);
            double ea = half_step(&p->lhs, p->a, mbits, i / N, j);
            double eb = half_step(&p->rhs, p->b, mbits, i % N, j);
            room += a * eb + b * ea + ea * eb;
        }
        if (fabs((double)got[i] - (double)p->wanted[i]) > room)
            return false;
    }
    return true;
}

static bool codes_are_nearest(const rlx_quantized *q, const float *x) {
    slow_conversion rne = {SLOW_RNE, 0, 1, 0};
    for (int64_t i = 0; i < q->shape.codes_size; i++) {
        float scale = rlx_scale_of(q, i / K, i % K);
        if (q->codes[i] != slow_encode(q->format, (double)(x[i] / scale), &rne, 0))
            return false;
    }
    return true;
}

static bool is_accepted(const problem *p, int mbits, const float *got) {
    return codes_are_nearest(&p->lhs, p->a) && codes_are_nearest(&p->rhs, p->b) &&
           within_bounds(p, mbits, got);
}

typedef struct seed_case {
    const char *recipe;
    int mbits;
    double threshold; // RLX's, of the cosine
} seed_case;

static const seed_case seed_cases[] = {
    {"rlx_e4m3",              3, 0.999},
    {"rlx_mxfp8",             3, 0.999},
    {"e5m2/per_tensor/amax",  2, 0.99 },
    {"rlx_nvfp4",             1, 0.95 },
    {"f4e3m0/group:32/rceil", 0, 0.7  },
};

// Its own scenarios pass both gates here.
START_TEST(d08_seed_scenarios_pass_both_gates) {
    for (size_t i = 0; i < sizeof seed_cases / sizeof seed_cases[0]; i++) {
        problem p;
        float got[M * N];
        set_up(&p, seed_cases[i].recipe);
        rlx_multiply("fp32_sequential", &p.lhs, &p.rhs, NULL, got);
        ck_assert_msg(is_accepted(&p, seed_cases[i].mbits, got), "%s", seed_cases[i].recipe);
        ck_assert_msg(rlx_fault_gate(M * N, p.wanted, got, seed_cases[i].threshold), "%s",
                      seed_cases[i].recipe);
        tear_down(&p);
    }
}
END_TEST

// A mistake that the cosine accepts, made in codes, scales or output.
typedef void (*mistake)(problem *p, float *got);

static void twice_the_output(problem *p, float *got) {
    rlx_multiply("fp32_sequential", &p->lhs, &p->rhs, NULL, got);
    for (int i = 0; i < M * N; i++)
        got[i] *= 2;
}

static void scale_inverted(problem *p, float *got) {
    float scale;
    memcpy(&scale, p->lhs.scales, sizeof scale);
    scale = 1 / scale;
    memcpy(p->lhs.scales, &scale, sizeof scale);
    rlx_multiply("fp32_sequential", &p->lhs, &p->rhs, NULL, got);
}

static void truncated(rlx_quantized *q, const float *x) {
    slow_conversion rtz = {SLOW_RTZ, 0, 1, 0};
    for (int64_t i = 0; i < q->shape.codes_size; i++)
        q->codes[i] = (uint8_t)slow_encode(q->format,
                                           (double)(x[i] / rlx_scale_of(q, i / K, i % K)), &rtz, 0);
}

static void codes_truncated(problem *p, float *got) {
    truncated(&p->lhs, p->a);
    truncated(&p->rhs, p->b);
    rlx_multiply("fp32_sequential", &p->lhs, &p->rhs, NULL, got);
}

static void one_code_off(problem *p, float *got) {
    p->lhs.codes[11] ^= 1;
    rlx_multiply("fp32_sequential", &p->lhs, &p->rhs, NULL, got);
}

START_TEST(d08_bounds_and_codes_reject_what_a_cosine_accepts) {
    static const mistake mistakes[] = {twice_the_output, scale_inverted, codes_truncated,
                                       one_code_off};
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        problem p;
        float got[M * N];
        set_up(&p, "rlx_e4m3");
        mistakes[i](&p, got);
        ck_assert_msg(rlx_fault_gate(M * N, p.wanted, got, 0.999), "mistake %zu", i);
        ck_assert_msg(!is_accepted(&p, 3, got), "mistake %zu", i);
        tear_down(&p);
    }
}
END_TEST

// ----------------------------------------------------------------------------------------------- 9

enum { SIDE = 8, LENGTH = 64 };

// Small whole numbers under scales that are no powers of two: every sum of codes is exact.
static rlx_quantized whole_numbers(uint64_t seed, float scale) {
    float x[SIDE * LENGTH];
    for (int i = 0; i < SIDE * LENGTH; i++)
        x[i] = (float)((int)((seed * 31 + (uint64_t)i * 7) % 9) - 4) * scale;
    char text[64];
    snprintf(text, sizeof text, "e4m3/per_tensor/fixed:%a", (double)scale);
    return rlx_quantize("emulator", text, SIDE, LENGTH, x);
}

typedef void (*multiplier)(const rlx_quantized *lhs, const rlx_quantized *rhs, float *out);
static void by_hopper(const rlx_quantized *lhs, const rlx_quantized *rhs, float *out) {
    rlx_multiply("hopper_wgmma", lhs, rhs, NULL, out);
}
static void by_oracle(const rlx_quantized *lhs, const rlx_quantized *rhs, float *out) {
    rlx_fault_product(lhs, rhs, NULL, out);
}

// Whether the product is that of the codes, times the product of the scales, rounded once.
static bool scales_enter_at_the_end(multiplier multiply) {
    rlx_quantized lhs = whole_numbers(1, 0.3f), rhs = whole_numbers(2, 0.7f);
    float out[SIDE * SIDE];
    bool same = true;
    multiply(&lhs, &rhs, out);
    for (int i = 0; i < SIDE * SIDE; i++) {
        double codes = 0;
        for (int j = 0; j < LENGTH; j++)
            codes += slow_decode(lhs.format, lhs.codes[i / SIDE * LENGTH + j]) *
                     slow_decode(rhs.format, rhs.codes[i % SIDE * LENGTH + j]);
        same = same && out[i] == (float)codes * (0.3f * 0.7f);
    }
    rlx_discard(&lhs);
    rlx_discard(&rhs);
    return same;
}

START_TEST(d09_scales_enter_after_accumulation) {
    ck_assert(scales_enter_at_the_end(by_hopper));
    ck_assert(!scales_enter_at_the_end(by_oracle));
}
END_TEST

// What RLX compares with is there, too, by a name that says what it is.
START_TEST(d09_the_oracle_is_one_unit_of_several) {
    static const char *const recipes[] = {"rlx_e4m3", "rlx_mxfp8", "rlx_nvfp4"};
    float a[SIDE * LENGTH], b[SIDE * LENGTH], bias[SIDE], wanted[SIDE * SIDE], got[SIDE * SIDE];
    rlx_ordinary(1, SIDE * LENGTH, a);
    rlx_ordinary(2, SIDE * LENGTH, b);
    rlx_ordinary(3, SIDE, bias);
    for (int i = 0; i < 3; i++) {
        rlx_quantized lhs = rlx_quantize("cpu", recipes[i], SIDE, LENGTH, a);
        rlx_quantized rhs = rlx_quantize("cpu", recipes[i], SIDE, LENGTH, b);
        rlx_fault_product(&lhs, &rhs, bias, wanted);
        rlx_multiply("fp32_sequential", &lhs, &rhs, bias, got);
        ck_assert_int_eq(memcmp(wanted, got, sizeof got), 0);
        rlx_discard(&lhs);
        rlx_discard(&rhs);
    }
}
END_TEST

// One product of 448 * 448 and 31 of 1 * 1: 13 fraction bits below 2^17 end at 16, and the ones go.
START_TEST(d09_accumulators_have_their_width) {
    float x[32];
    float oracle, exact, hopper;
    for (int i = 0; i < 32; i++)
        x[i] = i ? 1.0f : 448.0f;
    rlx_quantized q = rlx_quantize("emulator", "e4m3/per_tensor/fixed:1", 1, 32, x);
    rlx_fault_product(&q, &q, NULL, &oracle);
    rlx_multiply("exact", &q, &q, NULL, &exact);
    rlx_multiply("hopper_wgmma", &q, &q, NULL, &hopper);
    ck_assert_float_eq(oracle, 448 * 448 + 31);
    ck_assert_float_eq(exact, 448 * 448 + 31);
    ck_assert_float_eq(hopper, 448 * 448);
    rlx_discard(&q);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        d08_seed_scenarios_pass_both_gates,  d08_bounds_and_codes_reject_what_a_cosine_accepts,
        d09_scales_enter_after_accumulation, d09_the_oracle_is_one_unit_of_several,
        d09_accumulators_have_their_width,
    };
    return RUN_SUITE("rlx_defects_products", tests);
}
