// Every rule of every op that is not scaled: one line that breaks it, and what is said about it.
// The scaled ops: test_graph_verify_scaled.c.
#include "refused_line.h"

#include <run_suite.h>

#include <stdlib.h>

static const char SOURCES[] = "f0 = input fp32[]\n"
                              "f3 = input fp32[3]\n"
                              "f4 = input fp32[4]\n"
                              "f23 = input fp32[2,3]\n"
                              "f34 = input fp32[3,4]\n"
                              "f31 = input fp32[3,1]\n"
                              "f234 = input fp32[2,3,4]\n"
                              "f243 = input fp32[2,4,3]\n"
                              "f343 = input fp32[3,4,3]\n"
                              "f8 = input fp32[1,1,1,1,1,1,2,3]\n"
                              "large = input fp32[1,2147483648]\n"
                              "tall = input fp32[2147483648,1]\n"
                              "h4 = input fp16[4]\n"
                              "h34 = input fp16[3,4]\n"
                              "i2 = input i64[2]\n"
                              "i22 = input i64[2,2]\n"
                              "u34 = input u8[3,4]\n"
                              "u4 = input u8[4]\n"
                              "u0 = input u8[]\n";

// The lines after the op.
static void are_refused_with(const char *op, const refused_line *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char line[128];
        snprintf(line, sizeof line, "%s%s", op, rows[i].line);
        check_refused(SOURCES, &(refused_line){line, rows[i].message});
    }
}

// One row per line of text.
// clang-format off
START_TEST(sources) {
    static const refused_line rows[] = {
        {"input fp32[0]", "extent 0 of axis 0 is below 1"},
        {"input fp32[2,-1]", "extent -1 of axis 1 is below 1"},
        {"parameter fp32[3,4,0]", "extent 0 of axis 2 is below 1"},
        {"input fp32[4611686018427387904]", "exceeds 2^62 bytes"},
        {"parameter u8[2147483648,2147483648,2]", "exceeds 2^62 bytes"},
        {"constant fp32[9223372036854775807,9223372036854775807] digest=0123456789abcdef",
         "exceeds 2^62 bytes"},
        {"input(f3) fp32[3]", "1 inputs, not 0 to 0"},
        {"parameter(f3) fp32[3]", "1 inputs, not 0 to 0"},
        {"constant(f3) fp32[1] 00000000", "1 inputs, not 0 to 0"},
    };
    ARE_REFUSED(rows);
}
END_TEST

START_TEST(matmul) {
    static const refused_line rows[] = {
        {"matmul(f23) fp32[2,4]", "1 inputs, not 2 to 2"},
        {"matmul fp32[2,4]", "0 inputs, not 2 to 2"},
        {"matmul(f23,f34,f34) fp32[2,4]", "3 inputs, not 2 to 2"},
        {"matmul(f0,f0) fp32[]", "one rank of at least 2: fp32[] and fp32[]"},
        {"matmul(f3,f3) fp32[]", "one rank of at least 2: fp32[3] and fp32[3]"},
        {"matmul(f23,f3) fp32[2]", "one rank of at least 2: fp32[2,3] and fp32[3]"},
        {"matmul(f234,f34) fp32[2,3,4]", "one rank of at least 2"},
        {"matmul(f23,f23) fp32[2,3]", "K differs"},
        {"matmul(f234,f234) fp32[2,3,4]", "K differs"},
        {"matmul(f234,f343) fp32[2,3,3]", "leading axes differ: fp32[2,3,4] and fp32[3,4,3]"},
        {"matmul(f23,h34) fp32[2,4]", "inputs of different dtypes: fp32[2,3] and fp16[3,4]"},
        {"matmul(f23,u34) fp32[2,4]", "an input is no float: u8[3,4]"},
        {"matmul(u34,f34) fp32[2,4]", "an input is no float: u8[3,4]"},
        {"matmul(f23,f34) fp32[2,5]", "its type is fp32[2,5], not fp32[2,4]"},
        {"matmul(f23,f34) fp32[3,4]", "its type is fp32[3,4], not fp32[2,4]"},
        {"matmul(f23,f34) fp32[2,4,1]", "its type is fp32[2,4,1], not fp32[2,4]"},
        {"matmul(f23,f34) fp16[2,4]", "its type is fp16[2,4], not fp32[2,4]"},
        {"matmul(f234,f243) fp32[3,3,3]", "its type is fp32[3,3,3], not fp32[2,3,3]"},
        {"matmul(tall,large) fp32[3,4]", "exceeds 2^62 bytes"},
    };
    ARE_REFUSED(rows);
}
END_TEST

