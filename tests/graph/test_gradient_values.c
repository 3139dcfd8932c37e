// Gradients against central differences of the same graph run in FP32, op by op.
//
// Inputs are distinct odd multiples of 1/4 and the step is a power of two below 1/8, so that no
// step crosses a kink or a tie. Where loss has degree at most 2 in each element, the central
// difference is the derivative, and as all numbers are short, nothing is rounded: the gradient
// equals it. Elsewhere the bound is h^2/6 max|f'''| for the difference, and for rounding what each
// side of it errs by, over h.
#include <gradient_case.h>
#include <require.h>
#include <run_suite.h>

#include <qg_graph_run.h>
#include <qg_philox.h>

#include <math.h>

enum { INPUTS_MOST = 4, ELEMENTS_MOST = 64, WEIGHT_MOST = 3 };

// How well a difference approximates the derivative. All zero: exactly.
typedef struct accuracy {
    double third;     // largest third derivative of an element of y
    double roundings; // of an element of y, in units of 2^-24 |y|
    double gradient;  // error of the gradient, in units of 2^-24
} accuracy;

typedef struct trial {
    qg_graph *graph; // with y as an output, then the gradients
    qg_node y;
    qg_graph_runner *runner;
    int32_t count;
    qg_graph_feed feeds[INPUTS_MOST];
    int64_t sizes[INPUTS_MOST];
    float values[INPUTS_MOST][ELEMENTS_MOST];
} trial;

// ----------------------------------------------------------------------------------------- running

// Distinct odd multiples of 1/4 around 0, in a random order.
static void fill(float *x, int64_t count, uint64_t seed) {
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(2 * i + 1 - count - count % 2) / 4;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = qg_philox_word(seed, QG_STREAM_DATA, (uint64_t)i) % (uint32_t)(i + 1);
        float other = x[j];
        x[j] = x[i];
        x[i] = other;
    }
}

// -3, -2, -1, 1, 2, 3 in some order, repeated.
static double weight(int64_t i) {
    int64_t place = i * 5 % 6 - WEIGHT_MOST;
    return (double)(place < 0 ? place : place + 1);
}

// The loss: elements of y times small integers, summed.
static qg_node weighted_sum(qg_graph *g, qg_node y) {
    float weights[ELEMENTS_MOST];
    qg_tensor_type type = *qg_graph_node_type(g, y);
    ck_assert_int_le(qg_tensor_elements(&type), ELEMENTS_MOST);
    for (int64_t i = 0; i < qg_tensor_elements(&type); i++)
        weights[i] = (float)weight(i);
    qg_node weighted = qg_graph_multiply(g, y, qg_graph_constant(g, NULL, type, weights));
    return type.rank ? total(g, weighted) : weighted;
}

// A graph whose inputs are all fp32, with y as its result; `g` is freed.
static trial trial_of(qg_graph *g, qg_node y) {
    qg_graph_run_options options = {.threads = 1};
    trial t = {0};
    qg_node wrt[INPUTS_MOST];
    ck_assert_msg(qg_graph_status(g) == QG_OK, "%s", qg_detail());
    if (qg_graph_node_type(g, y)->dtype != QG_DTYPE_FP32)
        y = qg_graph_cast(g, y, QG_DTYPE_FP32);
    for (qg_node i = 0; i < qg_graph_count(g); i++)
        if (qg_graph_node_op(g, i) == QG_GRAPH_INPUT)
            wrt[t.count++] = i;
    qg_node loss = weighted_sum(g, y);
    t.y = qg_graph_output(g, y);
    t.graph = gradient_of(g, loss, t.count, wrt);
    ck_assert_int_eq(dead_nodes(t.graph, loss + 1), 0);
    for (int32_t i = 0; i < t.count; i++) {
        t.sizes[i] = qg_tensor_elements(qg_graph_node_type(t.graph, wrt[i]));
        ck_assert_int_le(t.sizes[i], ELEMENTS_MOST);
        t.feeds[i] = (qg_graph_feed){qg_graph_node_name(t.graph, wrt[i]), NULL};
        fill(t.values[i], t.sizes[i], (uint64_t)i + 1);
    }
    qg_status status = qg_graph_runner_create(t.graph, &options, &t.runner);
    ck_assert_msg(status == QG_OK, "%s", qg_detail());
    return t;
}

