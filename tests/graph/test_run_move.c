// Ops that move values, byte for byte, against the place of each element worked out on its own.
#include "run_graph.h"

#include <run_suite.h>

enum { MOST = 1 << 16 };
static const qg_dtype dtypes[] = {QG_DTYPE_U8, QG_DTYPE_FP16, QG_DTYPE_FP32, QG_DTYPE_I64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

// Random bytes: NaN of all kinds among the floats.
static const void *random_bytes(void) {
    static uint64_t words[MOST];
    uint64_t seed = 7;
    for (int i = 0; i < MOST && words[MOST - 1] == 0; i++)
        words[i] = next_word(&seed) | 1;
    return words;
}

static void require_element(const operand *in, int64_t from, const void *out, int64_t at,
                            const char *what) {
    size_t size = (size_t)qg_dtype_bytes((qg_dtype)in->type.dtype);
    REQUIRE(memcmp((const char *)in->values + (size_t)from * size,
                   (const char *)out + (size_t)at * size, size) == 0,
            "%s: element %" PRId64 " is not element %" PRId64, what, at, from);
}

// --------------------------------------------------------------------------------------- transpose

static void check_transpose(const operand *in, const int32_t *axes, int threads) {
    qg_attributes a = {.axis_count = in->type.rank};
    qg_tensor_type type;
    memcpy(a.axes, axes, (size_t)in->type.rank * sizeof *axes);
    void *out = run_op(QG_GRAPH_TRANSPOSE, &a, 1, in, threads, &type);
    for (int64_t i = 0; i < qg_tensor_elements(&type); i++) {
        int64_t place[QG_RANK_MOST], from[QG_RANK_MOST];
        unravel(&type, i, place);
        for (int32_t j = 0; j < type.rank; j++)
            from[axes[j]] = place[j];
        require_element(in, ravel(&in->type, from), out, i, "transpose");
    }
    free(out);
}

// All permutations of `rank` axes, by Heap's algorithm.
static void permute(const operand *in, int32_t *axes, int32_t count) {
    if (count <= 1) {
        check_transpose(in, axes, 1);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        permute(in, axes, count - 1);
        int32_t other = count % 2 ? 0 : i, swapped = axes[other];
        axes[other] = axes[count - 1];
        axes[count - 1] = swapped;
    }
}

START_TEST(transpose_puts_every_axis_where_it_is_told) {
    static const int64_t shapes[][5] = {
        {3, 5, 2, 4, 3},
        {1, 4, 1, 3, 2},
        {1, 1, 1, 1, 1}
    };
    for (int s = 0; s < 3; s++)
        for (int d = 0; d < DTYPES; d++)
            for (int32_t rank = 0; rank <= 5; rank++) {
                int32_t axes[5] = {0, 1, 2, 3, 4};
                operand in = {tensor_of(dtypes[d], rank, shapes[s]), random_bytes()};
                permute(&in, axes, rank);
            }
}
END_TEST

START_TEST(transpose_of_more_than_a_tile_has_no_seams) {
    static const int32_t swap[] = {1, 0}, last[] = {0, 2, 1}, first[] = {2, 0, 1},
                         all[] = {2, 1, 0};
    for (int d = 0; d < DTYPES; d++)
        for (int threads = 1; threads <= 3; threads++) {
            operand matrix = {qg_tensor(dtypes[d], 2, 131, 70), random_bytes()};
            operand cube = {qg_tensor(dtypes[d], 3, 5, 33, 65), random_bytes()};
            check_transpose(&matrix, swap, threads);
            check_transpose(&cube, last, threads);
            check_transpose(&cube, first, threads);
            check_transpose(&cube, all, threads);
        }
}
END_TEST

START_TEST(transpose_takes_eight_axes) {
    static const int32_t axes[] = {7, 0, 6, 1, 5, 2, 4, 3};
    static const int64_t shape[] = {2, 1, 3, 2, 2, 3, 2, 2};
    operand in = {tensor_of(QG_DTYPE_FP32, 8, shape), random_bytes()};
    check_transpose(&in, axes, 2);
}
END_TEST

// ---------------------------------------------------------------------------------- other movement

START_TEST(reshape_keeps_the_order) {
    operand in = {qg_tensor(QG_DTYPE_FP16, 3, 4, 5, 6), random_bytes()};
    qg_attributes a = {
        .type = {.rank = 2, .shape = {8, 15}}
    };
    qg_tensor_type type;
    void *out = run_op(QG_GRAPH_RESHAPE, &a, 1, &in, 1, &type);
    ck_assert_int_eq(type.rank, 2);
    for (int64_t i = 0; i < 120; i++)
        require_element(&in, i, out, i, "reshape");
    free(out);
}
END_TEST

static void check_slice(const operand *in, const int64_t *begin, const int64_t *end) {
    qg_attributes a = {0};
    qg_tensor_type type;
    memcpy(a.begin, begin, (size_t)in->type.rank * sizeof *begin);
    memcpy(a.end, end, (size_t)in->type.rank * sizeof *end);
    void *out = run_op(QG_GRAPH_SLICE, &a, 1, in, 2, &type);
    for (int64_t i = 0; i < qg_tensor_elements(&type); i++) {
        int64_t place[QG_RANK_MOST];
        unravel(&type, i, place);
        for (int32_t j = 0; j < type.rank; j++)
            place[j] += begin[j];
        require_element(in, ravel(&in->type, place), out, i, "slice");
    }
    free(out);
}

START_TEST(slice_takes_every_range_of_every_axis) {
    for (int d = 0; d < DTYPES; d++) {
        operand in = {qg_tensor(dtypes[d], 3, 3, 2, 4), random_bytes()};
        int64_t b[3], e[3];
        for (b[0] = 0; b[0] < 3; b[0]++)
            for (e[0] = b[0] + 1; e[0] <= 3; e[0]++)
                for (b[1] = 0; b[1] < 2; b[1]++)
                    for (e[1] = b[1] + 1; e[1] <= 2; e[1]++)
                        for (b[2] = 0; b[2] < 4; b[2]++)
                            for (e[2] = b[2] + 1; e[2] <= 4; e[2]++)
                                check_slice(&in, b, e);
    }
}
END_TEST

// Parts of different extents along `axis`.
static void check_concatenate(qg_dtype dtype, int32_t count, int32_t axis) {
    operand in[64];
    qg_attributes a = {.axis_count = 1, .axes = {axis}};
    qg_tensor_type type;
    for (int32_t i = 0; i < count; i++) {
        in[i] = (operand){qg_tensor(dtype, 3, 2, 3, 4), (const char *)random_bytes() + 64 * i};
        in[i].type.shape[axis] = 1 + i % 3;
    }
    void *out = run_op(QG_GRAPH_CONCATENATE, &a, count, in, 2, &type);
    for (int64_t i = 0; i < qg_tensor_elements(&type); i++) {
        int64_t place[QG_RANK_MOST], part = 0;
        unravel(&type, i, place);
        for (; place[axis] >= in[part].type.shape[axis]; part++)
            place[axis] -= in[part].type.shape[axis];
        require_element(&in[part], ravel(&in[part].type, place), out, i, "concatenate");
    }
    free(out);
}

START_TEST(concatenate_joins_parts_along_every_axis) {
    static const int32_t counts[] = {1, 2, 5, 64};
    for (int d = 0; d < DTYPES; d++)
        for (int c = 0; c < 4; c++)
            for (int32_t axis = 0; axis < 3; axis++)
                check_concatenate(dtypes[d], counts[c], axis);
}
END_TEST

// ------------------------------------------------------------------------------------------ gather

START_TEST(gather_takes_rows_in_the_shape_of_the_indices) {
    static const int64_t indices[] = {4, 0, 2, 2, 4, 1};
    for (int d = 0; d < DTYPES; d++)
        for (int32_t rank = 1; rank <= 3; rank++)
            for (int32_t index_rank = 0; index_rank <= 2; index_rank++) {
                static const int64_t shape[] = {5, 3, 2}, index_shape[] = {2, 3};
                operand in[] = {
                    {tensor_of(dtypes[d],    rank,       shape),       random_bytes()},
                    {tensor_of(QG_DTYPE_I64, index_rank, index_shape), indices       }
                };
                qg_tensor_type type;
                void *out = run_op(QG_GRAPH_GATHER, NULL, 2, in, 2, &type);
                int64_t row = qg_tensor_elements(&in[0].type) / 5;
                ck_assert_int_eq(type.rank, rank - 1 + index_rank);
                for (int64_t i = 0; i < qg_tensor_elements(&type); i++)
                    require_element(&in[0], indices[i / row] * row + i % row, out, i, "gather");
                free(out);
            }
}
END_TEST

static void check_index(int64_t index, const char *expected) {
    qg_graph *graph = new_graph();
    const int64_t indices[] = {0, index, 1};
    qg_node table = qg_graph_input(graph, "table", qg_tensor(QG_DTYPE_FP32, 2, 3, 2));
    qg_node at = qg_graph_input(graph, "at", qg_tensor(QG_DTYPE_I64, 1, 3));
    qg_graph_output(graph, qg_graph_name(graph, qg_graph_gather(graph, table, at), "words"));
    qg_graph_runner *runner = new_runner(graph, NULL);
    qg_graph_feed feeds[] = {
        {"table", random_bytes()},
        {"at",    indices       }
    };
    ck_assert_int_eq(qg_graph_runner_run(runner, 2, feeds), QG_ERROR_ARGUMENT);
    ck_assert_str_eq(qg_detail(), expected);
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}

START_TEST(gather_refuses_an_index_out_of_range_and_names_the_node) {
    check_index(3, "node 'words' (gather): index 3 at place 1 is not one of 3 rows");
    check_index(-1, "node 'words' (gather): index -1 at place 1 is not one of 3 rows");
    check_index(
        INT64_MIN,
        "node 'words' (gather): index -9223372036854775808 at place 1 is not one of 3 rows");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {transpose_puts_every_axis_where_it_is_told,
                                  transpose_of_more_than_a_tile_has_no_seams,
                                  transpose_takes_eight_axes,
                                  reshape_keeps_the_order,
                                  slice_takes_every_range_of_every_axis,
                                  concatenate_joins_parts_along_every_axis,
                                  gather_takes_rows_in_the_shape_of_the_indices,
                                  gather_refuses_an_index_out_of_range_and_names_the_node};
    return RUN_SUITE("run_move", tests);
}
