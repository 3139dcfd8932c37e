// The runner: feeds, values, options, and that a failing run leaves it as it was.
#include "run_graph.h"

#include <run_suite.h>

#include <fenv.h>
#include <math.h>

// y = relu(x) w + c, z = gather(w, at): x (2, 3), w (3, 2), at (2).
typedef struct fixture {
    qg_graph *graph;
    qg_node x, w, at, c, relu, product, y, z;
} fixture;

static const float w_values[] = {1, 2, 3, 4, 5, 6}, c_values[] = {10, 20};
static const float x_values[] = {1, -1, 2, 0.5f, 0, -3};
static const float y_values[] = {21, 34, 10.5f, 21}; // (1, 0, 2) w + c, (0.5, 0, 0) w + c
static const int64_t at_values[] = {2, 0};

static fixture open_fixture(const float *weights) {
    fixture f = {.graph = new_graph()};
    f.x = qg_graph_input(f.graph, "x", qg_tensor(QG_DTYPE_FP32, 2, 2, 3));
    f.w = qg_graph_parameter(f.graph, "w", qg_tensor(QG_DTYPE_FP32, 2, 3, 2), weights);
    f.at = qg_graph_input(f.graph, "at", qg_tensor(QG_DTYPE_I64, 1, 2));
    f.c = qg_graph_constant(f.graph, "c", qg_tensor(QG_DTYPE_FP32, 1, 2), c_values);
    f.relu = qg_graph_relu(f.graph, f.x);
    f.product = qg_graph_matmul(f.graph, f.relu, f.w);
    f.y = qg_graph_output(f.graph, qg_graph_add(f.graph, f.product, f.c));
    f.z =
        qg_graph_output(f.graph, qg_graph_name(f.graph, qg_graph_gather(f.graph, f.w, f.at), "z"));
    require_ok(qg_graph_status(f.graph));
    return f;
}

static const qg_graph_feed feeds[] = {
    {"x",  x_values },
    {"at", at_values}
};

static void require_floats(const qg_graph_runner *runner, qg_node node, int64_t count,
                           const float *expected) {
    const float *values = qg_graph_runner_values(runner, node);
    REQUIRE(values, "no values");
    for (int64_t i = 0; i < count; i++)
        REQUIRE(same_bits(values[i], expected[i]), "element %d is %a, not %a", (int)i, values[i],
                expected[i]);
}

// ------------------------------------------------------------------------------------------ values

START_TEST(a_run_computes_the_outputs) {
    fixture f = open_fixture(w_values);
    qg_graph_runner *r = new_runner(f.graph, NULL);
    require_ok(qg_graph_runner_run(r, 2, feeds));
    require_floats(r, f.y, 4, y_values);
    require_floats(r, f.z, 4, (const float[]){5, 6, 1, 2});
    qg_graph_runner_free(r);
    qg_graph_free(f.graph);
}
END_TEST

START_TEST(values_of_inner_nodes_are_kept_only_when_asked) {
    fixture f = open_fixture(w_values);
    qg_graph_runner *r = new_runner(f.graph, NULL);
    require_ok(qg_graph_runner_run(r, 2, feeds));
    ck_assert_ptr_null(qg_graph_runner_values(r, f.relu));
    ck_assert_ptr_null(qg_graph_runner_values(r, f.product));
    ck_assert_ptr_null(qg_graph_runner_values(r, f.x));
    qg_graph_runner_free(r);
    r = new_runner(f.graph, &(qg_graph_run_options){.keep = true});
    require_ok(qg_graph_runner_run(r, 2, feeds));
    require_floats(r, f.relu, 6, (const float[]){1, 0, 2, 0.5f, 0, 0});
    require_floats(r, f.product, 4, (const float[]){11, 14, 0.5f, 1});
    require_floats(r, f.w, 6, w_values);
    require_floats(r, f.c, 2, c_values);
    qg_graph_runner_free(r);
    qg_graph_free(f.graph);
}
END_TEST

START_TEST(a_node_that_is_none_has_no_values) {
    fixture f = open_fixture(w_values);
    qg_graph_runner *r = new_runner(f.graph, &(qg_graph_run_options){.keep = true});
    require_ok(qg_graph_runner_run(r, 2, feeds));
    ck_assert_ptr_null(qg_graph_runner_values(r, QG_NODE_NONE));
    ck_assert_ptr_null(qg_graph_runner_values(r, qg_graph_count(f.graph)));
    ck_assert_str_eq(qg_graph_runner_impl(r, QG_NODE_NONE), "");
    ck_assert_str_eq(qg_graph_runner_impl(r, qg_graph_count(f.graph)), "");
    ck_assert_str_eq(qg_graph_runner_impl(r, f.product), "");
    qg_graph_runner_free(r);
    qg_graph_free(f.graph);
}
END_TEST

