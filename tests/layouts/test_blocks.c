// Block geometry: every element in exactly one block, ragged edges, 64-bit indices, names, and the
// size checks of the border.
#include <qg_layout_name.h>
#include <run_suite.h>

#include <stdlib.h>
#include <string.h>

static qg_layout layout_of(const char *text) {
    qg_layout layout;
    ck_assert_msg(qg_layout_parse(text, &layout) == QG_OK, "%s", qg_detail());
    return layout;
}

static const char *const texts[] = {"per_tensor", "per_row",     "group:1",       "group:7",
                                    "group:16",   "group:32",    "group:128",     "block:1x1",
                                    "block:3x5",  "block:16x16", "block:128x128", "block:200x1"};

// Counts, for every element, the blocks whose range holds it.
static void count_covers(const qg_blocks *b, unsigned char *covers) {
    memset(covers, 0, (size_t)(b->m * b->k));
    for (int64_t i = 0; i < b->block_rows; i++)
        for (int64_t j = 0; j < b->block_columns; j++) {
            qg_block_range r = qg_block_at(b, i, j);
            if (r.row_begin >= r.row_end || r.column_begin >= r.column_end)
                ck_abort_msg("empty block");
            for (int64_t row = r.row_begin; row < r.row_end; row++)
                for (int64_t column = r.column_begin; column < r.column_end; column++) {
                    covers[row * b->k + column]++;
                    if (qg_scale_index(b, row, column) != i * b->block_columns + j)
                        ck_abort_msg("scale index of (%lld, %lld)", (long long)row,
                                     (long long)column);
                }
        }
}

START_TEST(blocks_cover_each_element_once) {
    static const int64_t sizes[] = {1, 2, 5, 15, 16, 17, 31, 32, 33, 100, 128, 129, 300};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    static unsigned char covers[300 * 300];
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++)
        for (int m = 0; m < SIZES; m++)
            for (int k = 0; k < SIZES; k++) {
                qg_blocks b;
                ck_assert_int_eq(qg_layout_blocks(layout_of(texts[t]), sizes[m], sizes[k], &b),
                                 QG_OK);
                count_covers(&b, covers);
                for (int64_t i = 0; i < sizes[m] * sizes[k]; i++)
                    if (covers[i] != 1)
                        ck_abort_msg("%s %lldx%lld: element %lld in %d blocks", texts[t],
                                     (long long)sizes[m], (long long)sizes[k], (long long)i,
                                     covers[i]);
            }
}
END_TEST

// K = 192 with blocks of 128 has two blocks; N = 448 four, the last of 64.
START_TEST(the_last_block_is_ragged_not_dropped_and_not_averaged) {
    qg_blocks b = qg_layout_apply(layout_of("group:128"), 1, 192);
    ck_assert_int_eq(b.block_columns, 2);
    qg_block_range r = qg_block_at(&b, 0, 1);
    ck_assert_int_eq(r.column_begin, 128);
    ck_assert_int_eq(r.column_end, 192);
    b = qg_layout_apply(layout_of("block:128x128"), 448, 128);
    ck_assert_int_eq(b.block_rows, 4);
    ck_assert_int_eq(b.rows, 128);
    r = qg_block_at(&b, 3, 0);
    ck_assert_int_eq(r.row_begin, 384);
    ck_assert_int_eq(r.row_end, 448);
}
END_TEST

START_TEST(indices_have_64_bits) {
    int64_t m = (1ll << 31) + 1, k = 3;
    qg_blocks b = qg_layout_apply(layout_of("per_row"), m, k);
    ck_assert_int_eq(b.block_rows, m);
    ck_assert_int_eq(qg_scale_index(&b, m - 1, 2), m - 1);
    b = qg_layout_apply(layout_of("group:1"), m, k);
    ck_assert_int_eq(qg_scale_index(&b, m - 1, 2), m * k - 1);
    qg_block_range r = qg_block_at(&b, m - 1, 2);
    ck_assert_int_eq(r.row_begin, m - 1);
    ck_assert_int_eq(r.column_end, 3);
    b = qg_layout_apply(layout_of("block:128x128"), 1ll << 40, 1ll << 20);
    ck_assert_int_eq(qg_scale_index(&b, (1ll << 40) - 1, (1ll << 20) - 1),
                     (1ll << 33) * (1ll << 13) - 1);
    b = qg_layout_apply(layout_of("per_tensor"), 1ll << 31, 1ll << 31);
    ck_assert_int_eq(b.rows, 1ll << 31);
    ck_assert_int_eq(b.block_rows * b.block_columns, 1);
}
END_TEST

