// See slow_recipe.h. Exponents are searched for, not read from bits; sums and products go through
// binary64, where they are exact or rounded harmlessly; quotients through 128-bit integers.
#include <slow_recipe.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

static const int64_t one = 0x3f800000, nan32 = 0x7fffffff;

#define OCP      SLOW_AMAX_ALL, 0, 255, 255, SLOW_NAN_ENCODED, 0, 0, 0, 0
#define NVFP4    SLOW_AMAX_NOT_NAN, 0, -1, -1, SLOW_NAN_LARGEST, 0, 0, 0, 0
#define DEEPSEEK SLOW_AMAX_ALL, -1, 0x7fffffff, -1, SLOW_NAN_ENCODED, 1e-10f, 0, 0, 0
#define TE       SLOW_AMAX_ALL, 0x3f800000, 0x3f800000, 0x3f800000, SLOW_NAN_ENCODED, 0, 0, 0, 1
#define RNE                                                                                        \
    { SLOW_RNE, 0, 1, 0 }

static const slow_recipe table[] = {
  // clang-format off
    {"mxfp8", "e4m3", "floor", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"mxfp8_e5m2", "e5m2", "floor", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"mxfp6_e2m3", "e2m3", "floor", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"mxfp6_e3m2", "e3m2", "floor", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"mxfp4", "e2m1", "floor", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"mxint8", "mxint8", "floor", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"mxint6", "mxint6", "floor", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"mxint4", "mxint4", "floor", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"torchao_mxfp8_floor", "e4m3", "floor", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"torchao_mxfp8_ceil", "e4m3", "ceil", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"torchao_mxfp8_even", "e4m3", "even", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"torchao_mxfp8_rceil", "e4m3", "rceil", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"te_mxfp8", "e4m3", "rceil_mul", 1, 32, SLOW_AMAX_ALL, 0, 255, 254, SLOW_NAN_ENCODED, 0, 0, 0, 0, SLOW_PLAIN, 0, RNE},
    {"neuron_mxfp8", "e4m3", "floor_plus1", 1, 32, OCP, SLOW_PLAIN, 0, RNE},
    {"nvfp4", "e2m1", "two_level", 1, 16, NVFP4, SLOW_PLAIN, 0, RNE},
    {"nvfp4_torchao", "e2m1", "two_level_torchao", 1, 16, SLOW_AMAX_NOT_NAN, -1, -1, -1, 7, 0, 0, 0x1p-6f, 0, SLOW_PLAIN, 0, RNE},
    {"nvfp4_4over6", "e2m1", "four_over_six", 1, 16, NVFP4, SLOW_PLAIN, 0, RNE},
    {"nvint4", "int4", "two_level", 1, 16, NVFP4, SLOW_PLAIN, 0, RNE},
    {"rlx_e4m3", "e4m3", "amax", 0, 0, SLOW_AMAX_FINITE, 0x3f800000, -1, -1, 0, 0, 0, 0, 0, SLOW_PLAIN, 0, RNE},
    {"rlx_mxfp8", "e4m3", "rceil", 1, 32, SLOW_AMAX_NOT_NAN, 127, -1, 254, 0, 0, 0, 0, 0, SLOW_PLAIN, 0, RNE},
    {"rlx_nvfp4", "e2m1", "amax_ue4m3", 1, 16, SLOW_AMAX_FINITE, 0x38, -1, -1, 0, 0, 0, 0, 0, SLOW_PLAIN, 0, RNE},
    {"rlx_mxfp4x2", "e2m1", "amax", 1, 32, SLOW_AMAX_FINITE, 0x3f800000, -1, -1, 0, 0, 0, 0, 0, SLOW_TWO_PLANES, 0, RNE},
    {"metrale_act128", "e4m3", "amax", 1, 128, SLOW_AMAX_NOT_NAN, -1, -1, -1, 0x7E, 0, 1e-12f, 0, 0, SLOW_PLAIN, 0, RNE},
    {"deepseek_act128", "e4m3", "amax", 1, 128, DEEPSEEK, SLOW_PLAIN, 0, RNE},
    {"deepseek_w128x128", "e4m3", "amax", 128, 128, DEEPSEEK, SLOW_PLAIN, 0, RNE},
    {"te_e4m3", "e4m3", "amax_mul", 0, 0, TE, SLOW_PLAIN, 0, RNE},
    {"te_e5m2", "e5m2", "amax_mul", 0, 0, TE, SLOW_PLAIN, 0, RNE},
    {"te_e4m3_pow2", "e4m3", "amax_pow2", 0, 0, TE, SLOW_PLAIN, 0, RNE},
    {"te_e5m2_pow2", "e5m2", "amax_pow2", 0, 0, TE, SLOW_PLAIN, 0, RNE},
    {"te_delayed_e4m3", "e4m3", "delayed", 0, 0, SLOW_AMAX_ALL, -1, -1, -1, SLOW_NAN_ENCODED, 0, 0, 0, 0, SLOW_PLAIN, 0, RNE},
    {"te_delayed_e5m2", "e5m2", "delayed", 0, 0, SLOW_AMAX_ALL, -1, -1, -1, SLOW_NAN_ENCODED, 0, 0, 0, 0, SLOW_PLAIN, 0, RNE},
    {"vllm_ue8m0", "e4m3", "rceil", 1, 128, SLOW_AMAX_NOT_NAN, -1, -1, 254, SLOW_NAN_ENCODED, 0, 1e-10f, 0, 0, SLOW_PLAIN, 0, RNE},
    {"vllm_ue8m0_triton", "e4m3", "rceil", 1, 128, SLOW_AMAX_NOT_NAN, -1, -1, 254, SLOW_NAN_ENCODED, 1e-10f, 0, 0, 0, SLOW_PLAIN, 0, RNE},
    {"mx9", "f8e1m6", "floor", 1, 16, OCP, SLOW_PAIRS, 0, RNE},
    {"mx6", "f5e1m3", "floor", 1, 16, OCP, SLOW_PAIRS, 0, RNE},
    {"mx4", "f3e1m1", "floor", 1, 16, OCP, SLOW_PAIRS, 0, RNE},
    {"msfp16", "f8e1m6", "floor", 1, 16, OCP, SLOW_PAIRS_WITHOUT_SHIFT, 0, RNE},
    {"msfp12", "f4e1m2", "floor", 1, 16, OCP, SLOW_PAIRS_WITHOUT_SHIFT, 0, RNE},
  // clang-format on
};

