// Building graphs: the first failure stays, names, outputs, values, copies. Nothing leaks on any
// path (the sanitizers' build of this test says so).
#include "every_op.h"

#include <run_suite.h>

#include <qg_digest.h>

#include <stdio.h>
#include <stdlib.h>

static qg_graph *create(void) {
    qg_graph *g;
    ck_assert_int_eq(qg_graph_create(&g), QG_OK);
    return g;
}

static qg_node input_of(qg_graph *g, const char *name) {
    return qg_graph_input(g, name, qg_tensor(QG_DTYPE_FP32, 2, 4, 4));
}

// The graph has failed with this detail; frees it.
static void check_failed(qg_graph *g, const char *detail) {
    REQUIRE(qg_graph_status(g) != QG_OK, "no failure: '%s' was wanted", detail);
    REQUIRE(strstr(qg_detail(), detail), "'%s' lacks '%s'", qg_detail(), detail);
    qg_graph_free(g);
}

// ---------------------------------------------------------------------------------------- failures

START_TEST(the_first_failure_stays_and_nothing_is_added_after_it) {
    qg_graph *g = create();
    qg_node x = input_of(g, "x"), y = qg_graph_input(g, "y", qg_tensor(QG_DTYPE_FP32, 2, 3, 3));
    qg_node nested = qg_graph_relu(g, qg_graph_tanh(g, qg_graph_add(g, x, y)));
    ck_assert_int_eq(nested, QG_NODE_NONE);
    ck_assert_int_eq(qg_graph_matmul(g, x, qg_graph_relu(g, x)), QG_NODE_NONE);
    ck_assert_int_eq(input_of(g, "x"), QG_NODE_NONE); // another failure, which is not recorded
    ck_assert_int_eq(qg_graph_name(g, x, "z"), QG_NODE_NONE);
    ck_assert_int_eq(qg_graph_output(g, x), QG_NODE_NONE);
    ck_assert_int_eq(qg_graph_scalar(g, 1.0f), QG_NODE_NONE);
    ck_assert_int_eq(qg_graph_quantize(g, x, "mxfp8").codes, QG_NODE_NONE);
    ck_assert_int_eq(qg_graph_count(g), 2);
    ck_assert_int_eq(qg_graph_status(g), QG_ERROR_ARGUMENT);
    ck_assert_str_eq(qg_detail(), "node 'add_2' (add): shapes do not broadcast: fp32[4,4] and "
                                  "fp32[3,3]");
    ck_assert_int_eq(qg_graph_verify(g), QG_ERROR_ARGUMENT);
    check_failed(g, "node 'add_2' (add)");
}
END_TEST

