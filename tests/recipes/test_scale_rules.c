// Scale rules amax by amax: against an exact model, at the patterns where forms differ, in order of
// size, under scaling; the grids and examples of the two-level rules.
#include <block_data.h>
#include <qg_block_scale.h>
#include <require.h>
#include <run_suite.h>

#include <math.h>
#include <string.h>

static const qg_format formats[] = {QG_FORMAT_E4M3,     QG_FORMAT_E5M2,   QG_FORMAT_E2M3,
                                    QG_FORMAT_E3M2,     QG_FORMAT_E2M1,   QG_FORMAT_E4M3FNUZ,
                                    QG_FORMAT_E5M2FNUZ, QG_FORMAT_MXINT8, QG_FORMAT_INT4};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static int clamp(int e) { return e < -127 ? -127 : e > 127 ? 127 : e; }

// The smallest e in -127 .. 127 with amax <= F 2^e: binary64 holds both sides exactly.
static int exact_rceil(double f, float amax) {
    int e = ilogb((double)amax) - ilogb(f) - 1;
    while (!((double)amax <= ldexp(f, e)))
        e++;
    return clamp(e);
}

// Calls `visit` for amaxes of every exponent and the mantissas where rules turn.
static void for_amaxes(const qg_element *e, void (*visit)(const qg_element *, float)) {
    uint64_t state = 7;
    for (uint32_t exponent = 0; exponent < 255; exponent++)
        for (int i = 0; i < 60; i++) {
            static const uint32_t turns[] = {0,        1,        2,        0x7fffff, 0x7ffffe,
                                             0x400000, 0x400001, 0x3fffff, 0x200000, 0x100000,
                                             0x600000, 0x700000, 0x780000, 0x77ffff};
            uint32_t mantissa = (uint32_t)block_data_random(&state) & 0x7fffff;
            if (i < 14)
                mantissa = turns[i];
            else if (i < 17)
                mantissa = (qg_bits_of_float(e->max) + (uint32_t)i - 15) & 0x7fffff;
            float amax = qg_float_of_bits(exponent << 23 | mantissa);
            if (amax > 0)
                visit(e, amax);
        }
    for (uint32_t bits = 1; bits < 5000; bits++)
        visit(e, qg_float_of_bits(bits * 1663));
}

static int float_form_differs(const qg_element *e, float amax) {
    return amax == nextafterf((float)ldexp((double)e->max, -127), 1);
}

static void check_rceil(const qg_element *e, float amax) {
    int want = exact_rceil((double)e->max, amax);
    REQUIRE(qg_rule_exponent(QG_RULE_RCEIL, e, amax) == want, "rceil of %a", (double)amax);
    REQUIRE(qg_rule_exponent(QG_RULE_AMAX_POW2, e, amax) == want, "pow2 of %a", (double)amax);
    if (float_form_differs(e, amax) || e->info.kind == QG_KIND_INT)
        return;
    REQUIRE(qg_rule_exponent(QG_RULE_RCEIL_MUL, e, amax) == want, "rceil_mul of %a", (double)amax);
    REQUIRE(qg_rule_exponent(QG_RULE_RCEIL_DIV, e, amax) == want, "rceil_div of %a", (double)amax);
}

START_TEST(rceil_is_exact_and_its_float_forms_agree) {
    for (int i = 0; i < FORMATS; i++) {
        qg_element e = qg_element_of(formats[i]);
        for_amaxes(&e, check_rceil);
    }
}
END_TEST

