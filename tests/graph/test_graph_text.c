// Graphs as text: what is printed is read as the same graph, and what is no graph is refused with
// one line that names line and node.
#include "graph_text_fuzz.h"
#include "refused_line.h"

#include <run_suite.h>

#include <qg_bits.h>
#include <qg_digest.h>
#include <qg_graph_run.h>

static char *printed(const qg_graph *graph) {
    char *text;
    ck_assert_msg(qg_graph_print(graph, &text, NULL) == QG_OK, "%s", qg_detail());
    return text;
}

static qg_graph *reading(const char *text) {
    qg_graph *graph;
    REQUIRE(qg_graph_read(text, strlen(text), &graph) == QG_OK, "%.1500s\n%s", text, qg_detail());
    return graph;
}

// The text of the graph that is read from `text`, freed by the caller.
static char *printed_again(const char *text) {
    qg_graph *graph = reading(text);
    char *again = printed(graph);
    qg_graph_free(graph);
    return again;
}

static void check_reads_as(const char *text, const char *canonical) {
    char *again = printed_again(text);
    ck_assert_str_eq(again, canonical);
    qg_release(again);
}

// ---------------------------------------------------------------------------------------- the same

START_TEST(what_is_printed_is_read_as_the_same_text) {
    qg_graph *g = every_op_graph();
    char *text = printed(g), *again = printed_again(text);
    ck_assert_str_eq(text, again);
    qg_graph_free(g);
    qg_release(text);
    qg_release(again);
}
END_TEST

START_TEST(the_header_of_the_form_is_an_example) {
    static const char text[] = "qg_graph 1\n"
                               "x = input fp32[4,64]\n"
                               "w = parameter fp32[64,16] digest=0123456789abcdef\n"
                               "c = constant fp32[2] 3f800000,40000000\n"
                               "t = transpose(w) fp32[16,64] axes=1,0\n"
                               "s = scaled_quant_scale(x) u8[4,2] recipe=mxfp8\n"
                               "q = scaled_quantize(x,s) u8[4,64] recipe=mxfp8\n"
                               "output q\n";
    check_reads_as(text, text);
}
END_TEST

static void check_same_values(const qg_graph *a, const qg_graph *b, qg_node node) {
    ck_assert_uint_eq(qg_graph_node_digest(a, node), qg_graph_node_digest(b, node));
    int64_t elements = qg_tensor_elements(qg_graph_node_type(a, node));
    if (qg_graph_node_op(a, node) != QG_GRAPH_CONSTANT)
        return;
    ck_assert_int_eq(qg_graph_node_values(b, node) == NULL, elements > QG_GRAPH_TEXT_CONSTANT_MOST);
    if (qg_graph_node_values(b, node))
        ck_assert_mem_eq(qg_graph_node_values(a, node), qg_graph_node_values(b, node),
                         (size_t)qg_tensor_bytes(qg_graph_node_type(a, node)));
}

static void check_same_attributes(const qg_attributes *a, const qg_attributes *b) {
    ck_assert(qg_tensor_equal(&a->type, &b->type));
    ck_assert_int_eq(a->axis_count, b->axis_count);
    ck_assert_mem_eq(a->axes, b->axes, sizeof a->axes);
    ck_assert_mem_eq(a->begin, b->begin, sizeof a->begin);
    ck_assert_mem_eq(a->end, b->end, sizeof a->end);
    ck_assert_int_eq(a->keepdims, b->keepdims);
    ck_assert_int_eq(a->tanh_form, b->tanh_form);
    ck_assert_uint_eq(qg_bits_of_float(a->eps), qg_bits_of_float(b->eps));
    ck_assert_uint_eq(a->seed, b->seed);
    ck_assert_mem_eq(a->recipe, b->recipe, sizeof a->recipe);
    ck_assert_mem_eq(a->recipe_b, b->recipe_b, sizeof a->recipe_b);
}

static void check_same_node(const qg_graph *a, const qg_graph *b, qg_node node) {
    const qg_node *inputs, *other;
    ck_assert_str_eq(qg_graph_node_name(a, node), qg_graph_node_name(b, node));
    ck_assert_int_eq(qg_graph_node_is_named(a, node), qg_graph_node_is_named(b, node));
    ck_assert_int_eq(qg_graph_node_op(a, node), qg_graph_node_op(b, node));
    ck_assert(qg_tensor_equal(qg_graph_node_type(a, node), qg_graph_node_type(b, node)));
    int32_t count = qg_graph_node_inputs(a, node, &inputs);
    ck_assert_int_eq(count, qg_graph_node_inputs(b, node, &other));
    ck_assert_mem_eq(inputs, other, (size_t)count * sizeof *inputs);
    check_same_attributes(qg_graph_node_attributes(a, node), qg_graph_node_attributes(b, node));
    check_same_values(a, b, node);
}