START_TEST(a_node_that_is_none_fails_every_builder) {
    static const qg_scaled none = {QG_NODE_NONE, QG_NODE_NONE, QG_NODE_NONE, "mxfp8"};
    static const int32_t axes[] = {0, 1};
    static const int64_t places[] = {0, 0};
    for (int builder = 0; builder < 26; builder++) {
        qg_graph *g = create();
        qg_node x = input_of(g, "x"), out = 0, no = QG_NODE_NONE, both[] = {x, no};
        switch (builder) {
        case 0: out = qg_graph_matmul(g, no, x); break;
        case 1: out = qg_graph_matmul(g, x, no); break;
        case 2: out = qg_graph_transpose(g, no, axes); break;
        case 3: out = qg_graph_reshape(g, no, 2, places); break;
        case 4: out = qg_graph_slice(g, no, places, places); break;
        case 5: out = qg_graph_concatenate(g, 2, both, 0); break;
        case 6: out = qg_graph_add(g, x, no); break;
        case 7: out = qg_graph_subtract(g, no, x); break;
        case 8: out = qg_graph_multiply(g, x, no); break;
        case 9: out = qg_graph_divide(g, no, x); break;
        case 10: out = qg_graph_maximum(g, x, no); break;
        case 11: out = qg_graph_sqrt(g, no); break;
        case 12: out = qg_graph_gelu(g, no, true); break;
        case 13: out = qg_graph_relu(g, no); break;
        case 14: out = qg_graph_tanh(g, no); break;
        case 15: out = qg_graph_softmax(g, no); break;
        case 16: out = qg_graph_layer_norm(g, x, x, no, 0.0f); break;
        case 17: out = qg_graph_gather(g, x, no); break;
        case 18: out = qg_graph_reduce(g, QG_GRAPH_REDUCE_SUM, no, 1, axes, false); break;
        case 19: out = qg_graph_cast(g, no, QG_DTYPE_FP16); break;
        case 20: out = qg_graph_quantize(g, no, "mxfp8").codes; break;
        case 21: out = qg_graph_dequantize(g, none); break;
        case 22: out = qg_graph_scaled_matmul(g, none, none, no, QG_DTYPE_FP32); break;
        case 23: out = qg_graph_scaled_grouped_matmul(g, none, none, no, no, QG_DTYPE_FP32); break;
        case 24: out = qg_graph_name(g, no, "z"); break;
        default: out = qg_graph_output(g, no); break;
        }
        ck_assert_int_eq(out, QG_NODE_NONE);
        check_failed(g, "no node");
    }
}
END_TEST

START_TEST(what_is_no_node_op_or_number_of_inputs_fails) {
    qg_node many[100] = {0};
    qg_graph *g = create();
    input_of(g, "x");
    qg_graph_relu(g, 1);
    check_failed(g, "node 'relu_1' (relu): input 0 is no node before it");
    g = create();
    qg_graph_add(g, input_of(g, "x"), -7);
    check_failed(g, "node 'add_1' (add): input 1 is no node before it");
    g = create();
    input_of(g, "x");
    qg_graph_concatenate(g, 65, many, 0);
    check_failed(g, "node 'concatenate_1' (concatenate): 65 inputs, not 1 to 64");
    g = create();
    qg_graph_add_node(g, QG_GRAPH_ADD, -1, many, NULL, "sum");
    check_failed(g, "node 'sum' (add): -1 inputs, not 2 to 2");
    g = create();
    qg_graph_add_node(g, QG_GRAPH_ADD, 2, NULL, NULL, "sum");
    check_failed(g, "node 'sum' (add): inputs are not given");
    g = create();
    qg_graph_add_node(g, QG_GRAPH_OP_COUNT, 0, NULL, NULL, NULL);
    check_failed(g, "is none");
    g = create();
    qg_graph_add_node(g, (qg_graph_op)-1, 0, NULL, NULL, NULL);
    check_failed(g, "op -1 is none");
    g = create();
    qg_graph_output(g, input_of(g, "x") + 1);
    check_failed(g, "what is to be an output is no node");
    g = create();
    qg_graph_name(g, input_of(g, "x") + 1, "y");
    check_failed(g, "what is to be named is no node");
}
END_TEST