static void trial_free(trial *t) {
    qg_graph_runner_free(t->runner);
    qg_graph_free(t->graph);
}

static void run(trial *t) {
    for (int32_t i = 0; i < t->count; i++)
        t->feeds[i].values = t->values[i];
    qg_status status = qg_graph_runner_run(t->runner, t->count, t->feeds);
    ck_assert_msg(status == QG_OK, "%s", qg_detail());
}

// Of the last run: the loss, in binary64, and the largest |y|.
static double loss_of(const trial *t, double *largest) {
    double sum = 0;
    const float *y = qg_graph_runner_values(t->runner, t->y);
    *largest = 0;
    for (int64_t i = 0; i < qg_tensor_elements(qg_graph_node_type(t->graph, t->y)); i++) {
        sum += weight(i) * (double)y[i];
        *largest = fmax(*largest, fabs((double)y[i]));
    }
    return sum;
}

static const float *gradient_values(const trial *t, int32_t input) {
    return qg_graph_runner_values(t->runner, gradient_node(t->graph, t->feeds[input].name));
}

// -------------------------------------------------------------------------------------- comparison

static double difference(trial *t, float *element, float step, double *largest) {
    float x = *element;
    *element = x + step;
    run(t);
    double above = loss_of(t, largest), other;
    *element = x - step;
    run(t);
    double below = loss_of(t, &other);
    *element = x;
    *largest = fmax(*largest, other);
    return (above - below) / (2 * (double)step);
}

static void check_input(trial *t, int32_t input, const accuracy *a) {
    double u = 0x1p-24, h = a->third > 0 ? 0x1p-7 : 0x1p-3, largest;
    float gradient[ELEMENTS_MOST];
    run(t);
    memcpy(gradient, gradient_values(t, input), (size_t)t->sizes[input] * sizeof *gradient);
    for (int64_t i = 0; i < t->sizes[input]; i++) {
        double expected = difference(t, &t->values[input][i], (float)h, &largest);
        double bound =
            WEIGHT_MOST * (a->third * h * h / 6 + a->roundings * u * largest / h + a->gradient * u);
        REQUIRE(fabs(gradient[i] - expected) <= bound,
                "input %s, element %lld: gradient %.9g, difference %.9g, bound %.3g",
                t->feeds[input].name, (long long)i, (double)gradient[i], expected, bound);
    }
}

static void check_with(qg_graph *g, qg_node y, accuracy a) {
    trial t = trial_of(g, y);
    for (int32_t i = 0; i < t.count; i++)
        check_input(&t, i, &a);
    trial_free(&t);
}

static void check(qg_graph *g, qg_node y) { check_with(g, y, (accuracy){0}); }

static qg_node tensor(qg_graph *g, const char *name, int32_t rank, const int64_t *shape) {
    qg_tensor_type type = {QG_DTYPE_FP32, rank, {0}};
    memcpy(type.shape, shape, (size_t)rank * sizeof *shape);
    return qg_graph_input(g, name, type);
}

// ---------------------------------------------------------------------------------------- products

START_TEST(matmul) {
    for (int32_t rank = 2; rank <= 4; rank++) {
        static const int64_t left[] = {2, 2, 2, 3}, right[] = {2, 2, 3, 4};
        qg_graph *g = empty();
        qg_node a = tensor(g, "a", rank, left + 4 - rank);
        check(g, qg_graph_matmul(g, a, tensor(g, "b", rank, right + 4 - rank)));
    }
}
END_TEST

START_TEST(matmul_of_transposed_factors) {
    qg_graph *g = empty();
    int32_t swap[] = {1, 0};
    qg_node a = qg_graph_transpose(g, matrix(g, "a", 3, 2), swap);
    check(g, qg_graph_matmul(g, a, qg_graph_transpose(g, matrix(g, "b", 4, 3), swap)));
}
END_TEST