START_TEST(nodes_order_attributes_outputs_and_digests_are_the_same) {
    const qg_node *outputs, *other;
    qg_graph *g = every_op_graph();
    char *text = printed(g);
    qg_graph *again = reading(text);
    ck_assert_int_eq(qg_graph_count(g), qg_graph_count(again));
    for (qg_node i = 0; i < qg_graph_count(g); i++)
        check_same_node(g, again, i);
    int32_t count = qg_graph_outputs(g, &outputs);
    ck_assert_int_eq(count, qg_graph_outputs(again, &other));
    ck_assert_mem_eq(outputs, other, (size_t)count * sizeof *outputs);
    qg_graph_free(g);
    qg_graph_free(again);
    qg_release(text);
}
END_TEST

// ------------------------------------------------------------------------------------ the same run

enum { VALUES_SIZE = 4096 };

// Values for an input: small floats, and indices that are in range.
static void fill_input(const qg_tensor_type *type, unsigned char values[VALUES_SIZE]) {
    int64_t count = qg_tensor_elements(type);
    ck_assert_int_le(qg_tensor_bytes(type), VALUES_SIZE);
    for (int64_t i = 0; i < count; i++) {
        float x = (float)((i * 37 + 5) % 23) / 4 + 0.25f;
        uint16_t half = (uint16_t)(0x3800 + 67 * i);
        int64_t index = i % 2;
        const void *from = type->dtype == QG_DTYPE_FP32   ? (const void *)&x
                           : type->dtype == QG_DTYPE_FP16 ? (const void *)&half
                                                          : (const void *)&index;
        int bytes = qg_dtype_bytes((qg_dtype)type->dtype);
        memcpy(values + i * bytes, from, (size_t)bytes);
    }
}

// The digest of all outputs.
static uint64_t run_digest(const qg_graph *g) {
    static unsigned char values[16][VALUES_SIZE];
    qg_graph_feed feeds[16];
    int32_t count = 0;
    for (qg_node i = 0; i < qg_graph_count(g); i++)
        if (qg_graph_node_op(g, i) == QG_GRAPH_INPUT) {
            fill_input(qg_graph_node_type(g, i), values[count]);
            feeds[count] = (qg_graph_feed){qg_graph_node_name(g, i), values[count]};
            count++;
        }
    qg_graph_runner *runner;
    qg_digest *digest;
    const qg_node *outputs;
    ck_assert_int_eq(qg_digest_create(&digest), QG_OK);
    ck_assert_msg(qg_graph_runner_create(g, NULL, &runner) == QG_OK, "%s", qg_detail());
    ck_assert_msg(qg_graph_runner_run(runner, count, feeds) == QG_OK, "%s", qg_detail());
    int32_t output_count = qg_graph_outputs(g, &outputs);
    for (int32_t i = 0; i < output_count; i++)
        qg_digest_add(digest, qg_graph_runner_values(runner, outputs[i]),
                      (size_t)qg_tensor_bytes(qg_graph_node_type(g, outputs[i])));
    uint64_t value = qg_digest_value(digest);
    qg_digest_free(digest);
    qg_graph_runner_free(runner);
    return value;
}

START_TEST(a_graph_that_was_read_computes_the_same) {
    static const uint16_t unknown[14];
    qg_graph *g = every_op_graph();
    char *text = printed(g);
    qg_graph *again = reading(text);
    ck_assert_int_eq(qg_graph_bind(g, "w.unknown", unknown), QG_OK);
    ck_assert_int_eq(qg_graph_bind(again, "w.unknown", unknown), QG_OK);
    static const char *const names[] = {"w.known", "c.large"};
    for (int i = 0; i < 2; i++)
        ck_assert_msg(qg_graph_bind(again, names[i],
                                    qg_graph_node_values(g, qg_graph_find(g, names[i]))) == QG_OK,
                      "%s", qg_detail());
    ck_assert_uint_eq(run_digest(g), run_digest(again));
    qg_graph_free(g);
    qg_graph_free(again);
    qg_release(text);
}
END_TEST

