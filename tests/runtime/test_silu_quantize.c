// M13 (spec/seed-systems.md C.2): SiLU times up, then quantized: the emulator's and the CPU
// runtime's bytes are those of the steps written out here, for every recipe, input type, storage,
// instruction set and number of threads; each rounding point counts; errors as of quantize.
#include <block_data.h>
#include <cpu_check.h>
#include <require.h>
#include <run_suite.h>

#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <qg_silu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 14, GUARD = 64, POISON = 0xa5 };

static float gate[MOST], up[MOST], wide_gate[MOST], wide_up[MOST];

// ------------------------------------------------------------------------- the steps, written out

// Nearest even, by halves of the step; overflow to infinity; NaN is 7fc0.
static float rounded_to_bf16(float x) {
    if (isnan(x))
        return qg_float_of_bits(0x7fc00000u);
    if (isinf(x) || x == 0.0f)
        return x;
    int exponent;
    (void)frexp((double)x, &exponent);
    double step = ldexp(1.0, (exponent < -125 ? -125 : exponent) - 8);
    double low = floor((double)x / step), rest = (double)x / step - low;
    low += rest > 0.5 || (rest == 0.5 && fmod(low, 2.0) != 0.0);
    return copysignf((float)(low * step), x); // beyond the largest: infinity
}

// The right steps, and wrong ones: each leaves one rounding out or takes another order.
enum step {
    RIGHT,
    GATE_NOT_ROUNDED,
    UP_NOT_ROUNDED,
    RESULT_NOT_ROUNDED,
    SIGMOID_ROUNDED,
    SILU_ROUNDED,
    UP_BEFORE_SIGMOID,
    GATE_DIVIDED,
    ALL_IN_BINARY64,
    STEPS
};

static const char *const step_names[] = {
    "right",        "gate not rounded", "up not rounded", "result not rounded", "sigmoid rounded",
    "SiLU rounded", "up first",         "gate divided",   "all in binary64"};

static float activated(enum step step, float gate_value, float up_value) {
    float g = step == GATE_NOT_ROUNDED ? gate_value : rounded_to_bf16(gate_value);
    float u = step == UP_NOT_ROUNDED ? up_value : rounded_to_bf16(up_value);
    if (step == ALL_IN_BINARY64)
        return rounded_to_bf16((float)((double)g / (1.0 + exp(-(double)g)) * (double)u));
    volatile float e = qg_exponential(-g);
    volatile float below = 1.0f + e;
    volatile float sigmoid = 1.0f / below;
    if (step == SIGMOID_ROUNDED)
        sigmoid = rounded_to_bf16(sigmoid);
    volatile float silu = step == GATE_DIVIDED ? g / below : g * sigmoid;
    if (step == SILU_ROUNDED)
        silu = rounded_to_bf16(silu);
    volatile float product = silu * u;
    if (step == UP_BEFORE_SIGMOID) {
        volatile float both = g * u;
        product = both * sigmoid;
    }
    return step == RESULT_NOT_ROUNDED ? product : rounded_to_bf16(product);
}

// ------------------------------------------------------------------------------------------- data

static float widened(qg_format type, const void *x, int64_t i) {
    qg_format_info info = qg_format_describe(type);
    return type == QG_FORMAT_FP32 ? ((const float *)x)[i]
                                  : (float)qg_decode(&info, ((const uint16_t *)x)[i]);
}

// Fills gate and up, of `type`, and what they are in binary32.
static void fill(qg_format type, int kind, uint64_t seed, int64_t count) {
    block_data_fill(seed, kind, wide_gate, count);
    block_data_fill(seed + 1, kind, wide_up, count);
    if (type == QG_FORMAT_FP32) {
        memcpy(gate, wide_gate, (size_t)count * sizeof *gate);
        memcpy(up, wide_up, (size_t)count * sizeof *up);
        return;
    }
    cpu_check_narrow(type, wide_gate, count, (uint16_t *)(void *)gate);
    cpu_check_narrow(type, wide_up, count, (uint16_t *)(void *)up);
    for (int64_t i = 0; i < count; i++) {
        wide_gate[i] = widened(type, gate, i);
        wide_up[i] = widened(type, up, i);
    }
}