START_TEST(transpose) {
    static const refused_line rows[] = {
        {"transpose(f23) fp32[3,2]", "attribute axes is missing"},
        {"transpose(f23) fp32[3,2] axes=", "0 axes of a tensor of rank 2"},
        {"transpose(f23) fp32[3,2] axes=1", "1 axes of a tensor of rank 2"},
        {"transpose(f23) fp32[3,2] axes=1,0,2", "3 axes of a tensor of rank 2"},
        {"transpose(f23) fp32[3,2] axes=1,1", "axis 1 is named twice"},
        {"transpose(f23) fp32[3,2] axes=2,0", "axis 2 is not one of 2"},
        {"transpose(f23) fp32[3,2] axes=1,-1", "axis -1 is none"},
        {"transpose(f23) fp32[3,2] axes=1,8", "axis 8 is none"},
        {"transpose(f0) fp32[1] axes=0", "1 axes of a tensor of rank 0"},
        {"transpose(f23) fp32[2,3] axes=1,0", "its type is fp32[2,3], not fp32[3,2]"},
        {"transpose(u34) fp32[4,3] axes=1,0", "its type is fp32[4,3], not u8[4,3]"},
        {"transpose(f23,f23) fp32[3,2] axes=1,0", "2 inputs, not 1 to 1"},
    };
    ARE_REFUSED(rows);
}
END_TEST

START_TEST(reshape) {
    static const refused_line rows[] = {
        {"reshape(f23) fp32[2,4]", "the number of elements differs: fp32[2,3] and fp32[2,4]"},
        {"reshape(f23) fp32[]", "the number of elements differs: fp32[2,3] and fp32[]"},
        {"reshape(f23) fp32[6,0]", "extent 0 of axis 1 is below 1"},
        {"reshape(f23) fp32[-6]", "extent -6 of axis 0 is below 1"},
        {"reshape(f23) fp16[6]", "its type is fp16[6], not fp32[6]"},
        {"reshape fp32[6]", "0 inputs, not 1 to 1"},
    };
    ARE_REFUSED(rows);
}
END_TEST

START_TEST(slice) {
    static const refused_line rows[] = {
        {"slice(f34) fp32[3,4]", "attribute begin is missing"},
        {"slice(f34) fp32[3,4] begin=0,0", "attribute end is missing"},
        {"slice(f34) fp32[3,4] end=3,4", "attribute begin is missing"},
        {"slice(f34) fp32[3,4] begin=0 end=3,4", "1 places of a tensor of rank 2"},
        {"slice(f34) fp32[3,4] begin=0,0 end=3,4,1", "3 places of a tensor of rank 2"},
        {"slice(f34) fp32[3] begin=0 end=3", "0 to 0 of axis 1 with extent 4"},
        {"slice(f34) fp32[3,4] begin=-1,0 end=3,4", "-1 to 3 of axis 0 with extent 3"},
        {"slice(f34) fp32[3,4] begin=0,0 end=3,5", "0 to 5 of axis 1 with extent 4"},
        {"slice(f34) fp32[3,4] begin=0,4 end=3,4", "4 to 4 of axis 1 with extent 4"},
        {"slice(f34) fp32[3,4] begin=2,0 end=1,4", "2 to 1 of axis 0 with extent 3"},
        {"slice(f34) fp32[3,3] begin=0,0 end=3,4", "its type is fp32[3,3], not fp32[3,4]"},
        {"slice(i2) fp32[1] begin=0 end=1", "its type is fp32[1], not i64[1]"},
        {"slice(f34,f34) fp32[3,4] begin=0,0 end=3,4", "2 inputs, not 1 to 1"},
    };
    ARE_REFUSED(rows);
}
END_TEST