// The number after max * 2^-127: the one pattern per format.
START_TEST(the_float_forms_of_rceil_differ_at_one_pattern) {
    static const struct {
        qg_format format;
        uint32_t bits;
        int code;
    } patterns[] = {
        {QG_FORMAT_E4M3,     0x04600001, 1},
        {QG_FORMAT_E5M2,     0x07E00001, 1},
        {QG_FORMAT_E2M1,     0x01400001, 1},
        {QG_FORMAT_E2M3,     0x01700001, 1},
        {QG_FORMAT_E3M2,     0x02600001, 1},
        {QG_FORMAT_E4M3FNUZ, 0x03F00001, 1}
    };
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        qg_element e = qg_element_of(patterns[i].format);
        float amax = qg_float_of_bits(patterns[i].bits);
        ck_assert(float_form_differs(&e, amax));
        ck_assert_int_eq(qg_rule_exponent(QG_RULE_RCEIL, &e, amax) + 127, 1);
        ck_assert_int_eq(qg_rule_exponent(QG_RULE_RCEIL_MUL, &e, amax) + 127, 0);
        ck_assert_int_eq(qg_rule_exponent(QG_RULE_RCEIL_DIV, &e, amax) + 127, 0);
        for (uint32_t d = 1; d < 100; d++) {
            check_rceil(&e, qg_float_of_bits(patterns[i].bits - d));
            check_rceil(&e, qg_float_of_bits(patterns[i].bits + d));
        }
    }
}
END_TEST

static void check_order(const qg_element *e, float amax) {
    int floor_ = qg_rule_exponent(QG_RULE_FLOOR, e, amax);
    int even = qg_rule_exponent(QG_RULE_EVEN, e, amax);
    int rceil = qg_rule_exponent(QG_RULE_RCEIL, e, amax);
    int ceil_ = qg_rule_exponent(QG_RULE_CEIL, e, amax);
    REQUIRE(floor_ == clamp(ilogb((double)amax) - e->emax), "floor of %a", (double)amax);
    REQUIRE(floor_ <= even && even <= rceil && rceil <= ceil_ && ceil_ <= floor_ + 1,
            "order at %a: %d %d %d %d", (double)amax, floor_, even, rceil, ceil_);
    REQUIRE(qg_rule_exponent(QG_RULE_FLOOR_PLUS1, e, amax) ==
                clamp(ilogb((double)amax) - e->emax + 1),
            "floor_plus1 of %a", (double)amax);
    if (ceil_ < 127) // MXINT8 alone clips at the clamp
        REQUIRE((double)amax <= (double)e->max * qg_double_pow2(rceil), "rceil clips %a",
                (double)amax);
}

// even <= rceil needs that the element's largest value has all its mantissa bits set or all but
// the last: the floats here do; integers' F is 2 - 2^-mbits and does too.
START_TEST(rules_are_ordered) {
    for (int i = 0; i < FORMATS; i++) {
        qg_element e = qg_element_of(formats[i]);
        for_amaxes(&e, check_order);
    }
}
END_TEST

START_TEST(exponents_come_from_bits_not_from_logarithms) {
    qg_element e = qg_element_of(QG_FORMAT_E4M3);
    for (int k = -126; k <= 127; k++)
        for (uint32_t ulps = 1; ulps <= 64; ulps++) {
            uint32_t power = (uint32_t)(k + 127) << 23;
            float below = qg_float_of_bits(power - ulps), above = qg_float_of_bits(power + ulps);
            if (k > -126)
                REQUIRE(qg_rule_exponent(QG_RULE_FLOOR, &e, below) == clamp(k - 1 - 8),
                        "floor below 2^%d", k);
            REQUIRE(qg_rule_exponent(QG_RULE_CEIL, &e, above) == clamp(k + 1 - 8),
                    "ceil above 2^%d", k);
        }
    ck_assert_int_eq(qg_rule_exponent(QG_RULE_FLOOR, &e, nextafterf(256, 0)), -1);
    ck_assert_int_eq(qg_rule_exponent(QG_RULE_FLOOR, &e, 256), 0);
}
END_TEST