START_TEST(matmul_of_a_node_with_itself) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 3, 4);
    check(g, qg_graph_matmul(g, x, qg_graph_transpose(g, x, (int32_t[]){1, 0})));
}
END_TEST

// ------------------------------------------------------------------------------------ broadcasting

static const struct {
    int32_t left_rank, right_rank;
    int64_t left[3], right[3];
} BROADCASTS[] = {
    {2, 2, {2, 3},    {2, 3}   },
    {2, 1, {2, 3},    {3}      },
    {2, 1, {2, 3},    {1}      },
    {2, 0, {2, 3},    {0}      },
    {2, 2, {2, 1},    {1, 3}   },
    {3, 2, {2, 1, 3}, {4, 1}   },
    {3, 3, {1, 4, 1}, {2, 1, 3}},
    {3, 2, {1, 1, 3}, {2, 3}   }, // a leading axis of 1 that the other has not
    {3, 1, {2, 2, 1}, {1}      },
    {0, 0, {0},       {0}      },
};
enum { BROADCAST_COUNT = sizeof BROADCASTS / sizeof *BROADCASTS };

static void check_broadcasts(qg_node (*op)(qg_graph *, qg_node, qg_node)) {
    for (int i = 0; i < BROADCAST_COUNT; i++)
        for (int turned = 0; turned < 2; turned++) {
            qg_graph *g = empty();
            qg_node a = tensor(g, "a", BROADCASTS[i].left_rank, BROADCASTS[i].left);
            qg_node b = tensor(g, "b", BROADCASTS[i].right_rank, BROADCASTS[i].right);
            check(g, turned ? op(g, b, a) : op(g, a, b));
        }
}

START_TEST(add_broadcast) { check_broadcasts(qg_graph_add); }
END_TEST
START_TEST(subtract_broadcast) { check_broadcasts(qg_graph_subtract); }
END_TEST
START_TEST(multiply_broadcast) { check_broadcasts(qg_graph_multiply); }
END_TEST

START_TEST(a_node_used_three_times) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 2, 3);
    check(g, qg_graph_subtract(g, qg_graph_multiply(g, x, x), x));
}
END_TEST

START_TEST(a_node_subtracted_from_itself_has_gradient_zero) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 2, 3);
    check(g, qg_graph_subtract(g, x, x));
}
END_TEST

START_TEST(a_node_in_between_used_twice) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 2, 3), w = matrix(g, "w", 3, 4);
    qg_node y = qg_graph_matmul(g, x, w);
    qg_node once = qg_graph_multiply(g, y, matrix(g, "v", 1, 4));
    check(g, qg_graph_add(g, qg_graph_multiply(g, y, y), once));
}
END_TEST

START_TEST(an_input_that_loss_does_not_depend_on) {
    qg_graph *g = empty();
    matrix(g, "other", 2, 2);
    check(g, qg_graph_relu(g, matrix(g, "x", 2, 3)));
}
END_TEST

// ---------------------------------------------------------------------------------------- movement

START_TEST(transpose_by_every_permutation_of_three_axes) {
    static const int32_t all[6][3] = {
        {0, 1, 2},
        {0, 2, 1},
        {1, 0, 2},
        {1, 2, 0},
        {2, 0, 1},
        {2, 1, 0}
    };
    for (int i = 0; i < 6; i++) {
        qg_graph *g = empty();
        check(g, qg_graph_transpose(g, tensor(g, "x", 3, (int64_t[]){2, 3, 4}), all[i]));
    }
}
END_TEST

START_TEST(reshape) {
    qg_graph *g = empty();
    check(g, qg_graph_reshape(g, matrix(g, "x", 4, 6), 3, (int64_t[]){2, 3, 4}));
    g = empty();
    check(g, qg_graph_reshape(g, matrix(g, "x", 1, 1), 0, NULL));
}
END_TEST

// -------------------------------------------------------------------------------------- reductions