slow_recipe slow_recipe_find(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i];
    return (slow_recipe){0};
}

static int is_two_level(const char *rule) {
    return strncmp(rule, "two_level", 9) == 0 || strcmp(rule, "four_over_six") == 0;
}

// Bytes of one scale.
static int scale_width(const char *rule) {
    static const char *const fp32[] = {"amax",      "amax_rcp", "amax_mul",
                                       "amax_pow2", "delayed",  "fixed"};
    for (size_t i = 0; i < sizeof fp32 / sizeof fp32[0]; i++)
        if (strcmp(rule, fp32[i]) == 0)
            return 4;
    return 1;
}

static int is_ue4m3(const char *rule) {
    return is_two_level(rule) || strcmp(rule, "amax_ue4m3") == 0;
}

slow_recipe slow_recipe_generic(const char *element, const char *rule, int rows, int columns) {
    static const slow_recipe e8m0 = {"", "", "", 0, 0, OCP, SLOW_PLAIN, 0, RNE};
    static const slow_recipe ue4m3 = {"", "", "", 0, 0, NVFP4, SLOW_PLAIN, 0, RNE};
    static const slow_recipe fp32 = {
        "", "", "",         0, 0,  SLOW_AMAX_FINITE, 0x3f800000, -1, -1, SLOW_NAN_ENCODED, 0, 0,
        0,  0,  SLOW_PLAIN, 0, RNE};
    slow_recipe r = is_ue4m3(rule) ? ue4m3 : scale_width(rule) == 4 ? fp32 : e8m0;
    r.name = element;
    r.element = element;
    r.rule = rule;
    r.rows = rows;
    r.columns = columns;
    return r;
}