START_TEST(attributes_out_of_any_range_fail) {
    static const int32_t axes[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    static const int64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    qg_graph *g = create();
    qg_graph_reduce(g, QG_GRAPH_REDUCE_MAX, input_of(g, "x"), 9, axes, true);
    check_failed(g, "node 'reduce_max_1' (reduce_max): 9 axes");
    g = create();
    qg_graph_reduce(g, QG_GRAPH_REDUCE_MAX, input_of(g, "x"), -1, axes, true);
    check_failed(g, "node 'reduce_max_1' (reduce_max): -1 axes");
    g = create();
    qg_graph_transpose(g, input_of(g, "x"), (const int32_t[]){0, INT32_MIN});
    check_failed(g, "axis -2147483648 is not one of 2");
    g = create();
    qg_graph_concatenate(g, 1, (const qg_node[]){input_of(g, "x")}, -1);
    check_failed(g, "axis -1 is not one of 2");
    g = create();
    qg_graph_reshape(g, input_of(g, "x"), 9, ones);
    check_failed(g, "node 'reshape_1' (reshape): rank 9 is not 0 to 8");
    g = create();
    qg_graph_reshape(g, input_of(g, "x"), -1, ones);
    check_failed(g, "rank -1 is not 0 to 8");
    g = create();
    qg_graph_cast(g, input_of(g, "x"), QG_DTYPE_COUNT);
    check_failed(g, "node 'cast_1' (cast): the output is no float: ?[4,4]");
    g = create();
    qg_graph_input(g, "x", qg_tensor(77, 1, 3));
    check_failed(g, "node 'x' (input): dtype 77 is none");
    g = create();
    qg_graph_layer_norm(g, input_of(g, "x"), 0, 0, -1.0f);
    check_failed(g, "layer_norm_1");
}
END_TEST

START_TEST(recipes_that_are_no_words_fail) {
    char word[400];
    qg_graph *g = create();
    qg_graph_quantize(g, input_of(g, "x"), NULL);
    check_failed(g, "node 'x' (input): a scaled op needs a recipe");
    g = create();
    qg_graph_quantize(g, input_of(g, "x"), "mxfp8 ");
    check_failed(g, "a recipe is letters, digits and _ . / : + -");
    g = create();
    memset(word, '/', sizeof word);
    word[sizeof word - 1] = 0;
    qg_graph_quantize(g, input_of(g, "x"), word);
    check_failed(g, "...' is longer than 159");
    g = create();
    qg_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    memset(attributes.recipe, 'm', sizeof attributes.recipe); // without an end
    qg_node x = input_of(g, "x");
    qg_graph_add_node(g, QG_GRAPH_SCALED_QUANT_SCALE, 1, &x, &attributes, NULL);
    check_failed(g, "...' is longer than 159");
    g = create();
    x = qg_graph_input(g, "x", qg_tensor(QG_DTYPE_FP32, 8, 1, 1, 1, 1, 1, 1, 4, 32));
    qg_graph_quantize(g, x, "rlx_mxfp4x2");
    check_failed(g, "node 'x' (input): rank 8 leaves no axis for two planes of codes");
}
END_TEST

START_TEST(attributes_that_an_op_does_not_have_are_dropped) {
    qg_attributes all;
    memset(&all, 0, sizeof all);
    all.type = qg_tensor(QG_DTYPE_BF16, 1, 3);
    all.axis_count = 1;
    all.axes[7] = 5;
    all.begin[0] = all.end[7] = 9;
    all.keepdims = all.tanh_form = true;
    all.eps = 2.0f;
    all.seed = 7;
    strcpy(all.recipe, "mxfp8");
    strcpy(all.recipe_b, "mxfp4");
    qg_graph *g = create();
    qg_node x = input_of(g, "x"), y = qg_graph_add_node(g, QG_GRAPH_RELU, 1, &x, &all, NULL);
    ck_assert_int_eq(qg_graph_status(g), QG_OK);
    const qg_attributes *a = qg_graph_node_attributes(g, y);
    ck_assert(a->type.dtype == 0 && a->type.rank == 0 && a->type.shape[0] == 0);
    ck_assert(a->axis_count == 0 && a->axes[7] == 0 && a->begin[0] == 0 && a->end[7] == 0);
    ck_assert(!a->keepdims && !a->tanh_form && a->eps == 0 && a->seed == 0);
    ck_assert(!a->recipe[0] && !a->recipe_b[0]);
    y = qg_graph_add_node(g, QG_GRAPH_REDUCE_SUM, 1, &x, &all, NULL);
    a = qg_graph_node_attributes(g, y);
    ck_assert_int_eq(a->axis_count, 1);
    ck_assert_int_eq(a->axes[7], 0); // past the count
    ck_assert(a->keepdims && !a->tanh_form && a->seed == 0 && a->eps == 0 && !a->recipe[0]);
    y = qg_graph_add_node(g, QG_GRAPH_GELU, 1, &x, &all, NULL);
    ck_assert(qg_graph_node_attributes(g, y)->tanh_form);
    ck_assert(!qg_graph_node_attributes(g, y)->keepdims);
    qg_graph_free(g);
}
END_TEST

// The last node of an op.
static const qg_attributes *attributes_of(const qg_graph *g, qg_graph_op op) {
    qg_node node = qg_graph_count(g) - 1;
    while (qg_graph_node_op(g, node) != op)
        node--;
    return qg_graph_node_attributes(g, node);
}

START_TEST(attributes_that_an_op_has_are_kept) {
    qg_graph *g = every_op_graph();
    ck_assert_int_eq(attributes_of(g, QG_GRAPH_RESHAPE)->type.rank, 2);
    ck_assert_int_eq(attributes_of(g, QG_GRAPH_CAST)->type.dtype, QG_DTYPE_BF16);
    ck_assert_int_eq(attributes_of(g, QG_GRAPH_CONCATENATE)->axes[0], 1);
    ck_assert_int_eq(attributes_of(g, QG_GRAPH_REDUCE_MAX_GRADIENT)->axes[0], 1);
    ck_assert(attributes_of(g, QG_GRAPH_REDUCE_MEAN)->keepdims);
    ck_assert(attributes_of(g, QG_GRAPH_GELU)->tanh_form);
    ck_assert(attributes_of(g, QG_GRAPH_GELU_GRADIENT)->tanh_form);
    ck_assert_uint_eq(attributes_of(g, QG_GRAPH_SCALED_QUANTIZE)->seed, UINT64_MAX);
    ck_assert_str_eq(attributes_of(g, QG_GRAPH_SCALED_TENSOR_SCALE)->recipe, "nvfp4_4over6");
    ck_assert_str_eq(attributes_of(g, QG_GRAPH_SCALED_GROUPED_MATMUL)->recipe_b, "nvfp4_4over6");
    ck_assert_int_eq(attributes_of(g, QG_GRAPH_SCALED_GROUPED_MATMUL)->type.dtype, QG_DTYPE_BF16);
    qg_graph_free(g);
}
END_TEST

// ------------------------------------------------------------------------------------------- names

START_TEST(what_is_no_name_is_refused_and_shown_without_odd_bytes) {
    char longest[257];
    memset(longest, 'n', sizeof longest);
    longest[256] = 0;
    static const char *const bad[] = {"",    " ",   "a b", "a\nb",    "a=b",
                                      "a(b", "a,b", "a#b", "\xc3\xa9"};
    for (size_t i = 0; i <= sizeof bad / sizeof bad[0]; i++) {
        qg_graph *g = create();
        input_of(g, i ? bad[i - 1] : longest);
        ck_assert_int_eq(qg_graph_status(g), QG_ERROR_ARGUMENT);
        for (const char *c = qg_detail(); *c; c++)
            ck_assert(*c >= ' ' && *c <= '~');
        check_failed(g, "is no name of a node");
    }
    qg_graph *g = create();
    longest[255] = 0;
    ck_assert_int_eq(qg_graph_find(g, longest), QG_NODE_NONE);
    qg_node node = input_of(g, longest);
    ck_assert_int_eq(qg_graph_find(g, longest), node);
    ck_assert_int_eq(input_of(g, "A.b/c:d-e_9"), node + 1);
    qg_graph_free(g);
}
END_TEST

START_TEST(no_name_is_found_or_given) {
    qg_graph *g = create();
    qg_node x = input_of(g, "x");
    ck_assert_int_eq(qg_graph_find(g, NULL), QG_NODE_NONE);
    qg_graph_name(g, x, NULL);
    check_failed(g, "is no name of a node");
}
END_TEST

START_TEST(a_name_is_taken_once) {
    qg_graph *g = create();
    input_of(g, "x");
    input_of(g, "x");
    check_failed(g, "the name 'x' is taken");
    g = create();
    qg_graph_relu(g, input_of(g, "x")); // relu_1
    input_of(g, "relu_1");
    check_failed(g, "the name 'relu_1' is taken");
    g = create();
    qg_graph_name(g, qg_graph_relu(g, input_of(g, "x")), "x");
    check_failed(g, "node 'relu_1' (relu): the name 'x' is taken");
}
END_TEST

START_TEST(own_names_give_way_to_given_ones) {
    qg_graph *g = create();
    qg_node x = input_of(g, "relu_2");
    input_of(g, "relu_2_1");
    qg_node y = qg_graph_relu(g, x);
    ck_assert_str_eq(qg_graph_node_name(g, y), "relu_2_2");
    ck_assert_str_eq(qg_graph_node_name(g, qg_graph_relu(g, x)), "relu_3");
    ck_assert_str_eq(qg_graph_node_name(g, qg_graph_scalar(g, 1.0f)), "constant_4");
    qg_graph_free(g);
}
END_TEST

START_TEST(a_node_is_named_unless_its_name_has_the_form_of_its_own) {
    qg_graph *g = create();
    qg_node x = input_of(g, "relu_7"), y = qg_graph_relu(g, x);
    ck_assert(qg_graph_node_is_named(g, x)); // of another op
    ck_assert(!qg_graph_node_is_named(g, y));
    qg_graph_name(g, y, "relu_x");
    ck_assert(qg_graph_node_is_named(g, y));
    qg_graph_name(g, y, "relu_12_3");
    ck_assert(!qg_graph_node_is_named(g, y));
    qg_graph_name(g, y, "relu_");
    ck_assert(qg_graph_node_is_named(g, y));
    ck_assert(!qg_graph_node_is_named(g, input_of(g, "input_9")));
    qg_graph_free(g);
}
END_TEST

// Names move about in the table of names as others go: all stay where they are looked for.
START_TEST(thousands_of_nodes_are_renamed_and_found) {
    enum { COUNT = 20000 };
    static char names[COUNT][24];
    uint64_t state = 1;
    qg_graph *g = create();
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        input_of(g, names[i]);
    }
    for (int i = 0; i < 3 * COUNT; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int node = (int)(state >> 33) % COUNT;
        char old[24];
        memcpy(old, names[node], sizeof old);
        snprintf(names[node], sizeof names[node], "m%d", i);
        ck_assert_int_eq(qg_graph_name(g, node, names[node]), node);
        ck_assert_int_eq(qg_graph_find(g, old), QG_NODE_NONE);
    }
    for (int i = 0; i < COUNT; i++)
        REQUIRE(qg_graph_find(g, names[i]) == i, "%s is not found", names[i]);
    ck_assert_int_eq(qg_graph_name(g, 3, names[3]), 3); // its own name
    qg_graph_output(g, 0);
    ck_assert_int_eq(qg_graph_verify(g), QG_OK);
    qg_graph_free(g);
}
END_TEST

