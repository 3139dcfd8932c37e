// Storage orders of scales: against the formulas of the libraries that read them, exact inverses,
// every byte written, nothing written outside.
#include <qg_layout_name.h>
#include <run_suite.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 300, MOST_COLUMNS = 9, GUARD = 64, POISON = 0xFF };

// The pseudo-code of the cuBLAS documentation ("1D block scaling factors layout"): sf_outer counts
// tiles of 128 rows, sf_inner padded scale columns.
static int64_t cublas_offset(int64_t columns, int64_t outer, int64_t inner) {
    int64_t sf_inner_dim = (columns + 3) / 4 * 4;
    int64_t tile_row = outer / 128, tile_column = inner / 4;
    int64_t tile = (tile_column * 4 + tile_row * sf_inner_dim) * 128;
    int64_t o = outer % 128, i = inner % 4;
    return tile + (o % 32) * 16 + (o / 32) * 4 + i;
}

// torchao's to_blocked: pad to (R, 128, C, 4), permute to (R, C, 128, 4), split 128 into (4, 32),
// swap those two, flatten.
static int64_t to_blocked_offset(int64_t columns, int64_t row, int64_t column) {
    int64_t tile = row / 128 * ((columns + 3) / 4) + column / 4;
    int64_t four = row % 128 / 32, thirty_two = row % 32;
    return ((tile * 32 + thirty_two) * 4 + four) * 4 + column % 4;
}

START_TEST(tile128x4_is_what_cublas_and_torchao_say) {
    qg_scale_order order = {QG_ORDER_TILE128X4, 0};
    for (int64_t rows = 1; rows <= MOST_ROWS; rows++)
        for (int64_t columns = 1; columns <= MOST_COLUMNS; columns++) {
            int64_t tiles = (rows + 127) / 128 * ((columns + 3) / 4);
            if (qg_scale_order_size(order, rows, columns) != tiles * 512)
                ck_abort_msg("size of %lldx%lld", (long long)rows, (long long)columns);
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < columns; j++) {
                    int64_t offset = qg_scale_order_offset(order, rows, columns, i, j);
                    if (offset != cublas_offset(columns, i, j) ||
                        offset != to_blocked_offset(columns, i, j))
                        ck_abort_msg("%lldx%lld: (%lld, %lld) at %lld", (long long)rows,
                                     (long long)columns, (long long)i, (long long)j,
                                     (long long)offset);
                }
        }
}
END_TEST

static const char *const texts[] = {"row_major", "k_major",   "k_major:1", "k_major:4",
                                    "k_major:7", "tile128x4", "tile8x4",   "block128_padded"};

static qg_scale_order order_of(const char *text) {
    qg_scale_order order;
    ck_assert_msg(qg_scale_order_parse(text, &order) == QG_OK, "%s", qg_detail());
    return order;
}

// Offsets, written out once more.
static int64_t wanted_offset(const char *text, int64_t rows, int64_t columns, int64_t i,
                             int64_t j) {
    int64_t padded = 0;
    if (strcmp(text, "row_major") == 0)
        return i * columns + j;
    if (strcmp(text, "tile128x4") == 0)
        return cublas_offset(columns, i, j);
    if (strcmp(text, "tile8x4") == 0)
        return (i / 8 * ((columns + 3) / 4) + j / 4) * 32 + 4 * (i % 8) + j % 4;
    if (strcmp(text, "block128_padded") == 0)
        return i * ((columns + 3) / 4 * 4) + j;
    int64_t p = strchr(text, ':') ? atoi(strchr(text, ':') + 1) : 16;
    while (padded < rows)
        padded += p;
    return j * padded + i;
}

static int64_t wanted_size(const char *text, int64_t rows, int64_t columns) {
    if (strcmp(text, "tile128x4") == 0)
        return (rows + 127) / 128 * 128 * ((columns + 3) / 4 * 4);
    if (strcmp(text, "tile8x4") == 0)
        return (rows + 7) / 8 * 8 * ((columns + 3) / 4 * 4);
    if (strcmp(text, "block128_padded") == 0)
        return rows * ((columns + 3) / 4 * 4);
    if (strcmp(text, "row_major") == 0)
        return rows * columns;
    return wanted_offset(text, rows, columns, 0, 1) * columns;
}

START_TEST(offsets_sizes_and_inverses) {
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        qg_scale_order order = order_of(texts[t]);
        for (int64_t rows = 1; rows <= MOST_ROWS; rows += rows < 40 ? 1 : 13)
            for (int64_t columns = 1; columns <= MOST_COLUMNS; columns++) {
                int64_t size = qg_scale_order_size(order, rows, columns), real = 0, bytes;
                if (size != wanted_size(texts[t], rows, columns))
                    ck_abort_msg("%s: size of %lldx%lld is %lld", texts[t], (long long)rows,
                                 (long long)columns, (long long)size);
                if (qg_scale_order_bytes(order, rows, columns, 4, &bytes) != QG_OK ||
                    bytes != 4 * size)
                    ck_abort_msg("%s: bytes", texts[t]);
                for (int64_t i = 0; i < rows; i++)
                    for (int64_t j = 0; j < columns; j++)
                        if (qg_scale_order_offset(order, rows, columns, i, j) !=
                            wanted_offset(texts[t], rows, columns, i, j))
                            ck_abort_msg("%s: offset of (%lld, %lld)", texts[t], (long long)i,
                                         (long long)j);
                for (int64_t offset = 0; offset < size; offset++) {
                    qg_scale_place p = qg_scale_order_place(order, rows, columns, offset);
                    real += p.i < rows && p.j < columns;
                    if (qg_scale_order_offset(order, rows, columns, p.i, p.j) != offset)
                        ck_abort_msg("%s: place of %lld", texts[t], (long long)offset);
                }
                if (real != rows * columns)
                    ck_abort_msg("%s: %lld real places", texts[t], (long long)real);
            }
    }
}
END_TEST