int slow_scale_bytes(const slow_recipe *recipe) {
    int width = scale_width(recipe->rule);
    return recipe->structure == SLOW_PLAIN ? width : 2 * width;
}

// ------------------------------------------------------------------------------------- arithmetic

static float float_of(int64_t bits) {
    uint32_t word = (uint32_t)bits;
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

static uint32_t bits_of(float x) {
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

float slow_divide(float a, float b) {
    if (a == 0.0f || b == 0.0f || isinf(a) || isinf(b) || isnan(a) || isnan(b))
        return a / b;
    int ea, eb;
    // |a| = ma 2^(ea - 24), |b| = mb 2^(eb - 24), both m in [2^23, 2^24)
    uint64_t ma = (uint64_t)ldexp(frexp(fabs((double)a), &ea), 24);
    uint64_t mb = (uint64_t)ldexp(frexp(fabs((double)b), &eb), 24);
    wide numerator = (wide)ma << 60;
    uint64_t quotient = (uint64_t)(numerator / mb); // in (2^59, 2^61]
    int sticky = numerator % mb != 0, exponent = ea - eb - 60;
    int top = 60;
    while (!(quotient >> top & 1))
        top--;
    int kept = top + exponent >= -126 ? 24 : top + exponent + 150; // bits of the result
    float magnitude = 0.0f;
    if (kept >= 0) {
        int drop = top + 1 - kept;
        uint64_t whole = quotient >> drop, rest = quotient & ((1ull << drop) - 1);
        uint64_t half = 1ull << (drop - 1);
        whole += rest > half || (rest == half && (sticky || (whole & 1)));
        magnitude = (float)ldexp((double)whole, exponent + drop);
    }
    return signbit(a) != signbit(b) ? -magnitude : magnitude;
}

static float times(float a, float b) { return (float)((double)a * (double)b); }
static float minus(float a, float b) { return (float)((double)a - (double)b); }
static float plus(float a, float b) { return (float)((double)a + (double)b); }
static float least(float a, float b) { return a < b ? a : b; }
static float most(float a, float b) { return a > b ? a : b; }

static int is_power_of_two(float x) {
    int e;
    return x > 0 && isfinite(x) && frexp((double)x, &e) == 0.5;
}

// ------------------------------------------------------------------------------------- the element

typedef struct element {
    slow_format *format, *ue4m3;
    double max;
    int emax, mbits;
} element;

static int mantissa_bits(const char *name, int bits) {
    const char *m = strrchr(name, 'm');
    if (strstr(name, "int"))
        return bits - 2;
    if (strcmp(name, "bf16") == 0)
        return 7;
    if (strcmp(name, "fp16") == 0 || strcmp(name, "tf32") == 0)
        return 10;
    if (strncmp(name, "binary8p", 8) == 0)
        return name[8] - '1';
    return m[1] - '0';
}

// The model of a format, kept for the next call: wide formats take long to list.
static slow_format *format_of(const char *name) {
    static struct {
        char name[24];
        slow_format *format;
    } kept[64];
    size_t i = 0;
    for (; kept[i].format; i++)
        if (strcmp(kept[i].name, name) == 0)
            return kept[i].format;
    kept[i].format = slow_format_create(name);
    strncat(kept[i].name, name, sizeof kept[i].name - 1);
    return kept[i].format;
}

static element element_open(const char *name) {
    element e = {.format = format_of(name), .ue4m3 = format_of("ue4m3")};
    e.max = slow_value(e.format, slow_value_count(e.format) - 1);
    e.emax = ilogb(e.max);
    e.mbits = mantissa_bits(name, slow_format_bits(e.format));
    return e;
}

static uint32_t to_ue4m3(const element *e, float x) {
    slow_conversion c = RNE;
    return (uint32_t)slow_encode(e->ue4m3, (double)x, &c, 0);
}

static float from_ue4m3(const element *e, uint32_t code) {
    return (float)slow_decode(e->ue4m3, code);
}

// ------------------------------------------------------------------------------------- e8m0 rules

static int clamp(int e) { return e < -127 ? -127 : e > 127 ? 127 : e; }

// The smallest e >= -127 with x <= f 2^e; 127 if there is none below.
static int exponent_at_least(double x, double f) {
    int e = -127;
    while (e < 127 && !(x <= ldexp(f, e)))
        e++;
    return e;
}

// The power of two nearest to x > 0, halfway at 1.5.
static int exponent_nearest(float x, int ties_up) {
    if (isinf(x))
        return 127;
    int e = ilogb((double)x);
    double ratio = ldexp((double)x, -e);
    int tie = ties_up || (e + 127) % 2 != 0;
    return clamp(e + (ratio > 1.5 || (ratio == 1.5 && tie)));
}

static double squared_error(const element *e, int exponent, const float *x, int64_t n) {
    slow_conversion c = RNE;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        uint64_t code = slow_encode(e->format, ldexp((double)x[i], -exponent), &c, 0);
        double error = ldexp(slow_decode(e->format, code), exponent) - (double)x[i];
        sum += error * error;
    }
    return sum;
}

// Every exponent is tried.
static int exponent_best(const element *e, const float *x, int64_t n) {
    int best = -127;
    double error = squared_error(e, best, x, n);
    for (int t = -126; t <= 127; t++) {
        double candidate = squared_error(e, t, x, n);
        if (candidate < error) {
            error = candidate;
            best = t;
        }
    }
    return best;
}

static int exponent_of(const element *e, const char *rule, float amax, const float *x, int64_t n) {
    float f = (float)e->max;
    int k = ilogb((double)amax);
    double significand = ldexp((double)amax, -k);
    if (strcmp(rule, "floor") == 0)
        return clamp(k - e->emax);
    if (strcmp(rule, "floor_plus1") == 0)
        return clamp(k - e->emax + 1);
    if (strcmp(rule, "ceil") == 0)
        return clamp(k - e->emax + (significand > 1));
    if (strcmp(rule, "even") == 0)
        return clamp(k - e->emax + (significand >= 2 - ldexp(1, -(e->mbits + 1))));
    if (strcmp(rule, "rceil") == 0)
        return exponent_at_least((double)amax, e->max);
    if (strcmp(rule, "rceil_mul") == 0)
        return exponent_at_least((double)times(amax, slow_divide(1, f)), 1);
    if (strcmp(rule, "rceil_div") == 0)
        return exponent_at_least((double)slow_divide(amax, f), 1);
    if (strcmp(rule, "best") == 0)
        return exponent_best(e, x, n);
    if (strncmp(rule, "nearest", 7) != 0) {
        fprintf(stderr, "slow_recipe.c lacks the scale rule %s: add it to exponent_of\n", rule);
        abort();
    }
    float ratio = slow_divide(amax, f);
    return ratio == 0 ? -127 : exponent_nearest(ratio, strcmp(rule, "nearest_up") == 0);
}

// ------------------------------------------------------------------------------------ one block

typedef struct scale {
    uint32_t bits;
    float x;
    int multiplies; // by operand, else divides by it
    float operand;
} scale;

typedef struct block {
    const slow_recipe *r;
    const slow_input *in;
    const element *e;
    float tensor;
    int64_t n;
    int64_t *index; // of the elements
    float *x;
} block;

static double scaled(const scale *s, float x) {
    double exact = s->multiplies ? (double)x * (double)s->operand : (double)x / (double)s->operand;
    if (isnan(s->x))
        return NAN;
    if (!s->multiplies && s->operand == 0)
        return isfinite(x) ? copysign(0.0, (double)x) : (double)x;
    if (is_power_of_two(s->operand))
        return exact;
    return (double)(s->multiplies ? times(x, s->operand) : slow_divide(x, s->operand));
}

static uint64_t code_of(const block *b, const scale *s, float x, int64_t index) {
    double v = scaled(s, x);
    slow_conversion nearest = RNE;
    if (isnan(v) && !isnan(s->x) && b->r->nan_code >= 0)
        return (uint64_t)b->r->nan_code;
    if (isnan(v) && !isnan(s->x) && b->r->nan_code == SLOW_NAN_LARGEST)
        return slow_encode(b->e->format, b->e->max, &nearest, 0);
    return slow_encode(b->e->format, v, &b->r->conversion, b->in->words ? b->in->words[index] : 0);
}

static float value_of(const block *b, const scale *s, uint64_t code) {
    return (float)(slow_decode(b->e->format, code) * (double)s->x);
}

static float amax_of(const slow_recipe *r, const float *x, int64_t n) {
    float amax = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i]) && r->amax == SLOW_AMAX_ALL)
            return NAN;
        if (isnan(x[i]) || (isinf(x[i]) && r->amax == SLOW_AMAX_FINITE))
            continue;
        amax = most(amax, fabsf(x[i]));
    }
    return amax;
}