// ----------------------------------------------------------------------------------------- outputs

START_TEST(outputs_are_in_order_and_once) {
    const qg_node *outputs;
    qg_graph *g = create();
    ck_assert_int_eq(qg_graph_outputs(g, &outputs), 0);
    for (int i = 0; i < 40; i++) {
        char name[24];
        snprintf(name, sizeof name, "x%d", i);
        input_of(g, name);
    }
    for (qg_node i = 39; i >= 0; i--)
        ck_assert_int_eq(qg_graph_output(g, i), i);
    ck_assert_int_eq(qg_graph_outputs(g, &outputs), 40);
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(outputs[i], 39 - i);
    qg_graph_output(g, 7);
    check_failed(g, "node 'x7' is an output already");
    g = create();
    input_of(g, "x");
    ck_assert_int_eq(qg_graph_verify(g), QG_ERROR_ARGUMENT);
    ck_assert_str_eq(qg_detail(), "the graph has no output");
    qg_graph_free(g);
}
END_TEST

// ------------------------------------------------------------------------------------------ values

START_TEST(a_constant_is_a_copy_and_a_parameter_is_borrowed) {
    float values[4] = {1, 2, 3, 4};
    qg_graph *g = create();
    qg_node c = qg_graph_constant(g, "c", qg_tensor(QG_DTYPE_FP32, 1, 4), values);
    qg_node p = qg_graph_parameter(g, "p", qg_tensor(QG_DTYPE_FP32, 1, 4), values);
    uint64_t digest = qg_digest_bytes(values, sizeof values);
    ck_assert_uint_eq(qg_graph_node_digest(g, c), digest);
    ck_assert_uint_eq(qg_graph_node_digest(g, p), digest);
    values[0] = 5;
    ck_assert_float_eq(*(const float *)qg_graph_node_values(g, c), 1);
    ck_assert_ptr_eq(qg_graph_node_values(g, p), values);
    ck_assert_ptr_null(qg_graph_node_values(g, input_of(g, "x")));
    ck_assert_uint_eq(qg_graph_node_digest(g, 2), 0);
    qg_node none = qg_graph_parameter(g, "none", qg_tensor(QG_DTYPE_FP32, 1, 4), NULL);
    ck_assert_ptr_null(qg_graph_node_values(g, none));
    ck_assert_uint_eq(qg_graph_node_digest(g, none), 0);
    qg_node scalar = qg_graph_scalar(g, -2.5f);
    ck_assert_int_eq(qg_graph_node_type(g, scalar)->rank, 0);
    ck_assert_float_eq(*(const float *)qg_graph_node_values(g, scalar), -2.5f);
    qg_graph_free(g);
}
END_TEST