static void check_store(const char *text, int64_t rows, int64_t columns, int bytes) {
    static uint8_t logical[MOST_ROWS * MOST_COLUMNS * 4], back[MOST_ROWS * MOST_COLUMNS * 4];
    static uint8_t buffer[GUARD + 384 * 16 * 4 + GUARD];
    qg_scale_order order = order_of(text);
    int64_t size = qg_scale_order_size(order, rows, columns) * bytes;
    for (int64_t i = 0; i < rows * columns * bytes; i++)
        logical[i] = (uint8_t)(1 + i % 251); // never 0, never the poison
    memset(buffer, POISON, sizeof buffer);
    qg_scale_order_store(order, rows, columns, bytes, logical, buffer + GUARD);
    int64_t zeros = 0;
    for (int64_t i = 0; i < size; i++) {
        if (buffer[GUARD + i] == POISON)
            ck_abort_msg("%s %lldx%lld: byte %lld not written", text, (long long)rows,
                         (long long)columns, (long long)i);
        zeros += buffer[GUARD + i] == 0;
    }
    if (zeros != size - rows * columns * bytes)
        ck_abort_msg("%s: %lld bytes of padding", text, (long long)zeros);
    for (int64_t i = 0; i < GUARD; i++)
        if (buffer[i] != POISON || buffer[GUARD + size + i] != POISON)
            ck_abort_msg("%s %lldx%lld: wrote outside", text, (long long)rows, (long long)columns);
    // Padding must not be read back.
    for (int64_t i = 0; i < size; i++)
        if (buffer[GUARD + i] == 0)
            buffer[GUARD + i] = POISON;
    qg_scale_order_load(order, rows, columns, bytes, buffer + GUARD, back);
    if (memcmp(back, logical, (size_t)(rows * columns * bytes)) != 0)
        ck_abort_msg("%s %lldx%lld: load is not the inverse of store", text, (long long)rows,
                     (long long)columns);
}

START_TEST(every_byte_is_written_and_read_back) {
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++)
        for (int64_t rows = 1; rows <= MOST_ROWS; rows += rows < 20 ? 1 : 31)
            for (int64_t columns = 1; columns <= MOST_COLUMNS; columns++)
                for (int bytes = 1; bytes <= 4; bytes *= 4)
                    check_store(texts[t], rows, columns, bytes);
}
END_TEST

START_TEST(offsets_have_64_bits) {
    int64_t rows = (1ll << 31) + 1, columns = 5;
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        qg_scale_order order = order_of(texts[t]);
        int64_t offset = qg_scale_order_offset(order, rows, columns, rows - 1, 4);
        ck_assert_int_eq(offset, strncmp(texts[t], "k_major", 7) == 0
                                     ? 4 * qg_round_up(rows, order.padding) + rows - 1
                                     : wanted_offset(texts[t], rows, columns, rows - 1, 4));
        ck_assert_int_gt(offset, 1ll << 32);
        qg_scale_place p = qg_scale_order_place(order, rows, columns, offset);
        ck_assert_int_eq(p.i, rows - 1);
        ck_assert_int_eq(p.j, 4);
        ck_assert_int_gt(qg_scale_order_size(order, rows, columns), offset);
    }
}
END_TEST

START_TEST(names_and_sizes_are_checked) {
    char name[QG_LAYOUT_NAME_SIZE];
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        qg_scale_order_name(order_of(texts[t]), name);
        ck_assert_str_eq(name, texts[t]);
    }
    qg_scale_order_name(order_of("k_major:16"), name);
    ck_assert_str_eq(name, "k_major");
    for (size_t i = 0; qg_scale_order_listed(i); i++) {
        qg_scale_order_name(order_of(qg_scale_order_listed(i)), name);
        ck_assert_str_eq(name, qg_scale_order_listed(i));
    }
    qg_scale_order_name((qg_scale_order){9, 0}, name);
    ck_assert_str_eq(name, "unknown");
    static const char *const bad[] = {"",           "k_major:",   "k_major:0", "k_major:1048577",
                                      "k_major:4x", "tile128x4 ", "tile4x128"};
    qg_scale_order order;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(qg_scale_order_parse(bad[i], &order) == QG_ERROR_ARGUMENT, "'%s'", bad[i]);
    int64_t size;
    ck_assert_int_eq(qg_scale_order_bytes(order_of("k_major:1048576"), 1, 1ll << 43, 1, &size),
                     QG_ERROR_OVERFLOW);
    ck_assert_int_eq(qg_scale_order_bytes(order_of("k_major:1048576"), 1, 1ll << 42, 1, &size),
                     QG_OK);
    ck_assert_int_eq(size, 1ll << 62);
    ck_assert_int_eq(qg_scale_order_bytes(order_of("tile128x4"), INT64_MAX - 5, 1, 1, &size),
                     QG_ERROR_OVERFLOW);
    ck_assert_int_eq(qg_scale_order_bytes(order_of("row_major"), 0, 1, 1, &size),
                     QG_ERROR_ARGUMENT);
}
END_TEST

int main(void) {
    const TTest *tests[] = {tile128x4_is_what_cublas_and_torchao_say, offsets_sizes_and_inverses,
                            every_byte_is_written_and_read_back, offsets_have_64_bits,
                            names_and_sizes_are_checked};
    return RUN_SUITE("scale_order", tests);
}