START_TEST(m13_emulator_takes_the_written_steps) {
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    static float r[MOST];
    for (int t = 0; t < 3; t++)
        for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++) {
            fill(types[t], kind, (uint64_t)(100 + t), MOST);
            ck_assert_int_eq(qg_emulator_silu_times_up(MOST, types[t], gate, up, r), QG_OK);
            for (int64_t i = 0; i < MOST; i++) {
                float wanted = activated(RIGHT, wide_gate[i], wide_up[i]);
                REQUIRE(qg_bits_of_float(r[i]) == qg_bits_of_float(wanted),
                        "type %d, gate %a, up %a: %a, not %a", t, (double)wide_gate[i],
                        (double)wide_up[i], (double)r[i], (double)wanted);
            }
        }
    ck_assert_int_eq(qg_emulator_silu_times_up(1, QG_FORMAT_E4M3, gate, up, r), QG_ERROR_ARGUMENT);
}
END_TEST

// ------------------------------------------------------------------------------------- the bytes

typedef struct result {
    uint8_t *codes, *scales;
    float tensor;
} result;

static uint8_t *guarded(int64_t size) {
    uint8_t *p = malloc((size_t)(size + 2 * GUARD));
    ck_assert_ptr_nonnull(p);
    memset(p, POISON, (size_t)(size + 2 * GUARD));
    return p + GUARD;
}

static void release(uint8_t *p, int64_t size) {
    for (int64_t i = 0; i < GUARD; i++)
        REQUIRE(p[-1 - i] == POISON && p[size + i] == POISON, "a guard byte is written");
    free(p - GUARD);
}

static result result_of(const qg_storage_shape *shape) {
    return (result){guarded(shape->codes_size), guarded(shape->scales_size), 0.0f};
}

static void discard(result *r, const qg_storage_shape *shape) {
    release(r->codes, shape->codes_size);
    release(r->scales, shape->scales_size);
}

static bool is_same(const result *a, const result *b, const qg_storage_shape *shape) {
    return memcmp(a->codes, b->codes, (size_t)shape->codes_size) == 0 &&
           memcmp(a->scales, b->scales, (size_t)shape->scales_size) == 0 &&
           (!shape->shape.has_tensor_scale ||
            memcmp(&a->tensor, &b->tensor, sizeof a->tensor) == 0);
}

// One case: m x k of options.input_type in gate and up.
typedef struct silu_case {
    const char *name;
    qg_recipe recipe;
    qg_storage storage;
    qg_quantize_options options;
    int64_t m, k;
} silu_case;

static void run(const char *backend, const silu_case *c, int threads, result *out) {
    const char *impl = NULL;
    qg_quantize_options options = c->options;
    options.threads = threads;
    ck_assert_msg(qg_backend_find(backend)->silu_quantize(&c->recipe, &options, &c->storage, c->m,
                                                          c->k, gate, up, out->codes, out->scales,
                                                          &out->tensor, &impl) == QG_OK,
                  "%s: %s", c->name, qg_detail());
    ck_assert_ptr_nonnull(impl);
    ck_assert(options.input_type == c->options.input_type);
}

static void check_case(const silu_case *c) {
    static float r[MOST];
    static uint16_t narrow[MOST];
    static const int threads[] = {1, 3};
    qg_storage_shape shape;
    ck_assert_msg(qg_storage_shape_of(&c->recipe, &c->storage, c->m, c->k, &shape) == QG_OK, "%s",
                  qg_detail());
    result wanted = result_of(&shape);
    for (int64_t i = 0; i < c->m * c->k; i++) {
        r[i] = activated(RIGHT, wide_gate[i], wide_up[i]);
        narrow[i] = (uint16_t)(qg_bits_of_float(r[i]) >> 16);
    }
    qg_quantize_options options = c->options;
    options.input_type = QG_FORMAT_BF16;
    ck_assert_msg(qg_backend_find("emulator")
                          ->quantize(&c->recipe, &options, &c->storage, c->m, c->k, narrow,
                                     wanted.codes, wanted.scales, &wanted.tensor, NULL) == QG_OK,
                  "%s: %s", c->name, qg_detail());
    for (size_t i = 0; i == 0 || cpu_check_isa(i - 1); i++)
        for (int t = 0; t < 2; t++) {
            const char *isa = i ? cpu_check_isa(i - 1) : NULL;
            result got = result_of(&shape);
            if (isa)
                ck_assert_int_eq(qg_cpu_use_isa(isa), QG_OK);
            run(isa ? "cpu" : "emulator", c, threads[t], &got);
            REQUIRE(is_same(&got, &wanted, &shape), "%s: %s, %d threads, %lld x %lld", c->name,
                    isa ? isa : "emulator", threads[t], (long long)c->m, (long long)c->k);
            discard(&got, &shape);
        }
    ck_assert_int_eq(qg_cpu_use_isa(NULL), QG_OK);
    discard(&wanted, &shape);
}