// ------------------------------------------------------------------------------------------- style

START_TEST(blanks_comments_and_line_ends_do_not_matter) {
    static const char canonical[] = "qg_graph 1\n"
                                    "x = input fp32[4,64]\n"
                                    "output = reduce_sum(x) fp32[64] axes=0\n"
                                    "y = add(x,output) fp32[4,64]\n"
                                    "output y\n"
                                    "output output\n";
    check_reads_as("# first\n\n  \t\n\tqg_graph\t1 # version \xc3\xa9\x01\n"
                   "x=input fp32 [ 4 , 64 ]\n"
                   "  output  =reduce_sum ( x )fp32[64]axes = 0\n#\n"
                   "y = add( x,\toutput )fp32[4,64]# sum\n"
                   "output y\noutput\toutput   ",
                   canonical);
    check_reads_as(
        "qg_graph 1\r\nx = input fp32[4,64]\r\n\r\noutput = reduce_sum(x) fp32[64] axes=0"
        "\r\ny = add(x,output) fp32[4,64]\r\noutput y\r\noutput output\r\n",
        canonical);
    check_reads_as("qg_graph 1\nx = input fp32[4,64]\noutput = reduce_sum(x) fp32[64] axes=0 "
                   "keepdims=0\ny = add(x,output) fp32[4,64]\noutput y\noutput output",
                   canonical);
}
END_TEST

START_TEST(outputs_may_stand_between_nodes_and_attributes_in_any_order) {
    check_reads_as("qg_graph 1\nx = input fp32[4]\noutput x\n"
                   "y = slice(x) fp32[2] end=3 begin=1\noutput y\n",
                   "qg_graph 1\nx = input fp32[4]\ny = slice(x) fp32[2] begin=1 end=3\n"
                   "output x\noutput y\n");
}
END_TEST

START_TEST(eps_is_exact_and_may_be_decimal) {
    static const struct {
        const char *text;
        uint32_t bits;
    } rows[] = {
        {"1e-12",           0x2b8cbccc},
        {"0x1.197998p-40",  0x2b8cbccc},
        {"0.1",             0x3dcccccd},
        {"0x1p-149",        1         },
        {"0x1.fffffep+127", 0x7f7fffff},
        {"0",               0         },
        {".5",              0x3f000000},
        {"-0",              0x80000000}
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "qg_graph 1\nx = input fp32[4]\ny = layer_norm(x,x,x) fp32[4] eps=%s\noutput y\n",
                 rows[i].text);
        qg_graph *g = reading(text);
        char *again = printed(g);
        qg_graph *last = reading(again);
        ck_assert_uint_eq(qg_bits_of_float(qg_graph_node_attributes(g, 1)->eps), rows[i].bits);
        ck_assert_uint_eq(qg_bits_of_float(qg_graph_node_attributes(last, 1)->eps), rows[i].bits);
        qg_graph_free(g);
        qg_graph_free(last);
        qg_release(again);
    }
}
END_TEST

// ---------------------------------------------------------------------------------------- refusals