START_TEST(round_up_and_ceil_divide) {
    ck_assert_int_eq(qg_ceil_divide(0, 4), 0);
    ck_assert_int_eq(qg_ceil_divide(1, 4), 1);
    ck_assert_int_eq(qg_ceil_divide(4, 4), 1);
    ck_assert_int_eq(qg_ceil_divide(INT64_MAX, 2), INT64_MAX / 2 + 1);
    ck_assert_int_eq(qg_ceil_divide(INT64_MAX, INT64_MAX), 1);
    ck_assert_int_eq(qg_round_up(5, 4), 8);
    ck_assert_int_eq(qg_round_up(8, 4), 8);
}
END_TEST

START_TEST(names_are_read_and_printed) {
    char name[QG_LAYOUT_NAME_SIZE];
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        qg_layout_name(layout_of(texts[t]), name);
        ck_assert_str_eq(name, texts[t]);
    }
    for (size_t i = 0; qg_layout_listed(i); i++) {
        qg_layout_name(layout_of(qg_layout_listed(i)), name);
        ck_assert_str_eq(name, qg_layout_listed(i));
    }
    ck_assert_int_eq(layout_of("Block:1048576X3").rows, 1 << 20);
    qg_layout_name((qg_layout){9, 1, 1}, name);
    ck_assert_str_eq(name, "unknown");
}
END_TEST

START_TEST(malformed_names_are_errors) {
    static const char *const bad[] = {"",           "group",         "group:",
                                      "group:0",    "group:-1",      "group:1.5",
                                      "group:32x",  "group:1048577", "block:128",
                                      "block:128x", "block:x128",    "block:0x4",
                                      "block:4x0",  "per_tensor ",   "per_column",
                                      "group: 32",  "group:032",     "group:99999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        qg_layout layout = {77, 77, 77};
        ck_assert_msg(qg_layout_parse(bad[i], &layout) == QG_ERROR_ARGUMENT, "'%s'", bad[i]);
        ck_assert_int_eq(layout.kind, 77);
        ck_assert_ptr_nonnull(strstr(qg_detail(), bad[i]));
    }
    qg_layout layout;
    qg_layout_parse("per_rwo", &layout);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "nearest is per_row"));
}
END_TEST

START_TEST(sizes_are_checked) {
    qg_blocks b;
    qg_layout tensor = layout_of("per_tensor"), fine = layout_of("group:1");
    ck_assert_int_eq(qg_layout_blocks(tensor, 0, 5, &b), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_layout_blocks(tensor, 5, 0, &b), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_layout_blocks(tensor, -1, 5, &b), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_layout_blocks(tensor, 1ll << 32, 1ll << 31, &b), QG_ERROR_OVERFLOW);
    ck_assert_int_eq(qg_layout_blocks(tensor, 1ll << 32, (1ll << 31) - 1, &b), QG_OK);
    ck_assert_int_eq(qg_layout_blocks(tensor, INT64_MAX, 1, &b), QG_OK);
    // One scale per element: the scale buffers do not fit although the elements do.
    ck_assert_int_eq(qg_layout_blocks(fine, INT64_MAX, 1, &b), QG_ERROR_OVERFLOW);
    ck_assert_int_eq(qg_layout_blocks(fine, 1ll << 58, 1, &b), QG_ERROR_OVERFLOW);
    ck_assert_int_eq(qg_layout_blocks(fine, 1ll << 57, 1, &b), QG_OK);
    ck_assert_int_eq(qg_layout_blocks((qg_layout){QG_LAYOUT_GROUP, 0, 0}, 1, 1, &b),
                     QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_layout_blocks((qg_layout){QG_LAYOUT_BLOCK, 0, 4}, 1, 1, &b),
                     QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_layout_blocks((qg_layout){7, 1, 4}, 1, 1, &b), QG_ERROR_ARGUMENT);
}
END_TEST

int main(void) {
    const TTest *tests[] = {blocks_cover_each_element_once,
                            the_last_block_is_ragged_not_dropped_and_not_averaged,
                            indices_have_64_bits,
                            round_up_and_ceil_divide,
                            names_are_read_and_printed,
                            malformed_names_are_errors,
                            sizes_are_checked};
    return RUN_SUITE("blocks", tests);
}