START_TEST(m13_emulator_and_cpu_give_the_same_bytes) {
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    static const float history[] = {2.5f};
    static const int64_t ms[] = {3, 1, 129}, ks[] = {300, 128, 96};
    for (size_t i = 0; qg_recipe_listed(i); i++)
        for (int t = 0; t < 3; t++) {
            silu_case c = {.name = qg_recipe_listed(i)};
            ck_assert_int_eq(qg_recipe_find(c.name, &c.recipe), QG_OK);
            c.m = ms[(i + (size_t)t) % 3];
            c.k = ks[(i + (size_t)t) % 3];
            c.options = (qg_quantize_options){.input_type = types[t],
                                              .seed = 5,
                                              .stream = QG_STREAM_ROUNDING,
                                              .amax_history = history,
                                              .history_length = 1};
            c.storage.packed = i % 2 != 0;
            if (c.recipe.structure == QG_STRUCTURE_PLAIN) {
                c.storage.order.kind = (int32_t)(i % 5);
                c.storage.order.padding = 16;
            }
            if (t == 1)
                c.recipe.conversion.rounding = (qg_rounding){QG_ROUND_STOCHASTIC_A, 16};
            fill(types[t], i % 3 ? BLOCK_DATA_ORDINARY : BLOCK_DATA_MIXED, i, c.m * c.k);
            check_case(&c);
        }
}
END_TEST

// Large enough for several threads.
START_TEST(m13_threads_change_nothing) {
    silu_case c = {.name = "metrale_act128", .m = 16, .k = 1024};
    ck_assert_int_eq(qg_recipe_find(c.name, &c.recipe), QG_OK);
    c.options.input_type = QG_FORMAT_FP32;
    fill(QG_FORMAT_FP32, BLOCK_DATA_ORDINARY, 9, c.m * c.k);
    check_case(&c);
}
END_TEST

// ------------------------------------------------------------------------------- rounding points

static float right_r[MOST], r[MOST];

// How many activations of `step` differ from the right ones, and how many bytes of the quantized
// tensor; the right steps, as binary32, have the bytes of silu_quantize.
static int64_t differing_bytes(const silu_case *c, const qg_storage_shape *shape,
                               const result *right, enum step step, int64_t *activations) {
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32};
    int64_t bytes = 0;
    result got = result_of(shape);
    for (int64_t i = 0; i < c->m * c->k; i++) {
        r[i] = activated(step, wide_gate[i], wide_up[i]);
        *activations += qg_bits_of_float(r[i]) != qg_bits_of_float(right_r[i]);
    }
    ck_assert_int_eq(qg_emulator_quantize(&c->recipe, &options, c->m, c->k, r, got.codes,
                                          got.scales, NULL, NULL),
                     QG_OK);
    for (int64_t i = 0; i < shape->codes_size; i++)
        bytes += got.codes[i] != right->codes[i];
    for (int64_t i = 0; i < shape->scales_size; i++)
        bytes += got.scales[i] != right->scales[i];
    discard(&got, shape);
    return bytes;
}