START_TEST(constants_that_cannot_be_fail) {
    float value = 1;
    qg_graph *g = create();
    qg_graph_constant(g, "c", qg_tensor(QG_DTYPE_FP32, 1, 1), NULL);
    check_failed(g, "node 'c' (constant): a constant has values");
    g = create();
    qg_graph_constant(g, "c", qg_tensor(QG_DTYPE_FP32, 1, 0), &value);
    check_failed(g, "node 'c' (constant): extent 0 of axis 0 is below 1");
    g = create();
    qg_graph_constant(g, NULL, qg_tensor(QG_DTYPE_FP32, 2, INT64_MAX, INT64_MAX), &value);
    check_failed(g, "(constant): the tensor exceeds 2^62 bytes");
    g = create();
    qg_graph_constant(g, "a b", qg_tensor(QG_DTYPE_FP32, 1, 1), &value);
    check_failed(g, "'a b' is no name of a node");
    g = create();
    qg_graph_parameter(g, "a b", qg_tensor(QG_DTYPE_FP32, 1, 1), &value);
    check_failed(g, "'a b' is no name of a node");
}
END_TEST

static void check_not_bound(qg_graph *g, const char *name, const void *values, const char *detail) {
    ck_assert_int_eq(qg_graph_bind(g, name, values), QG_ERROR_ARGUMENT);
    REQUIRE(strstr(qg_detail(), detail), "'%s' lacks '%s'", qg_detail(), detail);
    ck_assert_int_eq(qg_graph_status(g), QG_OK); // binding is no builder
}

