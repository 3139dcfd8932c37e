// Errors of nodes: which are compared, with what, in what order; sums are qg_sums_measure's.
#include "run_graph.h"

#include <qg_input.h>
#include <run_suite.h>

enum { K = 8, MOST_ERRORS = 16 };

typedef struct seen {
    int count;
    qg_node_error errors[MOST_ERRORS];
    float q[MOST_ERRORS], x[MOST_ERRORS]; // the first elements: values end with the call
    qg_status stop;
} seen;

static qg_status see(void *context, const qg_node_error *error) {
    seen *s = context;
    REQUIRE(s->count < MOST_ERRORS, "too many nodes");
    s->q[s->count] = error->q[0];
    s->x[s->count] = error->x[0];
    s->errors[s->count++] = *error;
    return s->stop ? qg_fail(s->stop, "enough") : QG_OK;
}

static const float x_values[K] = {1, 2.5f, -3, 0.75f, 100, -7, 0, 1.0009765625f};

typedef struct side {
    qg_graph *graph;
    qg_graph_runner *runner;
} side;

static side open_side(qg_graph *graph, const qg_graph_run_options *options) {
    require_ok(qg_graph_status(graph));
    side s = {graph, new_runner(graph, options)};
    require_ok(qg_graph_runner_run(s.runner, 1, &(qg_graph_feed){"x", x_values}));
    return s;
}

static void close_side(side *s) {
    qg_graph_runner_free(s->runner);
    qg_graph_free(s->graph);
}

static const qg_graph_run_options kept = {.keep = true, .threads = 2};

// x, half = x / 2 (rounded to `dtype` on the way), y = relu(half), as fp32.
static qg_graph *halving(qg_dtype dtype, const char *last) {
    static const float halves[K] = {.5f, .5f, .5f, .5f, .5f, .5f, .5f, .5f};
    qg_graph *graph = new_graph();
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_FP32, 1, K));
    qg_node w = qg_graph_parameter(graph, "w", qg_tensor(QG_DTYPE_FP32, 1, K), halves);
    qg_node half = qg_graph_name(graph, qg_graph_multiply(graph, x, w), "half");
    if (dtype != QG_DTYPE_FP32) {
        half = qg_graph_name(graph, qg_graph_cast(graph, half, dtype), "narrow");
        half = qg_graph_name(graph, qg_graph_cast(graph, half, QG_DTYPE_FP32), "wide");
    }
    qg_graph_output(graph, qg_graph_name(graph, qg_graph_relu(graph, half), last));
    return graph;
}

START_TEST(nodes_of_one_name_are_compared_in_order) {
    side a = open_side(halving(QG_DTYPE_FP32, "y"), &kept);
    side b = open_side(halving(QG_DTYPE_BF16, "y"), &kept);
    seen s = {0};
    require_ok(qg_graph_compare(a.runner, b.runner, see, &s));
    // not x, an input, nor w, a parameter; not narrow and wide, which a lacks
    ck_assert_int_eq(s.count, 2);
    static const char *const names[] = {"half", "y"};
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(s.errors[i].name, names[i]);
        ck_assert_int_eq(s.errors[i].node, qg_graph_find(b.graph, names[i]));
        ck_assert_int_eq(s.errors[i].count, K);
        ck_assert_int_eq(s.errors[i].sums.n, K);
    }
    close_side(&a);
    close_side(&b);
}
END_TEST

START_TEST(errors_are_of_the_graph_against_the_reference) {
    side a = open_side(halving(QG_DTYPE_FP32, "y"), &kept);
    side b = open_side(halving(QG_DTYPE_BF16, "y"), &kept);
    seen s = {0};
    require_ok(qg_graph_compare(a.runner, b.runner, see, &s));
    ck_assert_int_eq(s.errors[0].sums.exact, K);
    ck_assert_int_eq(s.errors[1].sums.exact, K - 1);
    // relu of 0.50048828125 is 0.5 in bfloat16
    ck_assert_double_eq(s.errors[1].sums.max_abs_e, 0x1p-11);
    ck_assert_double_eq(qg_sum_value(s.errors[1].sums.e), -0x1p-11);
    qg_sums sums;
    const float *x = qg_graph_runner_values(a.runner, qg_graph_find(a.graph, "y"));
    const float *q = qg_graph_runner_values(b.runner, qg_graph_find(b.graph, "y"));
    require_ok(qg_sums_measure(K, x, q, 1, &sums));
    ck_assert_mem_eq(&sums, &s.errors[1].sums, sizeof sums);
    ck_assert_ptr_eq(s.errors[1].x, x);
    ck_assert_ptr_eq(s.errors[1].q, q);
    close_side(&a);
    close_side(&b);
}
END_TEST