// One row per line of text.
// clang-format off
START_TEST(malformed_nodes_are_refused_by_line_and_name) {
    static const refused_line rows[] = {
        {"add(x,y) fp32[4]", "input 'y' is no node before it"},
        {"add(x,bad) fp32[4]", "input 'bad' is no node before it"},
        {"add(x,) fp32[4]", "input is missing before ') fp32[4]'"},
        {"add(x", "')' is missing at the end of the line"},
        {"add(x x) fp32[4]", "')' is missing before 'x) fp32[4]'"},
        {"add(x;x) fp32[4]", "')' is missing before ';x) fp32[4]'"},
        {"add(x,x)", "a type is missing at the end of the line"},
        {"add(x,x) fp23[4]", "unknown dtype 'fp23'; the nearest is fp32"},
        {"add(x,x) 4", "unknown dtype '4'"},
        {"add(x,x) fp32", "'[' is missing at the end of the line"},
        {"add(x,x) fp32[4", "']' is missing at the end of the line"},
        {"add(x,x) fp32[4,]", "'' is no integer of 64 bits"},
        {"add(x,x) fp32[4x]", "'4x' is no integer of 64 bits"},
        {"add(x,x) fp32[x]", "']' is missing before 'x]'"},
        {"add(x,x) fp32[9223372036854775808]", "'9223372036854775808' is no integer of 64 bits"},
        {"add(x,x) fp32[99999999999999999999]", "is no integer of 64 bits"},
        {"add(x,x) fp32[-9223372036854775808]", "is no integer of 64 bits"},
        {"add(x,x) fp32[-]", "'-' is no integer of 64 bits"},
        {"add(x,x) fp32[1,1,1,1,1,1,1,1,4]", "more than 8 integers"},
        {"add(x,x) fp32[4] keepdims=1", "it has no attribute keepdims"},
        {"add(x,x) fp32[4] digest=0123456789abcdef", "it has no attribute digest"},
        {"add(x,x) fp32[4] ,", "an attribute is missing before ','"},
        {"add(x,x) fp32[4] axes", "'=' is missing at the end of the line"},
        {"add(x,x) fp32[4] axis=0", "unknown attribute 'axis'; the nearest is axes"},
        {"add(x,x) fp32[4] colour=0", "unknown attribute 'colour'"},
        {"reduce_sum(x) fp32[] axes=0 axes=0", "attribute axes is there twice"},
        {"reduce_sum(x) fp32[] axes=0 keepdims=2", "'2' is neither 0 nor 1"},
        {"reduce_sum(x) fp32[] axes=0 keepdims=", "'' is neither 0 nor 1"},
        {"reduce_sum(x) fp32[] axes=0,", "'' is no integer of 64 bits"},
        {"reduce_sum(x) fp32[] axes=0,0,0,0,0,0,0,0,0", "more than 8 integers"},
        {"reduce_sum(x) fp32[] axes=9223372036854775807", "axis 9223372036854775807 is none"},
        {"gelu(x) fp32[4] tanh_form=true", "'true' is neither 0 nor 1"},
        {"layer_norm(x,x,x) fp32[4] eps=", "'' is no number of binary32"},
        {"layer_norm(x,x,x) fp32[4] eps=1e-5x", "'1e-5x' is no number of binary32"},
        {"layer_norm(x,x,x) fp32[4] eps=+1", "'+1' is no number of binary32"},
        {"layer_norm(x,x,x) fp32[4] eps="
         "0.00000000000000000000000000000000000000000000000000000000000001",
         "the number '0.000000000000000000000000000000000000000000000000000000000"},
        {"scaled_quantize(x,x) u8[4] recipe=e4m3 seed=18446744073709551616",
         "'18446744073709551616' is no integer of 64 bits"},
        {"scaled_quantize(x,x) u8[4] recipe=e4m3 seed=-1", "'-1' is no integer of 64 bits"},
        {"scaled_quantize(x,x) u8[4] recipe=e4m3////////////////////////////////////////////////"
         "////////////////////////////////////////////////////////////////////////////////////////"
         "/////////////////////////////////", "is longer than 159"},
        {"parameter fp32[4] digest=0123456789abcde", "'0123456789abcde' is not 16 hexadecimal"},
        {"parameter fp32[4] digest=0123456789abcdefa", "is not 16 hexadecimal digits"},
        {"parameter fp32[4] digest=0123456789abcdeg", "is not 16 hexadecimal digits"},
        {"parameter fp32[4] digest=0000000000000000", "0 is no digest"},
        {"parameter fp32[1] 3f800000", "'=' is missing at the end of the line"},
        {"constant fp32[2]", "an element of the constant is missing at the end of the line"},
        {"constant fp32[2] digest=0123456789abcdef", "'digest' is not 8 hexadecimal digits"},
        {"constant fp32[2] 3f800000", "1 elements, not 2"},
        {"constant fp32[2] 3f800000,", "an element of the constant is missing"},
        {"constant fp32[2] 3f800000,3f800000,3f800000", "more than 2 elements"},
        {"constant fp32[2] 3f800000,3f80000", "'3f80000' is not 8 hexadecimal digits"},
        {"constant fp32[2] 3f800000,3f8000000", "is not 8 hexadecimal digits"},
        {"constant fp32[2] 3f800000,3f80000g", "is not 8 hexadecimal digits"},
        {"constant fp32[2] 3f800000,0x3f8000", "is not 8 hexadecimal digits"},
        {"constant u8[2] 1,2", "'1' is not 2 hexadecimal digits"},
        {"constant fp16[1] 3f800000", "is not 4 hexadecimal digits"},
        {"constant i64[1] 3f800000", "is not 16 hexadecimal digits"},
        {"constant fp32[2] 3f800000,40000000 digest=0123456789abcdef", "has no digest"},
        {"constant fp32[65]", "a constant of more than 64 elements has a digest"},
        {"constant fp32[65] 3f800000", "'=' is missing at the end of the line"},
    };
    check_all_refused("x = input fp32[4]\n", rows, sizeof rows / sizeof rows[0]);
}
END_TEST