START_TEST(concatenate) {
    static const refused_line rows[] = {
        {"concatenate fp32[6,4] axes=0", "0 inputs, not 1 to 64"},
        {"concatenate(f34,f34) fp32[6,4]", "attribute axes is missing"},
        {"concatenate(f34,f34) fp32[6,4] axes=", "0 axes, not 1"},
        {"concatenate(f34,f34) fp32[6,4] axes=0,1", "2 axes, not 1"},
        {"concatenate(f34,f34) fp32[6,4] axes=2", "axis 2 is not one of 2"},
        {"concatenate(f0,f0) fp32[2] axes=0", "axis 0 is not one of 0"},
        {"concatenate(f34,f31) fp32[6,4] axes=0",
         "inputs differ beyond the axis: fp32[3,4] and fp32[3,1]"},
        {"concatenate(f34,f3) fp32[6,4] axes=0", "inputs differ beyond the axis"},
        {"concatenate(f4,f34) fp32[7,4] axes=0", "inputs differ beyond the axis"},
        {"concatenate(f34,f34,h34) fp32[9,4] axes=0",
         "inputs differ beyond the axis: fp32[3,4] and fp16[3,4]"},
        {"concatenate(f34,f31) fp32[3,6] axes=1", "its type is fp32[3,6], not fp32[3,5]"},
        {"concatenate(f34,f34) fp32[3,4] axes=0", "its type is fp32[3,4], not fp32[6,4]"},
    };
    ARE_REFUSED(rows);
}
END_TEST

START_TEST(gather) {
    static const refused_line rows[] = {
        {"gather(f34) fp32[2,4]", "1 inputs, not 2 to 2"},
        {"gather(f0,i2) fp32[2]", "a table has a first axis: fp32[]"},
        {"gather(f34,f3) fp32[3,4]", "indices are i64: fp32[3]"},
        {"gather(f34,u34) fp32[3,4,4]", "indices are i64: u8[3,4]"},
        {"gather(f8,i22) fp32[2,2]", "the rank exceeds the largest"},
        {"gather(f34,i2) fp32[3,4]", "its type is fp32[3,4], not fp32[2,4]"},
        {"gather(f34,i22) fp32[2,4]", "its type is fp32[2,4], not fp32[2,2,4]"},
        {"gather(h34,i2) fp32[2,4]", "its type is fp32[2,4], not fp16[2,4]"},
    };
    ARE_REFUSED(rows);
}
END_TEST

START_TEST(broadcast) {
    static const char *const ops[] = {"add", "subtract", "multiply", "divide", "maximum"};
    static const refused_line rows[] = {
        {"(f34) fp32[3,4]", "1 inputs, not 2 to 2"},
        {"(f34,f34,f34) fp32[3,4]", "3 inputs, not 2 to 2"},
        {"(f34,f3) fp32[3,4]", "shapes do not broadcast: fp32[3,4] and fp32[3]"},
        {"(f23,f34) fp32[2,3]", "shapes do not broadcast"},
        {"(f3,f34) fp32[3,4]", "shapes do not broadcast"},
        {"(f34,h4) fp32[3,4]", "inputs of different dtypes: fp32[3,4] and fp16[4]"},
        {"(u34,u4) u8[3,4]", "an input is no float: u8[3,4]"},
        {"(f34,i2) fp32[3,4]", "an input is no float: i64[2]"},
        {"(f34,f4) fp32[4]", "its type is fp32[4], not fp32[3,4]"},
        {"(f4,f31) fp32[3,1]", "its type is fp32[3,1], not fp32[3,4]"},
        {"(f0,f4) fp32[]", "its type is fp32[], not fp32[4]"},
        {"(h34,h4) fp32[3,4]", "its type is fp32[3,4], not fp16[3,4]"},
        {"(tall,large) fp32[3,4]", "exceeds 2^62 bytes"},
    };
    for (size_t op = 0; op < sizeof ops / sizeof ops[0]; op++)
        are_refused_with(ops[op], rows, sizeof rows / sizeof rows[0]);
}
END_TEST