static float encode_scale(const block *b) {
    int is_46 = strcmp(b->r->rule, "four_over_six") == 0;
    float full = (float)(b->e->max * (is_46 ? 256 : 448));
    if (b->tensor == 0)
        return 1;
    float s = slow_divide(full, b->tensor);
    return s == 0 ? 1 : least(s, FLT_MAX);
}

// A scale with known bits.
static scale scale_from(const block *b, uint32_t bits) {
    const char *rule = b->r->rule;
    scale s = {.bits = bits};
    if (scale_width(rule) == 4) {
        s.x = s.operand = float_of(bits);
        s.multiplies = strcmp(rule, "amax_rcp") == 0 || strcmp(rule, "amax_mul") == 0 ||
                       strcmp(rule, "delayed") == 0;
        if (s.multiplies)
            s.operand = least(slow_divide(1, s.x), FLT_MAX);
        return s;
    }
    if (!is_ue4m3(rule)) {
        s.x = s.operand = bits == 255 ? NAN : (float)ldexp(1, (int)bits - 127);
        return s;
    }
    float sb = from_ue4m3(b->e, bits);
    if (!is_two_level(rule)) {
        s.x = s.operand = sb;
        return s;
    }
    s.multiplies = 1;
    if (strcmp(rule, "two_level_torchao") == 0) {
        s.x = times(b->tensor, sb);
        s.operand = least(slow_divide(slow_divide(1, b->tensor), sb), FLT_MAX);
    } else {
        float bound = strcmp(rule, "four_over_six") == 0 ? 256 : 448;
        s.x = times(times(sb, b->tensor), slow_divide(1, (float)(b->e->max * (double)bound)));
        float product = times(sb, slow_divide(1, encode_scale(b)));
        s.operand = product == 0 ? FLT_MAX : least(slow_divide(1, product), FLT_MAX);
    }
    return s;
}

