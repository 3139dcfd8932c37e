// Buffers: what a graph needs of memory, that no two values that live together overlap, and that
// reuse and threads do not change a bit of any output, on random graphs of all float ops.
#include "random_graph.h"

#include <graph_plan_internal.h>
#include <run_suite.h>

static int64_t bytes_of(const qg_graph *graph, bool keep, int64_t *without_reuse) {
    qg_graph_runner *r = new_runner(graph, &(qg_graph_run_options){.keep = keep});
    int64_t bytes = qg_graph_runner_bytes(r, without_reuse);
    qg_graph_runner_free(r);
    return bytes;
}

static qg_node input(qg_graph *graph, const char *name, qg_dtype dtype, int64_t count) {
    return qg_graph_input(graph, name, qg_tensor(dtype, 1, count));
}

// ------------------------------------------------------------------------------------------ memory

START_TEST(a_chain_needs_the_memory_of_two_values) {
    qg_graph *graph = new_graph();
    qg_node x = input(graph, "x", QG_DTYPE_FP32, 1000);
    for (int i = 0; i < 50; i++)
        x = i % 2 ? qg_graph_tanh(graph, x) : qg_graph_relu(graph, x);
    qg_graph_output(graph, x);
    int64_t without_reuse, one = 4032; // 4000, rounded up to 64
    ck_assert_int_eq(bytes_of(graph, false, &without_reuse), 2 * one);
    ck_assert_int_eq(without_reuse, 50 * one);
    ck_assert_int_eq(bytes_of(graph, true, &without_reuse), 51 * one); // and the input
    ck_assert_int_eq(without_reuse, 51 * one);
    ck_assert_int_eq(bytes_of(graph, true, NULL), 51 * one);
    qg_graph_free(graph);
}
END_TEST

START_TEST(a_residual_chain_needs_the_memory_of_three_values) {
    qg_graph *graph = new_graph();
    qg_node x = qg_graph_relu(graph, input(graph, "x", QG_DTYPE_FP32, 512));
    for (int i = 0; i < 20; i++)
        x = qg_graph_add(graph, x, qg_graph_tanh(graph, x));
    qg_graph_output(graph, x);
    ck_assert_int_eq(bytes_of(graph, false, NULL), 3 * 2048);
    qg_graph_free(graph);
}
END_TEST

START_TEST(outputs_stay) {
    qg_graph *graph = new_graph();
    qg_node x = input(graph, "x", QG_DTYPE_FP32, 16);
    for (int i = 0; i < 10; i++)
        x = qg_graph_output(graph, qg_graph_relu(graph, x));
    ck_assert_int_eq(bytes_of(graph, false, NULL), 10 * 64);
    qg_graph_free(graph);
}
END_TEST

START_TEST(parameters_and_inputs_are_read_where_they_are) {
    static const float values[64];
    qg_graph *graph = new_graph();
    qg_node w = qg_graph_parameter(graph, "w", qg_tensor(QG_DTYPE_FP32, 1, 64), values);
    qg_graph_output(graph, qg_graph_add(graph, input(graph, "x", QG_DTYPE_FP32, 64), w));
    ck_assert_int_eq(bytes_of(graph, false, NULL), 256);
    ck_assert_int_eq(bytes_of(graph, true, NULL), 512);
    qg_graph_free(graph);
}
END_TEST

START_TEST(sixteen_bit_floats_need_room_as_binary32_once) {
    qg_graph *graph = new_graph();
    qg_node x = input(graph, "x", QG_DTYPE_BF16, 64);
    for (int i = 0; i < 8; i++)
        x = qg_graph_add(graph, x, x);
    qg_graph_output(graph, x);
    ck_assert_int_eq(bytes_of(graph, false, NULL), 2 * 128 + 3 * 256); // two inputs, an output
    qg_graph_free(graph);
}
END_TEST

START_TEST(moves_of_sixteen_bit_floats_need_no_room_as_binary32) {
    qg_graph *graph = new_graph();
    qg_node x = input(graph, "x", QG_DTYPE_BF16, 64);
    qg_graph_output(graph, qg_graph_concatenate(graph, 2, (const qg_node[]){x, x}, 0));
    ck_assert_int_eq(bytes_of(graph, false, NULL), 256);
    qg_graph_free(graph);
}
END_TEST

static void require_too_large(qg_dtype dtype, int64_t count, int outputs) {
    qg_graph *graph = new_graph();
    qg_graph_runner *r;
    qg_node x = input(graph, "x", dtype, count);
    for (int i = 0; i < outputs; i++)
        qg_graph_output(graph, qg_graph_relu(graph, x));
    require_ok(qg_graph_status(graph));
    ck_assert_int_eq(qg_graph_runner_create(graph, NULL, &r), QG_ERROR_OVERFLOW);
    ck_assert_str_eq(qg_detail(), "the buffers of the graph exceed 2^63 - 1 bytes");
    ck_assert_ptr_null(r);
    qg_graph_free(graph);
}