START_TEST(functions_of_each_element) {
    static const char *const ops[] = {"sqrt", "gelu", "relu", "tanh", "softmax"};
    static const refused_line rows[] = {
        {" fp32[3,4]", "0 inputs, not 1 to 1"},
        {"(f34,f34) fp32[3,4]", "2 inputs, not 1 to 1"},
        {"(u34) u8[3,4]", "an input is no float: u8[3,4]"},
        {"(i2) fp32[2]", "an input is no float: i64[2]"},
        {"(f34) fp32[4,3]", "its type is fp32[4,3], not fp32[3,4]"},
        {"(f34) fp32[12]", "its type is fp32[12], not fp32[3,4]"},
        {"(h34) bf16[3,4]", "its type is bf16[3,4], not fp16[3,4]"},
    };
    for (size_t op = 0; op < sizeof ops / sizeof ops[0]; op++)
        are_refused_with(ops[op], rows, sizeof rows / sizeof rows[0]);
    check_refused(SOURCES, &(refused_line){"softmax(f0) fp32[]", "needs a last axis: fp32[]"});
}
END_TEST

START_TEST(layer_norm) {
    static const refused_line rows[] = {
        {"layer_norm(f34,f4) fp32[3,4] eps=0", "2 inputs, not 3 to 3"},
        {"layer_norm(f34,f4,f4) fp32[3,4]", "attribute eps is missing"},
        {"layer_norm(f34,f4,f4) fp32[3,4] eps=-1e-5", "eps -1e-05 is not a finite number of at"},
        {"layer_norm(f34,f4,f4) fp32[3,4] eps=inf", "'inf' is no number of binary32"},
        {"layer_norm(f34,f4,f4) fp32[3,4] eps=nan", "'nan' is no number of binary32"},
        {"layer_norm(f34,f4,f4) fp32[3,4] eps=1e39", "'1e39' is no number of binary32"},
        {"layer_norm(f0,f4,f4) fp32[] eps=0", "layer norm needs a last axis: fp32[]"},
        {"layer_norm(f34,f3,f4) fp32[3,4] eps=0",
         "gain and bias have one element for each of the last axis: fp32[3,4] and fp32[3]"},
        {"layer_norm(f34,f4,f3) fp32[3,4] eps=0", "gain and bias have one element"},
        {"layer_norm(f34,f34,f4) fp32[3,4] eps=0", "gain and bias have one element"},
        {"layer_norm(f34,f4,f0) fp32[3,4] eps=0", "gain and bias have one element"},
        {"layer_norm(f34,h4,f4) fp32[3,4] eps=0", "inputs of different dtypes"},
        {"layer_norm(f34,f4,u4) fp32[3,4] eps=0", "an input is no float: u8[4]"},
        {"layer_norm(f34,f4,f4) fp32[4] eps=0", "its type is fp32[4], not fp32[3,4]"},
    };
    ARE_REFUSED(rows);
}
END_TEST

START_TEST(reductions) {
    static const char *const ops[] = {"reduce_sum", "reduce_mean", "reduce_max"};
    static const refused_line rows[] = {
        {"(f34,f34) fp32[3] axes=1", "2 inputs, not 1 to 1"},
        {"(f34) fp32[3]", "attribute axes is missing"},
        {"(f34) fp32[3,4] axes=", "a reduction names at least one axis"},
        {"(f34) fp32[3] axes=2", "axis 2 is not one of 2"},
        {"(f34) fp32[3] axes=1,1", "axis 1 is named twice"},
        {"(f0) fp32[] axes=", "a reduction names at least one axis"},
        {"(f0) fp32[] axes=0", "axis 0 is not one of 0"},
        {"(u34) u8[3] axes=1", "an input is no float: u8[3,4]"},
        {"(f34) fp32[4] axes=1", "its type is fp32[4], not fp32[3]"},
        {"(f34) fp32[3] axes=1 keepdims=1", "its type is fp32[3], not fp32[3,1]"},
        {"(f34) fp32[3,1] axes=1 keepdims=0", "its type is fp32[3,1], not fp32[3]"},
        {"(f34) fp32[3] axes=1,0", "its type is fp32[3], not fp32[]"},
        {"(h34) fp32[3] axes=1", "its type is fp32[3], not fp16[3]"},
    };
    for (size_t op = 0; op < sizeof ops / sizeof ops[0]; op++)
        are_refused_with(ops[op], rows, sizeof rows / sizeof rows[0]);
}
END_TEST