// A rounding that is left out or added shows in the bytes; another order of operations, which
// changes the last bit of a binary32, in some activation.
START_TEST(m13_every_rounding_point_counts) {
    enum { TENSORS = 64 };
    silu_case c = {.name = "metrale_act128", .m = 16, .k = 1024};
    ck_assert_int_eq(qg_recipe_find(c.name, &c.recipe), QG_OK);
    c.options.input_type = QG_FORMAT_FP32;
    qg_storage_shape shape;
    ck_assert_int_eq(qg_storage_shape_of(&c.recipe, &c.storage, c.m, c.k, &shape), QG_OK);
    int64_t bytes[STEPS] = {0}, activations[STEPS] = {0};
    result right = result_of(&shape);
    for (uint64_t tensor = 0; tensor < TENSORS; tensor++) {
        fill(QG_FORMAT_FP32, BLOCK_DATA_ORDINARY, 1000 + 2 * tensor, c.m * c.k);
        run("cpu", &c, 1, &right);
        for (int64_t i = 0; i < c.m * c.k; i++)
            right_r[i] = activated(RIGHT, wide_gate[i], wide_up[i]);
        for (int step = 0; step < STEPS; step++)
            if ((step == RIGHT && tensor < 2) || (step && !activations[step]))
                bytes[step] +=
                    differing_bytes(&c, &shape, &right, (enum step)step, &activations[step]);
    }
    for (int step = 0; step < STEPS; step++)
        printf("%s: %lld activations, %lld bytes differ\n", step_names[step],
               (long long)activations[step], (long long)bytes[step]);
    fflush(stdout);
    ck_assert(bytes[RIGHT] == 0 && activations[RIGHT] == 0);
    for (int step = 1; step < STEPS; step++)
        REQUIRE(activations[step] > 0 && (bytes[step] > 0 || step > SILU_ROUNDED), "%s: not seen",
                step_names[step]);
    discard(&right, &shape);
}
END_TEST

// ----------------------------------------------------------------------------------------- errors

START_TEST(errors_are_those_of_quantize) {
    static const char *const names[] = {"emulator", "cpu"};
    static const int64_t large = (int64_t)1 << 62;
    uint8_t codes[64] = {0}, scales[64] = {0};
    for (int b = 0; b < 2; b++) {
        const qg_backend *backend = qg_backend_find(names[b]);
        qg_recipe mx, two_level, delayed;
        ck_assert_int_eq(qg_recipe_find("mxfp8", &mx), QG_OK);
        ck_assert_int_eq(qg_recipe_find("nvfp4", &two_level), QG_OK);
        ck_assert_int_eq(qg_recipe_find("te_delayed_e4m3", &delayed), QG_OK);
        qg_quantize_options fp32 = {.input_type = QG_FORMAT_FP32};
        qg_quantize_options e4m3 = {.input_type = QG_FORMAT_E4M3};
        qg_storage bad = {
            .order = {QG_ORDER_K_MAJOR, 0}
        };
        struct {
            const qg_recipe *recipe;
            const qg_quantize_options *options;
            const qg_storage *storage;
            int64_t m, k;
            qg_status status;
        } cases[] = {
            {&mx,        &fp32, NULL, 1,     32,    QG_OK            },
            {&mx,        &fp32, NULL, 0,     32,    QG_ERROR_ARGUMENT},
            {&mx,        &fp32, NULL, 1,     0,     QG_ERROR_ARGUMENT},
            {&mx,        &fp32, NULL, -1,    32,    QG_ERROR_ARGUMENT},
            {&mx,        &fp32, NULL, large, 32,    QG_ERROR_OVERFLOW},
            {&mx,        &fp32, NULL, 32,    large, QG_ERROR_OVERFLOW},
            {&mx,        &e4m3, NULL, 1,     32,    QG_ERROR_ARGUMENT},
            {&mx,        &fp32, &bad, 1,     32,    QG_ERROR_ARGUMENT},
            {&two_level, &fp32, NULL, 1,     32,    QG_ERROR_ARGUMENT}, // no room for its scale
            {&delayed,   &fp32, NULL, 1,     32,    QG_ERROR_ARGUMENT}, // no history
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            qg_status status =
                backend->silu_quantize(cases[i].recipe, cases[i].options, cases[i].storage,
                                       cases[i].m, cases[i].k, gate, up, codes, scales, NULL, NULL);
            REQUIRE(status == cases[i].status, "%s, case %d: status %d", names[b], (int)i,
                    (int)status);
        }
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {m13_emulator_takes_the_written_steps,
                            m13_emulator_and_cpu_give_the_same_bytes, m13_threads_change_nothing,
                            m13_every_rounding_point_counts, errors_are_those_of_quantize};
    return RUN_SUITE("silu_quantize", tests);
}