// Half up at mbits: thresholds 1.9375 (E4M3, E2M3), 1.875 (E5M2, E3M2), 1.75 (E2M1), and for
// integers width - 2 bits: MXINT8 2 - 2^-7.
START_TEST(even_rounds_up_from_its_threshold) {
    static const struct {
        qg_format format;
        double threshold;
    } rows[] = {
        {QG_FORMAT_E4M3,   1.9375   },
        {QG_FORMAT_E2M3,   1.9375   },
        {QG_FORMAT_E5M2,   1.875    },
        {QG_FORMAT_E3M2,   1.875    },
        {QG_FORMAT_E2M1,   1.75     },
        {QG_FORMAT_MXINT8, 1.9921875},
        {QG_FORMAT_INT4,   1.875    }
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        qg_element e = qg_element_of(rows[i].format);
        float at = (float)rows[i].threshold;
        int down = qg_rule_exponent(QG_RULE_FLOOR, &e, 1.0f);
        ck_assert_int_eq(qg_rule_exponent(QG_RULE_EVEN, &e, nextafterf(at, 0)), down);
        ck_assert_int_eq(qg_rule_exponent(QG_RULE_EVEN, &e, at), down + 1);
    }
}
END_TEST

START_TEST(nearest_turns_at_one_and_a_half) {
    qg_element e = qg_element_of(QG_FORMAT_E4M3);
    for (int k = -100; k < 100; k++) {
        float tie = (float)ldexp(672, k); // 1.5 * 448
        REQUIRE(qg_rule_exponent(QG_RULE_NEAREST_UP, &e, tie) == k + 1, "up at 2^%d", k);
        REQUIRE(qg_rule_exponent(QG_RULE_NEAREST, &e, tie) == ((k + 127) % 2 ? k + 1 : k),
                "even at 2^%d", k);
        for (int rule = QG_RULE_NEAREST; rule <= QG_RULE_NEAREST_UP; rule++) {
            REQUIRE(qg_rule_exponent(rule, &e, nextafterf(tie, 0)) == k, "below the tie, %d", k);
            REQUIRE(qg_rule_exponent(rule, &e, nextafterf(tie, INFINITY)) == k + 1,
                    "above the tie, %d", k);
        }
    }
}
END_TEST

static void check_largest(qg_format format, int code) {
    qg_element e = qg_element_of(format);
    ck_assert_int_eq(qg_rule_exponent(QG_RULE_RCEIL, &e, 0x1.fffffep127f) + 127, code);
}

START_TEST(largest_scales_of_finite_data) {
    check_largest(QG_FORMAT_E4M3, 247);
    check_largest(QG_FORMAT_E5M2, 240);
    check_largest(QG_FORMAT_E2M1, 253);
    check_largest(QG_FORMAT_E2M3, 253);
    check_largest(QG_FORMAT_E3M2, 251);
    check_largest(QG_FORMAT_E4M3FNUZ, 248);
    check_largest(QG_FORMAT_MXINT8, 254);
    qg_element e = qg_element_of(QG_FORMAT_MXINT8);
    ck_assert_int_eq(qg_rule_exponent(QG_RULE_FLOOR, &e, 0x1p127f) + 127, 254);
    e = qg_element_of(QG_FORMAT_E4M3);
    ck_assert_int_eq(qg_rule_exponent(QG_RULE_EVEN, &e, 0x1.fp127f), 128 - 8); // torchao: 255
}
END_TEST

static void check_scaling(const qg_element *e, float amax) {
    static const int rules[] = {QG_RULE_FLOOR, QG_RULE_CEIL, QG_RULE_EVEN, QG_RULE_RCEIL};
    float doubled = amax * 2;
    if (isinf(doubled))
        return;
    for (int i = 0; i < 4; i++) {
        int a = qg_rule_exponent(rules[i], e, amax), b = qg_rule_exponent(rules[i], e, doubled);
        REQUIRE(b == a + 1 || b == -127 || a == 127, "rule %d at %a: %d, doubled %d", rules[i],
                (double)amax, a, b);
    }
}

START_TEST(doubling_a_block_moves_the_scale_by_one) {
    for (int i = 0; i < FORMATS; i++) {
        qg_element e = qg_element_of(formats[i]);
        for_amaxes(&e, check_scaling);
    }
}
END_TEST