START_TEST(cast) {
    static const refused_line rows[] = {
        {"cast fp16[3,4]", "0 inputs, not 1 to 1"},
        {"cast(u34) fp32[3,4]", "an input is no float: u8[3,4]"},
        {"cast(i2) fp32[2]", "an input is no float: i64[2]"},
        {"cast(f34) u8[3,4]", "the output is no float: u8[3,4]"},
        {"cast(f34) i64[3,4]", "the output is no float: i64[3,4]"},
        {"cast(f34) fp16[4,3]", "its type is fp16[4,3], not fp16[3,4]"},
    };
    ARE_REFUSED(rows);
}
END_TEST

START_TEST(gradients) {
    static const refused_line rows[] = {
        {"relu_gradient(f34) fp32[3,4]", "1 inputs, not 2 to 2"},
        {"relu_gradient(f34,f4) fp32[3,4]", "x and dy differ: fp32[3,4] and fp32[4]"},
        {"relu_gradient(f34,h34) fp32[3,4]", "inputs of different dtypes"},
        {"relu_gradient(u34,u34) u8[3,4]", "an input is no float"},
        {"relu_gradient(f34,f34) fp32[4,3]", "its type is fp32[4,3], not fp32[3,4]"},
        {"gelu_gradient(f34,f34,f34) fp32[3,4]", "3 inputs, not 2 to 2"},
        {"gelu_gradient(f34,f31) fp32[3,4]", "x and dy differ: fp32[3,4] and fp32[3,1]"},
        {"gelu_gradient(f34,h34) fp32[3,4]", "inputs of different dtypes"},
        {"gelu_gradient(f34,f34) fp32[3]", "its type is fp32[3], not fp32[3,4]"},
        {"reduce_max_gradient(f34,f31) fp32[3,4] axes=1", "2 inputs, not 3 to 3"},
        {"reduce_max_gradient(f34,f31,f31) fp32[3,4]", "attribute axes is missing"},
        {"reduce_max_gradient(f34,f31,f31) fp32[3,4] axes=", "a reduction names at least one axis"},
        {"reduce_max_gradient(f34,f31,f31) fp32[3,4] axes=2", "axis 2 is not one of 2"},
        {"reduce_max_gradient(f34,f3,f31) fp32[3,4] axes=1",
         "y and dy are the reduced x: fp32[3,1] and fp32[3]"},
        {"reduce_max_gradient(f34,f31,f34) fp32[3,4] axes=1",
         "y and dy are the reduced x: fp32[3,1] and fp32[3,4]"},
        {"reduce_max_gradient(f34,f31,f31) fp32[3,4] axes=0",
         "y and dy are the reduced x: fp32[1,4] and fp32[3,1]"},
        {"reduce_max_gradient(f34,f31,h34) fp32[3,4] axes=1", "inputs of different dtypes"},
        {"reduce_max_gradient(f34,f31,f31) fp32[3,1] axes=1",
         "its type is fp32[3,1], not fp32[3,4]"},
    };
    ARE_REFUSED(rows);
}
END_TEST
// clang-format on

// Sources have any type, casts and scaled products their dtype, reshapes their rank.
static bool may_have(qg_graph_op op, int slip) {
    if (op == QG_GRAPH_CAST || op == QG_GRAPH_SCALED_MATMUL || op == QG_GRAPH_SCALED_GROUPED_MATMUL)
        return type_slip_is_dtype(slip);
    return qg_graph_op_describe(op)->most == 0 ||
           (op == QG_GRAPH_RESHAPE && type_slip_is_rank(slip));
}