START_TEST(inputs_parameters_and_constants_can_be_outputs) {
    fixture f = open_fixture(w_values);
    float x[6];
    memcpy(x, x_values, sizeof x);
    qg_graph_output(f.graph, f.x);
    qg_graph_output(f.graph, f.w);
    qg_graph_output(f.graph, f.c);
    qg_graph_runner *r = new_runner(f.graph, NULL);
    const qg_graph_feed own[] = {
        {"at", at_values},
        {"x",  x        }
    };
    require_ok(qg_graph_runner_run(r, 2, own));
    memset(x, 0, sizeof x); // what was fed need not stay
    require_floats(r, f.x, 6, x_values);
    require_floats(r, f.w, 6, w_values);
    require_floats(r, f.c, 2, c_values);
    require_floats(r, f.y, 4, y_values);
    qg_graph_runner_free(r);
    qg_graph_free(f.graph);
}
END_TEST

START_TEST(values_are_those_of_the_last_run) {
    fixture f = open_fixture(w_values);
    qg_graph_runner *r = new_runner(f.graph, NULL);
    const float other[6] = {0};
    const qg_graph_feed zeros[] = {
        {"x",  other    },
        {"at", at_values}
    };
    ck_assert_ptr_null(qg_graph_runner_values(r, f.y));
    require_ok(qg_graph_runner_run(r, 2, feeds));
    require_ok(qg_graph_runner_run(r, 2, zeros));
    require_floats(r, f.y, 4, (const float[]){10, 20, 10, 20});
    require_ok(qg_graph_runner_run(r, 2, feeds));
    require_floats(r, f.y, 4, y_values);
    qg_graph_runner_free(r);
    qg_graph_free(f.graph);
}
END_TEST

START_TEST(nodes_that_no_output_needs_are_not_computed) {
    fixture f = open_fixture(w_values);
    const int64_t outside[] = {7, 7};
    const qg_graph_feed own[] = {
        {"x",       x_values },
        {"at",      at_values},
        {"outside", outside  }
    };
    qg_node at = qg_graph_input(f.graph, "outside", qg_tensor(QG_DTYPE_I64, 1, 2));
    qg_graph_relu(f.graph, qg_graph_gather(f.graph, f.w, at));
    qg_graph_runner *r = new_runner(f.graph, NULL);
    require_ok(qg_graph_runner_run(r, 3, own));
    qg_graph_runner_free(r);
    r = new_runner(f.graph, &(qg_graph_run_options){.keep = true});
    ck_assert_int_eq(qg_graph_runner_run(r, 3, own), QG_ERROR_ARGUMENT);
    qg_graph_runner_free(r);
    qg_graph_free(f.graph);
}
END_TEST

// ------------------------------------------------------------------------------------------- feeds

static void require_refused(qg_graph_runner *r, int32_t count, const qg_graph_feed *own,
                            const char *detail) {
    ck_assert_int_eq(qg_graph_runner_run(r, count, own), QG_ERROR_ARGUMENT);
    ck_assert_str_eq(qg_detail(), detail);
}

START_TEST(every_input_is_given_once_by_its_name) {
    fixture f = open_fixture(w_values);
    qg_graph_runner *r = new_runner(f.graph, NULL);
    const qg_graph_feed x = feeds[0], at = feeds[1];
    require_refused(r, 0, NULL, "input 'x' is not given");
    require_refused(r, 1, &x, "input 'at' is not given");
    require_refused(r, 3, (const qg_graph_feed[]){x, at, x}, "input 'x' is given twice");
    require_refused(r, 2,
                    (const qg_graph_feed[]){
                        x, {"y", x_values}
    },
                    "'y' is no input of the graph");
    require_refused(r, 2,
                    (const qg_graph_feed[]){
                        x, {"w", x_values}
    },
                    "'w' is no input of the graph");
    require_refused(r, 2,
                    (const qg_graph_feed[]){
                        x, {NULL, x_values}
    },
                    "'' is no input of the graph");
    require_refused(r, 2,
                    (const qg_graph_feed[]){
                        x, {"at", NULL}
    },
                    "input 'at' is given without values");
    require_ok(qg_graph_runner_run(r, 2, feeds));
    require_floats(r, f.y, 4, y_values);
    qg_graph_runner_free(r);
    qg_graph_free(f.graph);
}
END_TEST