static float error46(const block *b, const scale *s) {
    float sum = 0;
    for (int64_t i = 0; i < b->n; i++) {
        if (isnan(b->x[i]))
            continue;
        float q = (float)slow_decode(b->e->format, code_of(b, s, b->x[i], b->index[i]));
        float value = slow_divide(times(times(q, from_ue4m3(b->e, s->bits)), b->tensor),
                                  (float)(b->e->max * 256));
        float error = minus(value, b->x[i]);
        sum = plus(sum, times(error, error));
    }
    return sum;
}

static scale scale_ue4m3(const block *b, float amax) {
    const char *rule = b->r->rule;
    float f = (float)b->e->max, wanted;
    if (strcmp(rule, "two_level") == 0)
        wanted = times(amax, times(encode_scale(b), slow_divide(1, f)));
    else if (strcmp(rule, "two_level_torchao") == 0)
        wanted = slow_divide(slow_divide(amax, f), b->tensor);
    else if (strcmp(rule, "amax_ue4m3") == 0)
        wanted = slow_divide(amax, f);
    else {
        float pre = times(slow_divide(amax, f), encode_scale(b));
        scale six = scale_from(b, to_ue4m3(b->e, most(least(pre, 448), b->r->least_block)));
        scale four =
            scale_from(b, to_ue4m3(b->e, most(least(times(1.5f, pre), 448), b->r->least_block)));
        return error46(b, &four) < error46(b, &six) ? four : six;
    }
    return scale_from(b, to_ue4m3(b->e, most(wanted, b->r->least_block)));
}