START_TEST(buffers_beyond_63_bits_are_refused) {
    require_too_large(QG_DTYPE_FP32, (int64_t)1 << 60, 2);
    require_too_large(QG_DTYPE_BF16, (int64_t)1 << 61, 1);
    require_too_large(QG_DTYPE_FP16, (int64_t)1 << 59, 5);
}
END_TEST

static graph_plan plan_of(const qg_graph *graph) {
    graph_plan plan;
    require_ok(qg_graph_verify(graph));
    require_ok(graph_plan_make(graph, false, &plan));
    return plan;
}

// Rooms of 256 and 192 bytes with a wall between them; then 192 are wanted.
START_TEST(a_value_takes_the_smallest_room_that_holds_it) {
    qg_graph *graph = new_graph();
    qg_node four = qg_graph_relu(graph, input(graph, "four", QG_DTYPE_FP32, 64));
    qg_graph_output(graph, qg_graph_relu(graph, input(graph, "wall", QG_DTYPE_FP32, 16)));
    qg_node three = qg_graph_relu(graph, input(graph, "three", QG_DTYPE_FP32, 48));
    const qg_node fours[] = {four, four}, threes[] = {three, three};
    qg_graph_output(graph, qg_graph_concatenate(graph, 2, fours, 0));
    qg_graph_output(graph, qg_graph_concatenate(graph, 2, threes, 0));
    qg_node late =
        qg_graph_output(graph, qg_graph_relu(graph, input(graph, "late", QG_DTYPE_FP32, 48)));
    graph_plan plan = plan_of(graph);
    ck_assert_int_eq(plan.places[four].offset, 0);
    ck_assert_int_eq(plan.places[three].offset, 320);
    ck_assert_int_eq(plan.places[late].offset, 320);
    graph_plan_free(&plan);
    qg_graph_free(graph);
}
END_TEST

// a and b are neighbours of 64 bytes; what is read from them is larger. Then 128 are wanted.
START_TEST(rooms_of_neighbours_become_one) {
    for (int order = 0; order < 2; order++) {
        qg_graph *graph = new_graph();
        qg_node a = qg_graph_relu(graph, input(graph, "a", QG_DTYPE_FP32, 16));
        qg_node b = qg_graph_relu(graph, input(graph, "b", QG_DTYPE_FP32, 16));
        const qg_node first[] = {order ? a : b, order ? a : b, order ? a : b};
        const qg_node second[] = {order ? b : a, order ? b : a, order ? b : a};
        qg_graph_output(graph, qg_graph_concatenate(graph, 3, first, 0));
        qg_graph_output(graph, qg_graph_concatenate(graph, 3, second, 0));
        qg_node large =
            qg_graph_output(graph, qg_graph_relu(graph, input(graph, "c", QG_DTYPE_FP32, 32)));
        graph_plan plan = plan_of(graph);
        ck_assert_int_eq(plan.places[large].offset, 0);
        ck_assert_int_eq(plan.bytes, 2 * 64 + 2 * 192);
        graph_plan_free(&plan);
        qg_graph_free(graph);
    }
}
END_TEST

// The last room grows where it reaches the end.
START_TEST(what_does_not_fit_begins_in_the_room_at_the_end) {
    qg_graph *graph = new_graph();
    qg_node a = qg_graph_relu(graph, input(graph, "a", QG_DTYPE_FP32, 16));
    qg_node b = qg_graph_relu(graph, a);                         // at 64, and a dies
    qg_node c = qg_graph_output(graph, qg_graph_relu(graph, b)); // at 0, and b dies
    qg_node d = qg_graph_output(graph, qg_graph_relu(graph, input(graph, "d", QG_DTYPE_FP32, 99)));
    graph_plan plan = plan_of(graph);
    ck_assert_int_eq(plan.places[c].offset, 0);
    ck_assert_int_eq(plan.places[d].offset, 64);
    ck_assert_int_eq(plan.bytes, 64 + 448);
    graph_plan_free(&plan);
    qg_graph_free(graph);
}
END_TEST

// ----------------------------------------------------------------------------------- random graphs

static bool live_together(const graph_place *a, const graph_place *b) {
    return a->step <= b->last && b->step <= a->last;
}

static void require_no_overlap(const qg_graph *graph, const graph_plan *plan) {
    for (qg_node i = 0; i < qg_graph_count(graph); i++) {
        const graph_place *a = &plan->places[i];
        REQUIRE(a->offset % 64 == 0 && a->offset + a->bytes <= plan->bytes, "node %d", i);
        REQUIRE(a->bytes == 0 || a->bytes >= qg_tensor_bytes(qg_graph_node_type(graph, i)),
                "node %d has too little room", i);
        for (qg_node j = 0; j < i; j++) {
            const graph_place *b = &plan->places[j];
            bool apart = a->offset >= b->offset + b->bytes || b->offset >= a->offset + a->bytes;
            REQUIRE(apart || !live_together(a, b), "nodes %d and %d overlap", i, j);
        }
    }
}