// Transformer Engine's formula, written out: s = F/amax with its mantissa cleared, X = 1/s.
static void check_te_pow2(const qg_element *e, float amax) {
    qg_recipe recipe = {.element = QG_FORMAT_E4M3, .rule = QG_RULE_AMAX_POW2};
    recipe.huge_inverse = QG_HUGE_INVERSE_INPUT_MAX;
    for (int i = 0; i < FORMATS; i++)
        if (qg_element_of(formats[i]).max == e->max)
            recipe.element = formats[i];
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    static const float largest[] = {0x1.fffffep127f, 0x1.fep127f, 65504.0f};
    for (int t = 0; t < 3; t++) {
        qg_scaler q = qg_scaler_of(&recipe, types[t], 0);
        qg_block_scale scale = qg_block_scale_of(&q, amax, NULL);
        float s = e->max / amax;
        s = qg_float_of_bits(qg_bits_of_float(isinf(s) ? largest[t] : s) & 0xff800000u);
        if (s >= 0x1p-126f)
            REQUIRE(scale.x == 1 / s, "X of %a is %a", (double)amax, (double)scale.x);
        if (t < 2)
            REQUIRE(scale.x == qg_float_pow2(exact_rceil((double)e->max, amax)),
                    "X of %a is not rceil's", (double)amax);
    }
}

START_TEST(transformer_engines_pow2_is_rceil) {
    for (int i = 0; i < 5; i++) {
        qg_element e = qg_element_of(formats[i]);
        for_amaxes(&e, check_te_pow2);
    }
}
END_TEST

// ------------------------------------------------------------------------------------ two levels

START_TEST(block_formulas_differ_in_277_and_408_codes) {
    qg_element e = qg_element_of(QG_FORMAT_E2M1);
    int pairs = 0, from_4over6 = 0, from_torchao = 0;
    for (uint32_t t = 0; t < 128; t++) {
        uint32_t tensor_bits = 0x3f800000u | t << 16;
        float tensor = qg_float_of_bits(tensor_bits);
        float s_enc = qg_two_level_encode_scale(QG_RULE_TWO_LEVEL, &e, tensor);
        float pts = qg_two_level_tensor(QG_RULE_TWO_LEVEL_TORCHAO, &e, tensor);
        for (uint32_t b = tensor_bits; b >= tensor_bits - (30u << 23); b -= 1u << 16) {
            float amax = qg_float_of_bits(b);
            uint64_t main_path = qg_two_level_code(&e, s_enc, amax);
            pairs++;
            from_4over6 += main_path != qg_four_over_six_code(&e, s_enc, amax, 1.0f);
            from_torchao += main_path != qg_two_level_torchao_code(&e, pts, amax, 0.0f);
        }
    }
    ck_assert_int_eq(pairs, 128 * (30 * 128 + 1)); // block amax in [2^-30 A, A]
    ck_assert_int_eq(from_4over6, 277);
    ck_assert_int_eq(from_torchao, 408);
    float s_enc = qg_two_level_encode_scale(QG_RULE_TWO_LEVEL, &e, 0x1.04p0f);
    uint64_t one = qg_two_level_code(&e, s_enc, 0x1.86p-15f);
    uint64_t other = qg_four_over_six_code(&e, s_enc, 0x1.86p-15f, 1.0f);
    ck_assert(one == 0x0B && other == 0x0A);
}
END_TEST

// Without a tensor scale: sb goes to 0 at amax/6 <= 2^-10, and rounds down to clip 8.94 to 6.
START_TEST(small_block_scales_go_to_zero_or_clip) {
    qg_element e = qg_element_of(QG_FORMAT_E2M1);
    ck_assert_int_eq((int)qg_two_level_code(&e, 1.0f, 6 * 0x1p-10f), 0);
    ck_assert_float_eq(qg_two_level_factor(1.0f, 0), 0x1.fffffep127f);
    float amax = 6 * 1.49f * 0x1p-9f;
    uint64_t code = qg_two_level_code(&e, 1.0f, amax);
    ck_assert_int_eq((int)code, 1);
    double scaled = (double)(amax * qg_two_level_factor(1.0f, code));
    ck_assert(scaled > 8.93 && scaled < 8.95);
    // torchao's floor
    ck_assert_int_eq((int)qg_two_level_torchao_code(&e, 1.0f, amax, 0x1p-6f), 0x08);
    // above 2688 the block scale saturates
    ck_assert_int_eq((int)qg_two_level_code(&e, 1.0f, 2688.0f), 0x7E);
    ck_assert_int_eq((int)qg_two_level_code(&e, 1.0f, 1e6f), 0x7E);
}
END_TEST