// The text of the graph with another type at a node. Freed by the caller.
static char *with_type(const qg_graph *g, qg_node node, const qg_tensor_type *type) {
    char *text, *changed, own[QG_TENSOR_TEXT_SIZE], other[QG_TENSOR_TEXT_SIZE];
    size_t size;
    ck_assert_int_eq(qg_graph_print(g, &text, &size), QG_OK);
    changed = malloc(size + QG_TENSOR_TEXT_SIZE);
    ck_assert_ptr_nonnull(changed);
    qg_tensor_text(qg_graph_node_type(g, node), own);
    qg_tensor_text(type, other);
    char *line = text;
    for (qg_node i = 0; i <= node; i++)
        line = strchr(line, '\n') + 1;
    char *at = strstr(line, own);
    snprintf(changed, size + QG_TENSOR_TEXT_SIZE, "%.*s%s%s", (int)(at - text), text, other,
             at + strlen(own));
    qg_release(text);
    return changed;
}

static void check_wrong_type(const qg_graph *g, qg_node node, const qg_tensor_type *type) {
    char other[QG_TENSOR_TEXT_SIZE], prefix[512];
    char *text = with_type(g, node, type);
    qg_graph_op op = qg_graph_node_op(g, node);
    qg_tensor_text(type, other);
    snprintf(prefix, sizeof prefix, "line %d: node '%s' (%s): ", (int)node + 2,
             qg_graph_node_name(g, node), qg_graph_op_describe(op)->name);
    bool has_places = op == QG_GRAPH_SLICE && type->rank != qg_graph_node_type(g, node)->rank;
    check_text_refused(text, prefix, has_places ? "places of a tensor of rank" : other);
    free(text);
}

// Each line of a graph that has every op, with each wrong type that a small slip would make.
START_TEST(a_wrong_type_at_any_node_is_refused_by_name) {
    qg_graph *g = every_op_graph();
    int checked = 0;
    for (qg_node i = 0; i < qg_graph_count(g); i++)
        for (int slip = 0; slip < TYPE_SLIPS; slip++) {
            qg_tensor_type type = *qg_graph_node_type(g, i);
            if (!slip_type(&type, slip) || may_have(qg_graph_node_op(g, i), slip))
                continue;
            check_wrong_type(g, i, &type);
            checked++;
        }
    ck_assert_int_gt(checked, 500);
    qg_graph_free(g);
}
END_TEST

// What is quantized is of any float dtype.
static bool is_quantized(const qg_graph *g, qg_node node) {
    const char *name = qg_graph_node_name(g, node);
    return strcmp(name, "x/scaled") == 0 || strcmp(name, "experts") == 0;
}

// Every input of the graph has users, and all of them say their types.
START_TEST(a_wrong_type_of_any_input_is_refused_at_its_user) {
    qg_graph *g = every_op_graph();
    for (qg_node i = 0; i < qg_graph_count(g); i++)
        for (int slip = 0; slip < TYPE_SLIPS; slip++) {
            qg_tensor_type type = *qg_graph_node_type(g, i);
            if (!slip_type(&type, slip) || qg_graph_node_op(g, i) != QG_GRAPH_INPUT ||
                (is_quantized(g, i) && qg_dtype_is_float((qg_dtype)type.dtype) &&
                 type_slip_is_dtype(slip)))
                continue;
            char *text = with_type(g, i, &type);
            check_text_refused(text, "line ", ": node '");
            free(text);
        }
    qg_graph_free(g);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {sources,
                                  matmul,
                                  transpose,
                                  reshape,
                                  slice,
                                  concatenate,
                                  gather,
                                  broadcast,
                                  functions_of_each_element,
                                  layer_norm,
                                  reductions,
                                  cast,
                                  gradients,
                                  a_wrong_type_at_any_node_is_refused_by_name,
                                  a_wrong_type_of_any_input_is_refused_at_its_user};
    return RUN_SUITE("graph_verify", tests);
}