static const struct {
    int32_t count, axes[3];
} REDUCTIONS[] = {
    {1, {0}      },
    {1, {1}      },
    {1, {2}      },
    {2, {0, 1}   },
    {2, {2, 0}   },
    {2, {2, 1}   },
    {3, {1, 0, 2}}
};

static void check_reductions(qg_graph_op op, const int64_t shape[3]) {
    for (size_t i = 0; i < sizeof REDUCTIONS / sizeof *REDUCTIONS; i++)
        for (int keepdims = 0; keepdims < 2; keepdims++) {
            qg_graph *g = empty();
            check(g, qg_graph_reduce(g, op, tensor(g, "x", 3, shape), REDUCTIONS[i].count,
                                     REDUCTIONS[i].axes, keepdims));
        }
}

START_TEST(reduce_sum) { check_reductions(QG_GRAPH_REDUCE_SUM, (int64_t[]){3, 2, 5}); }
END_TEST
START_TEST(reduce_max) { check_reductions(QG_GRAPH_REDUCE_MAX, (int64_t[]){3, 2, 5}); }
END_TEST
// Powers of two: quotients are exact.
START_TEST(reduce_mean) { check_reductions(QG_GRAPH_REDUCE_MEAN, (int64_t[]){4, 2, 8}); }
END_TEST
START_TEST(reductions_over_axes_of_one_element) {
    check_reductions(QG_GRAPH_REDUCE_MEAN, (int64_t[]){1, 1, 1});
    check_reductions(QG_GRAPH_REDUCE_MAX, (int64_t[]){1, 2, 1});
}
END_TEST

// A mean of three: y is rounded once, and so is dy / 3.
START_TEST(reduce_mean_of_three) {
    qg_graph *g = empty();
    int32_t axis = 0;
    check_with(g, qg_graph_reduce(g, QG_GRAPH_REDUCE_MEAN, matrix(g, "x", 3, 5), 1, &axis, false),
               (accuracy){.roundings = 1, .gradient = 1});
}
END_TEST

START_TEST(the_gradient_of_a_maximum_is_shared_among_equal_elements) {
    static const float x[] = {1, 5, 5, -2, 5, 5, 3, 3, 3, 0}, dy[] = {6, 8};
    static const float expected[] = {0, 2, 2, 0, 2, 0, 0, 0, 0, 0};
    qg_graph *g = empty();
    int32_t axis = 1;
    qg_node in = matrix(g, "x", 2, 5);
    qg_node y = qg_graph_reduce(g, QG_GRAPH_REDUCE_MAX, in, 1, &axis, false);
    qg_node scale = qg_graph_constant(g, NULL, qg_tensor(QG_DTYPE_FP32, 1, 2), dy);
    trial t = trial_of(g, qg_graph_multiply(g, y, scale));
    memcpy(t.values[0], x, sizeof x);
    run(&t);
    const float *gradient = gradient_values(&t, 0);
    for (int i = 0; i < 5; i++)
        ck_assert(gradient[i] == (float)weight(0) * expected[i]);
    ck_assert(gradient[5] == (float)weight(1) * 8);
    for (int i = 6; i < 10; i++)
        ck_assert(gradient[i] == 0);
    trial_free(&t);
}
END_TEST

// ------------------------------------------------------------------------------------- activations

START_TEST(relu) {
    qg_graph *g = empty();
    check(g, qg_graph_relu(g, matrix(g, "x", 5, 5)));
}
END_TEST

// tanh''' = (1 - t^2)(6 t^2 - 2): at most 2 in magnitude, at 0. The slope has three roundings.
START_TEST(tangent) {
    qg_graph *g = empty();
    check_with(g, qg_graph_tanh(g, matrix(g, "x", 4, 6)),
               (accuracy){.third = 2, .roundings = 1, .gradient = 3});
}
END_TEST

// gelu''' = (x^3 - 4 x) density(x), at most 0.78 in magnitude; of the tanh form, too.
START_TEST(gelu) {
    for (int tanh_form = 0; tanh_form < 2; tanh_form++) {
        qg_graph *g = empty();
        check_with(g, qg_graph_gelu(g, matrix(g, "x", 4, 6), tanh_form),
                   (accuracy){.third = 0.78, .roundings = 1, .gradient = 2});
    }
}
END_TEST