START_TEST(binding_checks_digests_where_they_are_known) {
    static const unsigned char right[3] = {1, 2, 3}, wrong[3] = {1, 2, 4};
    char text[512];
    qg_graph *g;
    snprintf(text, sizeof text,
             "qg_graph 1\nx = input u8[3]\nknown = parameter u8[3] "
             "digest=%016llx\nunknown = parameter u8[3]\n"
             "c = constant u8[3] 01,02,03\noutput known\n",
             (unsigned long long)qg_digest_bytes(right, sizeof right));
    ck_assert_msg(qg_graph_read(text, strlen(text), &g) == QG_OK, "%s", qg_detail());
    check_not_bound(g, "y", right, "'y' is no parameter or constant of the graph");
    check_not_bound(g, NULL, right, "'' is no parameter or constant of the graph");
    check_not_bound(g, "x", right, "'x' is no parameter or constant of the graph");
    check_not_bound(g, "known", NULL, "node 'known': no values to bind");
    check_not_bound(g, "known", wrong, "node 'known': the values have digest");
    check_not_bound(g, "c", wrong, "node 'c': the values have digest");
    ck_assert_ptr_null(qg_graph_node_values(g, qg_graph_find(g, "known")));
    ck_assert_int_eq(qg_graph_bind(g, "known", right), QG_OK);
    ck_assert_ptr_eq(qg_graph_node_values(g, qg_graph_find(g, "known")), right);
    ck_assert_int_eq(qg_graph_bind(g, "unknown", wrong), QG_OK);
    ck_assert_int_eq(qg_graph_bind(g, "unknown", right), QG_OK); // nothing is known of it
    ck_assert_int_eq(qg_graph_bind(g, "c", right), QG_OK);
    ck_assert_ptr_eq(qg_graph_node_values(g, qg_graph_find(g, "c")), right);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_copy_shares_values_and_lives_on_its_own) {
    static const float values[2] = {3, 4};
    qg_graph *g = create(), *copy, *of_failed;
    qg_node c = qg_graph_constant(g, "c", qg_tensor(QG_DTYPE_FP32, 1, 2), values);
    qg_node p = qg_graph_parameter(g, "p", qg_tensor(QG_DTYPE_FP32, 1, 2), NULL);
    qg_graph_output(g, qg_graph_add(g, c, p));
    ck_assert_int_eq(qg_graph_copy(g, &copy), QG_OK);
    ck_assert_ptr_eq(qg_graph_node_values(g, c), qg_graph_node_values(copy, c));
    ck_assert_int_eq(qg_graph_bind(copy, "p", values), QG_OK);
    ck_assert_ptr_null(qg_graph_node_values(g, p));
    qg_graph_name(copy, 2, "sum");
    ck_assert_str_eq(qg_graph_node_name(g, 2), "add_2");
    qg_graph_relu(g, 77);
    ck_assert_int_eq(qg_graph_copy(g, &of_failed), QG_ERROR_ARGUMENT);
    ck_assert_ptr_null(of_failed);
    qg_graph_free(g);
    ck_assert_float_eq(((const float *)qg_graph_node_values(copy, c))[1], 4);
    ck_assert_int_eq(qg_graph_verify(copy), QG_OK);
    qg_graph_free(copy);
    qg_graph_free(NULL);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {the_first_failure_stays_and_nothing_is_added_after_it,
                                  a_node_that_is_none_fails_every_builder,
                                  what_is_no_node_op_or_number_of_inputs_fails,
                                  attributes_out_of_any_range_fail,
                                  recipes_that_are_no_words_fail,
                                  attributes_that_an_op_does_not_have_are_dropped,
                                  attributes_that_an_op_has_are_kept,
                                  what_is_no_name_is_refused_and_shown_without_odd_bytes,
                                  no_name_is_found_or_given,
                                  a_name_is_taken_once,
                                  own_names_give_way_to_given_ones,
                                  a_node_is_named_unless_its_name_has_the_form_of_its_own,
                                  thousands_of_nodes_are_renamed_and_found,
                                  outputs_are_in_order_and_once,
                                  a_constant_is_a_copy_and_a_parameter_is_borrowed,
                                  constants_that_cannot_be_fail,
                                  binding_checks_digests_where_they_are_known,
                                  a_copy_shares_values_and_lives_on_its_own};
    return RUN_SUITE("graph_build", tests);
}