START_TEST(malformed_lines_are_refused) {
    static const struct {
        const char *text, *prefix, *message;
    } rows[] = {
        {"", "an empty text is no graph", ""},
        {"\n\n# nothing\n", "an empty text is no graph", ""},
        {"x = input fp32[4]\n", "line 1: this is no graph of version 1", "'qg_graph 1'"},
        {"\nqg_graph 2\n", "line 2: this is no graph of version 1", ""},
        {"qg_graph 1 1\n", "line 1: this is no graph of version 1", ""},
        {"qg_graph\n", "line 1: this is no graph of version 1", ""},
        {"\xef\xbb\xbfqg_graph 1\n", "line 1: byte 0xef is none of a graph's text", ""},
        {"qg_graph 1\n", "the graph has no output", ""},
        {"qg_graph 1\nx = input fp32[4]\n", "the graph has no output", ""},
        {"qg_graph 1\nqg_graph 1\n", "line 2: '=' is missing before '1'", ""},
        {"qg_graph 1\n= input fp32[4]\n", "line 2: the name of a node is missing before '= input",
         ""},
        {"qg_graph 1\nx input fp32[4]\n", "line 2: '=' is missing before 'input fp32[4]'", ""},
        {"qg_graph 1\nx\n", "line 2: '=' is missing at the end of the line", ""},
        {"qg_graph 1\nx =\n", "line 2: node 'x': an op is missing at the end of the line", ""},
        {"qg_graph 1\nx = (x)\n", "line 2: node 'x': an op is missing before '(x)'", ""},
        {"qg_graph 1\nx = imput fp32[4]\n",
         "line 2: node 'x': unknown op 'imput'; the nearest is "
         "input", ""},
        {"qg_graph 1\nx = scaled_matmull\n",
         "line 2: node 'x': unknown op 'scaled_matmull'; the "
         "nearest is scaled_matmul", ""},
        {"qg_graph 1\nx = convolution\n", "line 2: node 'x': unknown op 'convolution'", ""},
        {"qg_graph 1\nx+y = input fp32[4]\n", "line 2: node 'x+y' (input): 'x+y' is no name", ""},
        {"qg_graph 1\nx = input fp32[4]\nx = input fp32[4]\n",
         "line 3: node 'x' (input): the name 'x' is taken", ""},
        {"qg_graph 1\nx = input fp32[4]\noutput y\n", "line 3: output 'y' is no node before it",
         ""},
        {"qg_graph 1\noutput x\nx = input fp32[4]\n", "line 2: output 'x' is no node before it",
         ""},
        {"qg_graph 1\nx = input fp32[4]\noutput\n", "line 3: output is missing at the end", ""},
        {"qg_graph 1\nx = input fp32[4]\noutput x x\n",
         "line 3: the end of the line is missing before 'x'", ""},
        {"qg_graph 1\nx = input fp32[4]\noutput x\noutput x\n",
         "line 4: node 'x' is an output already", ""},
        {"qg_graph 1\nx = input fp32[4]\x1b[31m\n", "line 2: byte 0x1b is none of a graph's", ""},
        {"qg_graph 1\nx = input fp32[4]\rx\n", "line 2: byte 0x0d is none of a graph's text", ""},
        {"qg_graph 1\nx = input fp32[4] \xc3\xa9\n", "line 2: byte 0xc3 is none of a graph's", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_text_refused(rows[i].text, rows[i].prefix, rows[i].message);
}
END_TEST
// clang-format on

START_TEST(a_zero_byte_is_refused_by_line) {
    static const char text[] = "qg_graph 1\nx = input fp32[4]\0\noutput x\n";
    static const char in_comment[] = "qg_graph 1\n# \0\nx = input fp32[4]\noutput x\n";
    qg_graph *graph;
    ck_assert_int_eq(qg_graph_read(text, sizeof text - 1, &graph), QG_ERROR_DATA);
    ck_assert_str_eq(qg_detail(), "line 2: a zero byte is no text");
    ck_assert_int_eq(qg_graph_read(in_comment, sizeof in_comment - 1, &graph), QG_ERROR_DATA);
    ck_assert_str_eq(qg_detail(), "line 2: a zero byte is no text");
    ck_assert_ptr_null(graph);
}
END_TEST

START_TEST(lengths_are_limited) {
    enum { MOST = 1 << 16 };
    static char text[MOST + 128];
    qg_graph *graph;
    // A comment as long as a line may be, and one byte more.
    for (int more = 0; more < 2; more++) {
        memset(text, '#', sizeof text);
        int start = snprintf(text, sizeof text, "qg_graph 1\nx = input fp32[4]\noutput x\n");
        snprintf(text + start + MOST + more, 8, "\n");
        text[start] = '#';
        qg_status status = qg_graph_read(text, strlen(text), &graph);
        ck_assert_int_eq(status, more ? QG_ERROR_DATA : QG_OK);
        qg_graph_free(graph);
    }
    ck_assert_str_eq(qg_detail(), "line 4: the line is longer than 65536 bytes");
    // A name of 255 letters, and of 256.
    for (int more = 0; more < 2; more++) {
        char name[257];
        memset(name, 'n', sizeof name);
        name[255 + more] = 0;
        snprintf(text, sizeof text, "qg_graph 1\n%s = input fp32[4]\noutput %s\n", name, name);
        ck_assert_int_eq(qg_graph_read(text, strlen(text), &graph), more ? QG_ERROR_DATA : QG_OK);
        qg_graph_free(graph);
    }
    ck_assert_str_eq(qg_detail(),
                     "line 2: the name 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
                     "nnnnnnnnnnnnn...' is longer than 255");
}
END_TEST

START_TEST(a_concatenation_of_64_inputs_is_read_and_one_of_65_is_not) {
    for (int count = 64; count <= 65; count++) {
        char text[512];
        qg_graph *graph;
        int at = snprintf(text, sizeof text, "qg_graph 1\nx = input u8[1]\ny = concatenate(x");
        for (int i = 1; i < count; i++)
            at += snprintf(text + at, sizeof text - (size_t)at, ",x");
        snprintf(text + at, sizeof text - (size_t)at, ") u8[%d] axes=0\noutput y\n", count);
        if (count == 64) {
            check_reads_as(text, text);
            continue;
        }
        ck_assert_int_eq(qg_graph_read(text, strlen(text), &graph), QG_ERROR_DATA);
        ck_assert_str_eq(qg_detail(), "line 3: node 'y' (concatenate): more than 64 inputs");
    }
}
END_TEST

START_TEST(a_graph_that_failed_is_not_printed) {
    qg_graph *g;
    char *text = NULL;
    ck_assert_int_eq(qg_graph_create(&g), QG_OK);
    qg_graph_relu(g, 5);
    ck_assert_int_eq(qg_graph_print(g, &text, NULL), QG_ERROR_ARGUMENT);
    ck_assert_ptr_null(text);
    qg_graph_free(g);
}
END_TEST

START_TEST(size_is_without_the_zero) {
    qg_graph *g = reading("qg_graph 1\nx = input fp32[4]\noutput x\n");
    char *text;
    size_t size;
    ck_assert_int_eq(qg_graph_print(g, &text, &size), QG_OK);
    ck_assert_uint_eq(size, strlen(text));
    qg_release(text);
    qg_graph_free(g);
}
END_TEST

START_TEST(mutated_texts_are_refused_or_are_graphs) { fuzz_graphs(1, 30000); }
END_TEST

int main(void) {
    const TTest *const tests[] = {what_is_printed_is_read_as_the_same_text,
                                  the_header_of_the_form_is_an_example,
                                  nodes_order_attributes_outputs_and_digests_are_the_same,
                                  a_graph_that_was_read_computes_the_same,
                                  blanks_comments_and_line_ends_do_not_matter,
                                  outputs_may_stand_between_nodes_and_attributes_in_any_order,
                                  eps_is_exact_and_may_be_decimal,
                                  malformed_nodes_are_refused_by_line_and_name,
                                  malformed_lines_are_refused,
                                  a_zero_byte_is_refused_by_line,
                                  lengths_are_limited,
                                  a_concatenation_of_64_inputs_is_read_and_one_of_65_is_not,
                                  a_graph_that_failed_is_not_printed,
                                  size_is_without_the_zero,
                                  mutated_texts_are_refused_or_are_graphs};
    return RUN_SUITE("graph_text", tests);
}
