// The software units: what a program would compute from the dequantized operands, in a stated order
// and precision; `exact` is correctly rounded from a fixed-point sum that holds every bit.
// Plain IEEE 754 operations, no libm. Exact: one rounding where qg_unit_table.h says one.
#include <exact_sum_internal.h>
#include <qg_codec.h>
#include <unit_software_internal.h>

static float canonical(float x) { return x == x ? x : qg_float_of_bits(0x7fffffffu); }

// a + b rounded to odd in binary64: rounding it again, to at most 51 bits and in any mode, is
// rounding the exact sum once. Both must be products or values of binary32 numbers.
static double add_to_odd(double a, double b) {
    double sum = a + b;
    if (sum - sum != 0.0) // infinite or NaN
        return sum;
    double rounded_b = sum - a, rounded_a = sum - rounded_b;
    double error = (a - rounded_a) + (b - rounded_b);
    uint64_t bits = qg_bits_of_double(sum);
    if (error == 0.0 || bits & 1)
        return sum;
    return qg_double_of_bits((error > 0.0) == (sum > 0.0) ? bits + 1 : bits - 1);
}

float qg_unit_fma(float a, float b, float c) {
    return canonical((float)add_to_odd((double)a * (double)b, c));
}

// ------------------------------------------------------------------------------------------ chains

static float chain_sequential(const qg_unit *unit, int64_t k, const float *a, const float *b) {
    (void)unit;
    float sum = 0.0f;
    for (int64_t i = 0; i < k; i++) {
        float product = a[i] * b[i];
        sum = sum + product;
    }
    return canonical(sum);
}

static float chain_fma(const qg_unit *unit, int64_t k, const float *a, const float *b) {
    (void)unit;
    float sum = 0.0f;
    for (int64_t i = 0; i < k; i++)
        sum = qg_unit_fma(a[i], b[i], sum);
    return sum;
}

static float chain_blocked(const qg_unit *unit, int64_t k, const float *a, const float *b) {
    float sum = 0.0f;
    for (int64_t at = 0; at < k; at += unit->block) {
        int64_t length = k - at < unit->block ? k - at : unit->block;
        sum = sum + chain_sequential(unit, length, a + at, b + at);
    }
    return canonical(sum);
}

// IEEE 754 6.3: an exact sum of zero that is not of two zeros of one sign is -0 in the mode toward
// -infinity, +0 in the others.
static double zero_sum(double a, double b, int mode) {
    bool negative_a = qg_bits_of_double(a) >> 63, negative_b = qg_bits_of_double(b) >> 63;
    bool negative = mode == QG_ROUND_RTN ? negative_a || negative_b : negative_a && negative_b;
    return negative ? -0.0 : 0.0;
}

// The running sum in binary32 or bfloat16, each addition in the unit's mode; products are RNE.
static float chain_rounded(const qg_unit *unit, int64_t k, const float *a, const float *b) {
    qg_format format = unit->id == QG_UNIT_BF16_SEQUENTIAL ? QG_FORMAT_BF16 : QG_FORMAT_FP32;
    qg_format_info info = qg_format_describe(format);
    qg_conversion conversion = {
        {unit->rounding, 0},
        QG_OVERFLOW_FORMAT, QG_NAN_TO_MAX
    };
    double sum = 0.0;
    for (int64_t i = 0; i < k; i++) {
        float product = a[i] * b[i];
        double next = add_to_odd(sum, product);
        if (next == 0.0)
            next = zero_sum(sum, product, unit->rounding);
        sum = qg_decode(&info, qg_encode(&info, next, &conversion, 0));
    }
    return canonical((float)sum);
}

unit_chain qg_unit_chain_of(const qg_unit *unit) {
    switch (unit->id) {
    case QG_UNIT_FP32_FMA: return chain_fma;
    case QG_UNIT_FP32_BLOCKED: return chain_blocked;
    case QG_UNIT_BF16_SEQUENTIAL: return chain_rounded;
    default: return unit->rounding == QG_ROUND_RNE ? chain_sequential : chain_rounded;
    }
}

// ---------------------------------------------------------------------------------- exact and fp64

static double sum_exactly(int64_t k, const float *a, const float *b, const float *bias) {
    exact_sum sum = {0};
    for (int64_t i = 0; i < k; i++) {
        double product = (double)a[i] * (double)b[i]; // exact, or NaN, or infinite
        exact_sum_add_value(&sum, product);
    }
    if (bias)
        exact_sum_add_value(&sum, *bias);
    return exact_sum_value(&sum);
}

// Sequential, RNE; the bias last.
static double sum_fp64(int64_t k, const float *a, const float *b, const float *bias) {
    double sum = 0.0;
    for (int64_t i = 0; i < k; i++) {
        double product = (double)a[i] * (double)b[i];
        sum = sum + product;
    }
    return bias ? sum + (double)*bias : sum;
}

double qg_unit_wide_sum(const qg_unit *unit, int64_t k, const float *a, const float *b,
                        const float *bias) {
    return unit->id == QG_UNIT_FP64 ? sum_fp64(k, a, b, bias) : sum_exactly(k, a, b, bias);
}