START_TEST(tensor_scales) {
    qg_element e = qg_element_of(QG_FORMAT_E2M1);
    ck_assert_float_eq(qg_two_level_encode_scale(QG_RULE_TWO_LEVEL, &e, 1.0f), 2688.0f);
    ck_assert_float_eq(qg_two_level_encode_scale(QG_RULE_FOUR_OVER_SIX, &e, 1.0f), 1536.0f);
    ck_assert_float_eq(qg_two_level_encode_scale(QG_RULE_TWO_LEVEL, &e, 0.0f), 1.0f);
    ck_assert_float_eq(qg_two_level_encode_scale(QG_RULE_TWO_LEVEL, &e, 0x1p-149f),
                       0x1.fffffep127f);
    ck_assert_float_eq(qg_two_level_tensor(QG_RULE_TWO_LEVEL_TORCHAO, &e, 2688.0f), 1.0f);
    ck_assert_float_eq(qg_two_level_tensor(QG_RULE_TWO_LEVEL_TORCHAO, &e, 0.0f), 1.0f);
    ck_assert_float_eq(qg_two_level_tensor(QG_RULE_TWO_LEVEL_TORCHAO, &e, INFINITY), 1.0f);
    ck_assert_float_eq(qg_two_level_tensor(QG_RULE_TWO_LEVEL, &e, INFINITY), 2688.0f);
    ck_assert_float_eq(qg_two_level_tensor(QG_RULE_FOUR_OVER_SIX, &e, INFINITY), 1536.0f);
    ck_assert_float_eq(qg_two_level_tensor(QG_RULE_TWO_LEVEL, &e, 3.5f), 3.5f);
}
END_TEST

START_TEST(amax_takes_what_its_policy_says) {
    static const float x[] = {-3, NAN, 2, -INFINITY, -0.0f};
    float propagates = 0, ignores = 0, finite = 0, backwards = 0;
    for (int i = 0; i < 5; i++) {
        propagates = qg_amax_step(QG_AMAX_PROPAGATES_NAN, propagates, x[i]);
        backwards = qg_amax_step(QG_AMAX_PROPAGATES_NAN, backwards, x[4 - i]);
        ignores = qg_amax_step(QG_AMAX_IGNORES_NAN, ignores, x[i]);
        finite = qg_amax_step(QG_AMAX_OVER_FINITE, finite, x[i]);
    }
    ck_assert(isnan(propagates) && isnan(backwards) && isinf(ignores));
    ck_assert_float_eq(finite, 3);
    ck_assert_int_eq(qg_bits_of_float(qg_amax_step(QG_AMAX_PROPAGATES_NAN, 0, -0.0f)), 0);
}
END_TEST

int main(void) {
    const TTest *tests[] = {rceil_is_exact_and_its_float_forms_agree,
                            the_float_forms_of_rceil_differ_at_one_pattern,
                            rules_are_ordered,
                            exponents_come_from_bits_not_from_logarithms,
                            even_rounds_up_from_its_threshold,
                            nearest_turns_at_one_and_a_half,
                            largest_scales_of_finite_data,
                            doubling_a_block_moves_the_scale_by_one,
                            transformer_engines_pow2_is_rceil,
                            block_formulas_differ_in_277_and_408_codes,
                            small_block_scales_go_to_zero_or_clip,
                            tensor_scales,
                            amax_takes_what_its_policy_says};
    return RUN_SUITE("scale_rules", tests);
}