START_TEST(a_failing_run_leaves_the_runner_usable_and_without_values) {
    fixture f = open_fixture(w_values);
    qg_graph_runner *r = new_runner(f.graph, NULL);
    const int64_t outside[] = {0, 3};
    require_ok(qg_graph_runner_run(r, 2, feeds));
    require_refused(r, 2,
                    (const qg_graph_feed[]){
                        feeds[0], {"at", outside}
    },
                    "node 'z' (gather): index 3 at place 1 is not one of 3 rows");
    ck_assert_ptr_null(qg_graph_runner_values(r, f.y));
    ck_assert_ptr_null(qg_graph_runner_values(r, f.z));
    require_ok(qg_graph_runner_run(r, 2, feeds));
    require_floats(r, f.y, 4, y_values);
    qg_graph_runner_free(r);
    qg_graph_free(f.graph);
}
END_TEST

// ----------------------------------------------------------------------------------------- options

static void require_no_runner(const qg_graph *graph, const qg_graph_run_options *options,
                              qg_status status, const char *detail) {
    qg_graph_runner *r = (qg_graph_runner *)(void *)&r;
    ck_assert_int_eq(qg_graph_runner_create(graph, options, &r), status);
    ck_assert_ptr_null(r);
    REQUIRE(strstr(qg_detail(), detail), "'%s' does not say '%s'", qg_detail(), detail);
}

START_TEST(a_parameter_without_values_is_named) {
    fixture f = open_fixture(NULL);
    require_no_runner(f.graph, NULL, QG_ERROR_ARGUMENT, "node 'w' (parameter): no values");
    require_ok(qg_graph_bind(f.graph, "w", w_values));
    qg_graph_runner *r = new_runner(f.graph, NULL);
    require_ok(qg_graph_runner_run(r, 2, feeds));
    require_floats(r, f.y, 4, y_values);
    qg_graph_runner_free(r);
    qg_graph_free(f.graph);
}
END_TEST

START_TEST(a_graph_that_does_not_verify_is_not_run) {
    qg_graph *graph = new_graph();
    qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_FP32, 1, 4));
    require_no_runner(graph, NULL, QG_ERROR_ARGUMENT, "no output");
    qg_graph_matmul(graph, 0, 0);
    require_no_runner(graph, NULL, QG_ERROR_ARGUMENT, "rank");
    qg_graph_free(graph);
}
END_TEST

static const char *is_away(void) { return "there is no such device"; }

START_TEST(a_backend_that_does_not_answer_is_refused) {
    fixture f = open_fixture(w_values);
    static const qg_backend away = {.name = "away", .unavailable = is_away};
    require_no_runner(f.graph, &(qg_graph_run_options){.backend = &away}, QG_ERROR_ENVIRONMENT,
                      "backend away does not answer: there is no such device");
    qg_graph_free(f.graph);
}
END_TEST

// relu(x) quantized times w quantized.
static qg_node add_scaled(fixture *f, const char *recipe) {
    const int32_t swap[] = {1, 0};
    qg_scaled lhs = qg_graph_quantize(f->graph, f->relu, recipe);
    qg_scaled rhs = qg_graph_quantize(f->graph, qg_graph_transpose(f->graph, f->w, swap), recipe);
    qg_node y = qg_graph_scaled_matmul(f->graph, lhs, rhs, QG_NODE_NONE, QG_DTYPE_FP32);
    qg_graph_output(f->graph, qg_graph_name(f->graph, y, "scaled"));
    require_ok(qg_graph_status(f->graph));
    return y;
}

START_TEST(a_product_that_the_unit_does_not_take_is_named) {
    fixture f = open_fixture(w_values);
    qg_unit unit;
    add_scaled(&f, "mxfp4");
    require_ok(qg_unit_parse("hopper_wgmma", &unit));
    require_no_runner(f.graph, &(qg_graph_run_options){.unit = &unit}, QG_ERROR_UNSUPPORTED,
                      "node 'scaled' (scaled_matmul): ");
    qg_graph_free(f.graph);
}
END_TEST