// Lifetimes once more: every reader's step lies within.
static void require_lifetimes(const qg_graph *graph, const graph_plan *plan) {
    const qg_node *inputs, *outputs;
    for (qg_node i = 0; i < qg_graph_count(graph); i++)
        for (int32_t j = 0; plan->places[i].needed && j < qg_graph_node_inputs(graph, i, &inputs);
             j++) {
            qg_graph_node_inputs(graph, i, &inputs);
            const graph_place *in = &plan->places[inputs[j]];
            REQUIRE(in->needed && in->last >= plan->places[i].step, "input of node %d", i);
        }
    for (int32_t i = 0; i < qg_graph_outputs(graph, &outputs); i++)
        ck_assert_int_eq(plan->places[outputs[i]].last, INT32_MAX);
}

START_TEST(values_that_live_together_do_not_overlap) {
    for (uint64_t seed = 0; seed < 200; seed++) {
        random_graph r = random_graph_of(seed, 60);
        graph_plan plan = plan_of(r.graph);
        require_lifetimes(r.graph, &plan);
        require_no_overlap(r.graph, &plan);
        ck_assert_int_le(plan.bytes, plan.without_reuse);
        graph_plan_free(&plan);
        random_graph_free(&r);
    }
}
END_TEST

static void require_same_outputs(const random_graph *r, const qg_graph_runner *a,
                                 const qg_graph_runner *b, uint64_t seed) {
    const qg_node *outputs;
    int32_t count = qg_graph_outputs(r->graph, &outputs);
    for (int32_t i = 0; i < count; i++) {
        size_t bytes = (size_t)qg_tensor_bytes(qg_graph_node_type(r->graph, outputs[i]));
        REQUIRE(memcmp(qg_graph_runner_values(a, outputs[i]), qg_graph_runner_values(b, outputs[i]),
                       bytes) == 0,
                "graph %d: node '%s' (%s)", (int)seed, qg_graph_node_name(r->graph, outputs[i]),
                qg_graph_op_describe(qg_graph_node_op(r->graph, outputs[i]))->name);
    }
}

START_TEST(neither_reuse_nor_threads_change_a_bit) {
    static const qg_graph_run_options options[] = {
        {.threads = 1 },
        {            .threads = 1, .keep = true},
        {            .threads = 2            },
        { .threads = 2,             .keep = true},
    };
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_graph r = random_graph_of(1000 + seed, 50);
        qg_graph_runner *runners[4];
        for (int i = 0; i < 4; i++) {
            runners[i] = new_runner(r.graph, &options[i]);
            require_ok(qg_graph_runner_run(runners[i], RANDOM_INPUTS, r.feeds));
            if (i > 0)
                require_same_outputs(&r, runners[0], runners[i], seed);
        }
        require_ok(qg_graph_runner_run(runners[0], RANDOM_INPUTS, r.feeds)); // over what it left
        require_same_outputs(&r, runners[1], runners[0], seed);
        for (int i = 0; i < 4; i++)
            qg_graph_runner_free(runners[i]);
        random_graph_free(&r);
    }
}
END_TEST

START_TEST(random_graphs_have_every_float_op) {
    int32_t counts[QG_GRAPH_OP_COUNT] = {0};
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_graph r = random_graph_of(1000 + seed, 50);
        for (int op = 0; op < QG_GRAPH_OP_COUNT; op++)
            counts[op] += qg_graph_count_op(r.graph, (qg_graph_op)op);
        random_graph_free(&r);
    }
    for (int op = QG_GRAPH_MATMUL; op < QG_GRAPH_SCALED_GROUPED_MATMUL; op++)
        REQUIRE(counts[op] > 0, "no %s", qg_graph_op_describe((qg_graph_op)op)->name);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {a_chain_needs_the_memory_of_two_values,
                                  a_residual_chain_needs_the_memory_of_three_values,
                                  outputs_stay,
                                  parameters_and_inputs_are_read_where_they_are,
                                  sixteen_bit_floats_need_room_as_binary32_once,
                                  moves_of_sixteen_bit_floats_need_no_room_as_binary32,
                                  buffers_beyond_63_bits_are_refused,
                                  a_value_takes_the_smallest_room_that_holds_it,
                                  rooms_of_neighbours_become_one,
                                  what_does_not_fit_begins_in_the_room_at_the_end,
                                  values_that_live_together_do_not_overlap,
                                  neither_reuse_nor_threads_change_a_bit,
                                  random_graphs_have_every_float_op};
    require_ok(qg_unit_use_isa(NULL));
    return RUN_SUITE("graph_buffers", tests);
}