// The last node in another dtype.
static qg_graph *narrowed(qg_dtype dtype) {
    qg_graph *graph = new_graph();
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_FP32, 1, K));
    qg_graph_output(graph, qg_graph_name(graph, qg_graph_cast(graph, x, dtype), "y"));
    return graph;
}

START_TEST(sixteen_bit_floats_are_widened_on_either_side) {
    for (qg_dtype left = QG_DTYPE_FP32; left <= QG_DTYPE_BF16; left++)
        for (qg_dtype right = QG_DTYPE_FP32; right <= QG_DTYPE_BF16; right++) {
            side a = open_side(narrowed(left), &kept), b = open_side(narrowed(right), &kept);
            seen s = {0};
            require_ok(qg_graph_compare(a.runner, b.runner, see, &s));
            ck_assert_int_eq(s.count, 1);
            ck_assert_float_eq(s.x[0], 1);
            ck_assert_float_eq(s.q[0], 1);
            bool loses = (left == QG_DTYPE_BF16) != (right == QG_DTYPE_BF16);
            ck_assert_int_eq(s.errors[0].sums.exact, loses ? K - 1 : K);
            double e = right == QG_DTYPE_BF16 ? -0x1p-10 : 0x1p-10;
            ck_assert_double_eq(qg_sum_value(s.errors[0].sums.e), loses ? e : 0);
            close_side(&a);
            close_side(&b);
        }
}
END_TEST

static qg_graph *shaped(int32_t rank, qg_dtype dtype) {
    qg_graph *graph = new_graph();
    const int64_t shape[] = {2, K / 2}, flat[] = {K};
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_FP32, 1, K));
    qg_node y = qg_graph_reshape(graph, x, rank, rank == 1 ? flat : shape);
    if (dtype == QG_DTYPE_U8)
        y = qg_graph_quantize(graph, y, "e4m3").codes;
    qg_graph_output(graph, qg_graph_name(graph, y, "y"));
    return graph;
}

START_TEST(other_shapes_and_codes_are_not_compared) {
    static const struct {
        int32_t rank;
        qg_dtype dtype;
    } sides[][2] = {
        {{1, QG_DTYPE_FP32}, {2, QG_DTYPE_FP32}},
        {{1, QG_DTYPE_U8},   {1, QG_DTYPE_U8}  },
        {{1, QG_DTYPE_FP32}, {1, QG_DTYPE_U8}  },
        {{1, QG_DTYPE_U8},   {1, QG_DTYPE_FP32}},
    };
    for (int i = 0; i < 4; i++) {
        side a = open_side(shaped(sides[i][0].rank, sides[i][0].dtype), &kept);
        side b = open_side(shaped(sides[i][1].rank, sides[i][1].dtype), &kept);
        seen s = {0};
        require_ok(qg_graph_compare(a.runner, b.runner, see, &s));
        for (int j = 0; j < s.count; j++)
            ck_assert_str_ne(s.errors[j].name, "y");
        close_side(&a);
        close_side(&b);
    }
}
END_TEST

START_TEST(a_callback_that_fails_ends_it) {
    side a = open_side(halving(QG_DTYPE_FP32, "y"), &kept);
    seen s = {.stop = QG_ERROR_IO};
    ck_assert_int_eq(qg_graph_compare(a.runner, a.runner, see, &s), QG_ERROR_IO);
    ck_assert_int_eq(s.count, 1);
    ck_assert_str_eq(qg_detail(), "enough");
    close_side(&a);
}
END_TEST

START_TEST(both_must_have_run_and_kept_their_values) {
    side a = open_side(halving(QG_DTYPE_FP32, "y"), &kept);
    side b = open_side(halving(QG_DTYPE_FP32, "y"), NULL);
    seen s = {0};
    ck_assert_int_eq(qg_graph_compare(a.runner, b.runner, see, &s), QG_ERROR_ARGUMENT);
    ck_assert_str_eq(qg_detail(),
                     "node 'half' (multiply): no values: both graphs must have run, with `keep`");
    ck_assert_int_eq(qg_graph_compare(b.runner, a.runner, see, &s), QG_ERROR_ARGUMENT);
    ck_assert_int_ne(qg_graph_runner_run(a.runner, 0, NULL), QG_OK);
    ck_assert_int_eq(qg_graph_compare(a.runner, a.runner, see, &s), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(s.count, 0);
    close_side(&a);
    close_side(&b);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {nodes_of_one_name_are_compared_in_order,
                                  errors_are_of_the_graph_against_the_reference,
                                  sixteen_bit_floats_are_widened_on_either_side,
                                  other_shapes_and_codes_are_not_compared,
                                  a_callback_that_fails_ends_it,
                                  both_must_have_run_and_kept_their_values};
    return RUN_SUITE("graph_compare", tests);
}