// -------------------------------------------------------------------------------------- fp16, bf16

static const qg_dtype LOW[] = {QG_DTYPE_FP16, QG_DTYPE_BF16};

// At most 7 significant bits: nothing is rounded in either dtype.
START_TEST(casts_and_ops_in_low_precision) {
    for (int d = 0; d < 2; d++) {
        qg_graph *g = empty();
        int32_t axis = 0;
        qg_node a = qg_graph_cast(g, matrix(g, "a", 2, 4), LOW[d]);
        qg_node b = qg_graph_cast(g, matrix(g, "b", 1, 4), LOW[d]);
        check(g, qg_graph_multiply(g, a, b));
        g = empty();
        a = qg_graph_cast(g, matrix(g, "a", 2, 4), LOW[d]);
        b = qg_graph_cast(g, matrix(g, "b", 1, 4), LOW[d]);
        check(g, qg_graph_subtract(g, qg_graph_relu(g, a), b));
        g = empty();
        a = qg_graph_cast(g, matrix(g, "a", 4, 2), LOW[d]);
        check(g, qg_graph_reduce(g, QG_GRAPH_REDUCE_SUM, a, 1, &axis, true));
        g = empty();
        a = qg_graph_cast(g, matrix(g, "a", 4, 2), LOW[d]);
        check(g, qg_graph_reduce(g, QG_GRAPH_REDUCE_MEAN, a, 1, &axis, false));
        g = empty();
        a = qg_graph_cast(g, matrix(g, "a", 4, 2), LOW[d]);
        check(g, qg_graph_reduce(g, QG_GRAPH_REDUCE_MAX, a, 1, &axis, false));
    }
}
END_TEST

// 1 / 70000 is 240 / 2^24 in fp16, to its nearest; the count itself would be infinite there.
START_TEST(a_mean_in_fp16_of_more_elements_than_fp16_counts) {
    enum { COUNT = 70000 };
    static float x[COUNT];
    qg_graph *g = empty();
    int32_t axis = 0;
    qg_node in = qg_graph_input(g, "x", qg_tensor(QG_DTYPE_FP32, 1, COUNT));
    qg_node mean = qg_graph_reduce(g, QG_GRAPH_REDUCE_MEAN, qg_graph_cast(g, in, QG_DTYPE_FP16), 1,
                                   &axis, false);
    qg_node loss = qg_graph_cast(g, mean, QG_DTYPE_FP32);
    qg_graph *made = gradient_of(g, loss, 1, &in);
    qg_graph_runner *runner;
    qg_graph_feed feed = {"x", x};
    ck_assert_int_eq(qg_graph_runner_create(made, NULL, &runner), QG_OK);
    ck_assert_int_eq(qg_graph_runner_run(runner, 1, &feed), QG_OK);
    const float *gradient = qg_graph_runner_values(runner, gradient_node(made, "x"));
    for (int i = 0; i < COUNT; i++)
        REQUIRE(gradient[i] == 240 * 0x1p-24f, "element %d: %a", i, (double)gradient[i]);
    qg_graph_runner_free(runner);
    qg_graph_free(made);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        matmul,
        matmul_of_transposed_factors,
        matmul_of_a_node_with_itself,
        add_broadcast,
        subtract_broadcast,
        multiply_broadcast,
        a_node_used_three_times,
        a_node_subtracted_from_itself_has_gradient_zero,
        a_node_in_between_used_twice,
        an_input_that_loss_does_not_depend_on,
        transpose_by_every_permutation_of_three_axes,
        reshape,
        reduce_sum,
        reduce_max,
        reduce_mean,
        reductions_over_axes_of_one_element,
        reduce_mean_of_three,
        the_gradient_of_a_maximum_is_shared_among_equal_elements,
        relu,
        tangent,
        gelu,
        casts_and_ops_in_low_precision,
        a_mean_in_fp16_of_more_elements_than_fp16_counts,
    };
    return RUN_SUITE("gradient_values", tests);
}