static scale scale_inverse(const block *b, double f, float amax) {
    if (isinf(amax))
        return scale_from(b, bits_of(amax));
    float huge = b->r->input_max ? b->in->input_max : FLT_MAX;
    float s = amax == 0 ? huge : slow_divide((float)f, amax);
    if (isinf(s))
        s = huge;
    float x = s == 0 ? FLT_MAX : least(slow_divide(1, s), FLT_MAX);
    return (scale){bits_of(x), x, 1, s};
}

static scale scale_fp32(const block *b, float amax) {
    const char *rule = b->r->rule;
    float f = (float)b->e->max;
    if (strcmp(rule, "fixed") == 0)
        return scale_from(b, bits_of(b->r->fixed));
    if (strcmp(rule, "delayed") == 0) {
        float a = b->in->history_amax;
        return a > 0 && isfinite(a) ? scale_inverse(b, b->e->max, a) : scale_from(b, (uint32_t)one);
    }
    if (strcmp(rule, "amax_mul") == 0)
        return scale_inverse(b, b->e->max, amax);
    if (strcmp(rule, "amax_pow2") == 0 && isfinite(amax)) {
        int e = exponent_at_least((double)amax, b->e->max);
        if (isinf(slow_divide(f, amax)))
            e = -ilogb((double)(b->r->input_max ? b->in->input_max : FLT_MAX));
        return scale_from(b, bits_of((float)ldexp(1, e)));
    }
    float x = amax == 0 ? 0x1p-149f : slow_divide(amax, f);
    if (isfinite(amax))
        x = least(most(x, 0x1p-149f), FLT_MAX);
    return scale_from(b, bits_of(most(x, b->r->eps_scale)));
}

static scale scale_of(const block *b, float amax) {
    const slow_recipe *r = b->r;
    int edgeless = strcmp(r->rule, "fixed") == 0 || strcmp(r->rule, "delayed") == 0;
    if (!edgeless && isnan(amax))
        return scale_from(b, (uint32_t)(r->nan >= 0                 ? r->nan
                                        : scale_width(r->rule) == 4 ? nan32
                                        : is_ue4m3(r->rule)         ? 0x7F
                                                                    : 255));
    if (!edgeless && isinf(amax) && r->inf >= 0)
        return scale_from(b, (uint32_t)r->inf);
    if (!edgeless && amax == 0 && r->zero >= 0)
        return scale_from(b, (uint32_t)r->zero);
    amax = most(amax, r->eps_amax);
    if (scale_width(r->rule) == 4)
        return scale_fp32(b, amax);
    if (is_ue4m3(r->rule))
        return scale_ue4m3(b, amax);
    int e = isinf(amax) ? 127 : amax == 0 ? -127 : exponent_of(b->e, r->rule, amax, b->x, b->n);
    if (r->eps_scale > 0)
        e = e > exponent_at_least((double)r->eps_scale, 1)
                ? e
                : exponent_at_least((double)r->eps_scale, 1);
    return scale_from(b, (uint32_t)(e + 127));
}

// --------------------------------------------------------------------------------- block structures

static void put(uint8_t *out, uint32_t bits, int bytes) {
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(bits >> (8 * i));
}

static void plain_block(const block *b, uint64_t *codes, uint8_t *scales, float *q) {
    scale s = scale_of(b, amax_of(b->r, b->x, b->n));
    put(scales, s.bits, scale_width(b->r->rule));
    for (int64_t i = 0; i < b->n; i++) {
        codes[b->index[i]] = code_of(b, &s, b->x[i], b->index[i]);
        if (q)
            q[b->index[i]] = value_of(b, &s, codes[b->index[i]]);
    }
}