// 2^11 and 2^10 times 2^-14: binary32 loses each of the small ones, the exact sum has all of them.
static void require_sum(const qg_graph_run_options *options, float expected) {
    enum { K = 1025 };
    static float x[K], ones[K];
    for (int i = 0; i < K; i++)
        x[i] = i == 0 ? 0x1p11f : 0x1p-14f, ones[i] = 1;
    qg_graph *graph = new_graph();
    qg_scaled a = qg_graph_quantize(
        graph, qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_FP32, 2, 1, K)), "e5m2//fixed:1");
    qg_scaled b = qg_graph_quantize(
        graph, qg_graph_input(graph, "w", qg_tensor(QG_DTYPE_FP32, 2, 1, K)), "e5m2//fixed:1");
    qg_node y =
        qg_graph_output(graph, qg_graph_scaled_matmul(graph, a, b, QG_NODE_NONE, QG_DTYPE_FP32));
    qg_graph_runner *r = new_runner(graph, options);
    const qg_graph_feed own[] = {
        {"x", x   },
        {"w", ones}
    };
    require_ok(qg_graph_runner_run(r, 2, own));
    require_floats(r, y, 1, &expected);
    ck_assert_str_eq(qg_graph_runner_impl(r, y), "scalar");
    qg_graph_runner_free(r);
    qg_graph_free(graph);
}

START_TEST(the_unit_of_the_emulator_is_exact_unless_told) {
    qg_unit unit;
    require_ok(qg_unit_parse("fp32_sequential", &unit));
    require_sum(NULL, 0x1p11f + 0x1p-4f);
    require_sum(&(qg_graph_run_options){.backend = qg_backend_find("emulator")}, 0x1p11f + 0x1p-4f);
    require_sum(&(qg_graph_run_options){.unit = &unit}, 0x1p11f);
}
END_TEST

START_TEST(another_backend_multiplies_natively_and_reads_no_unit) {
    fixture f = open_fixture(w_values);
    qg_unit unit;
    qg_node scaled = add_scaled(&f, "mxfp8");
    require_ok(qg_unit_parse("hopper_wgmma", &unit));
    const qg_graph_run_options options = {.backend = qg_backend_find("cpu"), .unit = &unit};
    qg_graph_runner *r = new_runner(f.graph, &options);
    require_ok(qg_graph_runner_run(r, 2, feeds));
    require_floats(r, scaled, 4, (const float[]){11, 14, 0.5f, 1});
    ck_assert_str_ne(qg_graph_runner_impl(r, scaled), "");
    qg_graph_runner_free(r);
    qg_graph_free(f.graph);
}
END_TEST

// ------------------------------------------------------------------------------ the caller's state

static bool rounds_up(void) {
    volatile float one = 1, little = 0x1p-40f, sum = one + little;
    return sum > 1;
}

START_TEST(the_callers_rounding_mode_plays_no_part_and_comes_back) {
    fixture f = open_fixture(w_values);
    const float x[] = {0.1f, 0.2f, 0.3f, 0.7f, 0.9f, 1.1f};
    const qg_graph_feed own[] = {
        {"x",  x        },
        {"at", at_values}
    };
    float nearest[4];
    qg_node softmax = qg_graph_output(f.graph, qg_graph_softmax(f.graph, f.y));
    for (int threads = 1; threads <= 2; threads++) {
        qg_graph_runner *r = new_runner(f.graph, &(qg_graph_run_options){.threads = threads});
        require_ok(qg_graph_runner_run(r, 2, own));
        memcpy(nearest, qg_graph_runner_values(r, softmax), sizeof nearest);
        fesetround(FE_UPWARD);
        qg_status status = qg_graph_runner_run(r, 2, own);
        bool kept = rounds_up();
        fesetround(FE_TONEAREST);
        require_ok(status);
        ck_assert(kept);
        require_floats(r, softmax, 4, nearest);
        qg_graph_runner_free(r);
    }
    qg_graph_free(f.graph);
}
END_TEST

START_TEST(freeing_no_runner_is_fine) { qg_graph_runner_free(NULL); }
END_TEST

int main(void) {
    const TTest *const tests[] = {a_run_computes_the_outputs,
                                  values_of_inner_nodes_are_kept_only_when_asked,
                                  a_node_that_is_none_has_no_values,
                                  inputs_parameters_and_constants_can_be_outputs,
                                  values_are_those_of_the_last_run,
                                  nodes_that_no_output_needs_are_not_computed,
                                  every_input_is_given_once_by_its_name,
                                  a_failing_run_leaves_the_runner_usable_and_without_values,
                                  a_parameter_without_values_is_named,
                                  a_graph_that_does_not_verify_is_not_run,
                                  a_backend_that_does_not_answer_is_refused,
                                  a_product_that_the_unit_does_not_take_is_named,
                                  the_unit_of_the_emulator_is_exact_unless_told,
                                  another_backend_multiplies_natively_and_reads_no_unit,
                                  the_callers_rounding_mode_plays_no_part_and_comes_back,
                                  freeing_no_runner_is_fine};
    return RUN_SUITE("graph_run", tests);
}