// value = +-mag 2^(E - t - m + 1); the element model's values are mag 2^(2 - m).
static void pair_block(const block *b, uint64_t *codes, uint8_t *scales, float *q) {
    float amax = amax_of(b->r, b->x, b->n);
    int bad = !isfinite(amax), E = amax == 0 || bad ? -127 : clamp(ilogb((double)amax));
    uint32_t shifts = 0;
    for (int64_t i = 0; i < b->n; i += 2) {
        int64_t count = i + 1 < b->n ? 2 : 1;
        float pair = amax_of(b->r, b->x + i, count);
        int t = pair == 0 ? 1 : bad ? 0 : E - ilogb((double)pair);
        t = bad || b->r->structure == SLOW_PAIRS_WITHOUT_SHIFT ? 0 : t > 1 ? 1 : t;
        t = t < 0 ? 0 : t;
        shifts |= (uint32_t)t << (i / 2);
        float x = bad ? NAN : (float)ldexp(1, E - t - 1);
        scale s = {0, x, 0, x};
        for (int64_t j = i; j < i + count; j++) {
            codes[b->index[j]] = code_of(b, &s, b->x[j], b->index[j]);
            if (q)
                q[b->index[j]] = value_of(b, &s, codes[b->index[j]]);
        }
    }
    scales[0] = bad ? 255 : (uint8_t)(E + 127);
    scales[1] = (uint8_t)shifts;
}

static void two_plane_block(const block *b, uint64_t *codes, uint8_t *scales, float *q) {
    float *rest = malloc((size_t)b->n * sizeof *rest);
    block second = *b;
    int64_t plane = b->in->m * b->in->k;
    scale s0 = scale_of(b, amax_of(b->r, b->x, b->n));
    for (int64_t i = 0; i < b->n; i++) {
        uint64_t code = codes[b->index[i]] = code_of(b, &s0, b->x[i], b->index[i]);
        rest[i] = minus(b->x[i], value_of(b, &s0, code));
    }
    second.x = rest;
    scale s1 = scale_of(&second, amax_of(b->r, rest, b->n));
    for (int64_t i = 0; i < b->n; i++) {
        uint64_t code = codes[plane + b->index[i]] = code_of(&second, &s1, rest[i], b->index[i]);
        if (q)
            q[b->index[i]] = plus(value_of(b, &s0, codes[b->index[i]]), value_of(b, &s1, code));
    }
    put(scales, s0.bits, 4);
    put(scales + 4, s1.bits, 4);
    free(rest);
}

// ----------------------------------------------------------------------------------- whole tensors

static float tensor_scale_of(const slow_recipe *r, const element *e, const slow_input *in) {
    if (!is_two_level(r->rule))
        return 1;
    double full = e->max * (strcmp(r->rule, "four_over_six") == 0 ? 256 : 448);
    float amax = amax_of(r, in->x, in->m * in->k);
    if (isinf(amax))
        amax = (float)full;
    if (strcmp(r->rule, "two_level_torchao") != 0)
        return amax;
    return amax == 0 ? 1 : least(most(slow_divide(amax, (float)full), 0x1p-149f), FLT_MAX);
}

void slow_quantize(const slow_recipe *recipe, const slow_input *in, uint64_t *codes,
                   uint8_t *scales, float *tensor_scale, float *q) {
    element e = element_open(recipe->element);
    int64_t rows = recipe->rows ? recipe->rows : in->m;
    int64_t columns = recipe->columns ? recipe->columns : in->k;
    block b = {.r = recipe, .in = in, .e = &e, .tensor = tensor_scale_of(recipe, &e, in)};
    b.index = malloc((size_t)(in->m * in->k) * sizeof *b.index);
    b.x = malloc((size_t)(in->m * in->k) * sizeof *b.x);
    for (int64_t row = 0; row < in->m; row += rows)
        for (int64_t column = 0; column < in->k; column += columns) {
            b.n = 0;
            for (int64_t i = row; i < row + rows && i < in->m; i++)
                for (int64_t j = column; j < column + columns && j < in->k; j++) {
                    b.index[b.n] = i * in->k + j;
                    b.x[b.n++] = in->x[i * in->k + j];
                }
            if (recipe->structure == SLOW_PLAIN)
                plain_block(&b, codes, scales, q);
            else if (recipe->structure == SLOW_TWO_PLANES)
                two_plane_block(&b, codes, scales, q);
            else
                pair_block(&b, codes, scales, q);
            scales += slow_scale_bytes(recipe);
        }
    if (tensor_scale)
        *tensor_scale = b.tensor;
    free(b.index);
    free(b.x);
}
