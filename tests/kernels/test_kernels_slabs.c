// The kernels of 1xG groups far beyond what fits in memory: rows beyond 65535,
// 2^18 and 2^31 - 1, where a second launch begins; elements and bytes beyond
// 2^32. Tensors are sparse mappings, a few CTAs run, and the bytes of their
// rows are the emulator's; the rows beside them stay untouched.
#include <block_data.h>
#include <qg_cuda_module.h>
#include <qg_emulator.h>
#include <qg_pack.h>
#include <qg_partition.h>
#include <qg_recipe_name.h>
#include <require.h>
#include <run_suite.h>
#include <shim_control.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { K = 128, ROWS = 9, SCRATCH = 1 << 13 };

#define SLAB QG_GRID_X_MOST

const qg_cuda_module *quantgauge_cuda_module(void); // of the shim library

static const qg_cuda_module *module;

static void open_module(void) {
    static qg_cuda_device device;
    qg_cuda_error error;
    qg_shim_reset();
    setenv("QG_CUBLASLT", "none", 1); // not needed, and it keeps memory
    module = quantgauge_cuda_module();
    REQUIRE(module->open(&device, &error) == QG_CUDA_ABSENT_NONE, "%s", error.text);
}

static void *map(int64_t bytes) {
    void *place = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(place != MAP_FAILED, "no mapping of %lld bytes", (long long)bytes);
    return place;
}

typedef struct slab_case {
    const char *recipe;
    int kernel;
    qg_format type;
    int32_t group; // 0: the recipe's
    int64_t m, k;
    qg_cuda_quantize call;
    int64_t row_bytes, x_bytes, groups, scale_bytes;
} slab_case;

static void set_up(slab_case *c) {
    static _Alignas(16) uint8_t scratch[SCRATCH];
    qg_cuda_quantize *q = &c->call;
    memset(q, 0, sizeof *q);
    ck_assert_int_eq(qg_recipe_find(c->recipe, &q->recipe), QG_OK);
    if (c->group)
        ck_assert_int_eq(
            qg_recipe_set_layout(&q->recipe, (qg_layout){QG_LAYOUT_GROUP, 0, c->group}), QG_OK);
    q->input_type = c->type;
    q->kernel = c->kernel;
    q->packed = 1;
    q->m = c->m;
    q->k = c->k;
    int bits = qg_format_describe(q->recipe.element).bits;
    c->row_bytes = qg_packed_bytes(bits, c->k);
    c->x_bytes = c->k * (c->type == QG_FORMAT_FP32 ? 4 : 2);
    c->groups = qg_ceil_divide(c->k, q->recipe.layout.columns);
    c->scale_bytes = qg_rule_scale_format(q->recipe.rule) == QG_FORMAT_FP32 ? 4 : 1;
    q->scratch = scratch;
    ck_assert_int_le(module->quantize_scratch(q), SCRATCH);
    q->x = map(c->m * c->x_bytes);
    q->codes = map(c->m * c->row_bytes);
    q->scales = map(c->m * c->groups * c->scale_bytes);
}

static void tear_down(slab_case *c) {
    munmap((void *)(uintptr_t)c->call.x, (size_t)(c->m * c->x_bytes));
    munmap(c->call.codes, (size_t)(c->m * c->row_bytes));
    munmap(c->call.scales, (size_t)(c->m * c->groups * c->scale_bytes));
}

// bf16: the upper halves. The lower ones are zero, so that the emulator sees
// the same.
static void fill_row(const slab_case *c, int64_t row, uint64_t seed, float *x) {
    uint8_t *place = (uint8_t *)(uintptr_t)c->call.x + row * c->x_bytes;
    block_data_fill(seed, BLOCK_DATA_ORDINARY, x, c->k);
    for (int64_t i = 0; i < c->k; i++) {
        uint32_t bits = qg_bits_of_float(x[i]) & 0xffff0000u;
        uint16_t high = (uint16_t)(bits >> 16);
        x[i] = qg_float_of_bits(bits);
        if (c->type == QG_FORMAT_FP32)
            memcpy(place + 4 * i, &bits, 4);
        else
            memcpy(place + 2 * i, &high, 2);
    }
}

static void check_row(const slab_case *c, int64_t row, const float *x) {
    static uint8_t codes[K], packed[K], scales[4 * K];
    qg_quantize_options options = {.input_type = c->type, .threads = 1};
    int bits = qg_format_describe(c->call.recipe.element).bits;
    ck_assert_int_eq(
        qg_emulator_quantize(&c->call.recipe, &options, 1, K, x, codes, scales, NULL, NULL), QG_OK);
    if (bits == 4)
        qg_pack4(codes, K, packed);
    else
        memcpy(packed, codes, K);
    REQUIRE(!memcmp(packed, c->call.codes + row * c->row_bytes, (size_t)c->row_bytes),
            "%s, kernel %d, m %lld: codes of row %lld", c->recipe, c->kernel, (long long)c->m,
            (long long)row);
    int64_t bytes = c->groups * c->scale_bytes;
    REQUIRE(!memcmp(scales, c->call.scales + row * bytes, (size_t)bytes),
            "%s, kernel %d, m %lld: scales of row %lld", c->recipe, c->kernel, (long long)c->m,
            (long long)row);
}

static void check_untouched(const slab_case *c, int64_t row) {
    int64_t bytes = c->groups * c->scale_bytes;
    for (int64_t i = 0; i < c->row_bytes; i++)
        REQUIRE(!c->call.codes[row * c->row_bytes + i], "row %lld was written", (long long)row);
    for (int64_t i = 0; i < bytes; i++)
        REQUIRE(!c->call.scales[row * bytes + i], "row %lld was written", (long long)row);
}

static bool is_among(int64_t row, const int64_t *rows, int count) {
    for (int i = 0; i < count; i++)
        if (rows[i] == row)
            return true;
    return false;
}

// CTAs of these X run, in every slab that has them: all rows that these stand
// for are filled.
static void check_rows(slab_case *c, const int64_t *xs, int count) {
    static float x[2 * ROWS][K];
    int64_t rows[2 * ROWS];
    struct qg_shim_cta ctas[2 * ROWS];
    int found = 0, chosen = 0;
    set_up(c);
    qg_partition p = qg_partition_of(c->kernel, K, c->call.recipe.layout.columns,
                                     c->type == QG_FORMAT_FP32 ? 4 : 2);
    for (int64_t slab = 0; slab < qg_partition_slabs(c->m); slab++)
        for (int i = 0; i < count; i++)
            if (xs[i] < qg_partition_grid_x(c->m, slab))
                rows[found++] = qg_partition_row(slab, xs[i]);
    for (int i = 0; i < found; i++)
        fill_row(c, rows[i], (uint64_t)rows[i], x[i]);
    for (int i = 0; i < count; i++)
        for (int64_t y = 0; y < qg_partition_grid_y(&p) && chosen < 2 * ROWS; y++)
            ctas[chosen++] = (struct qg_shim_cta){(uint32_t)xs[i], (uint32_t)y, 0};
    qg_shim_choose_list(ctas, (size_t)chosen);
    qg_cuda_error error;
    REQUIRE(module->quantize(&c->call, &error) == QG_OK, "%s", error.text);
    for (int i = 0; i < found; i++) {
        check_row(c, rows[i], x[i]);
        for (int64_t row = rows[i] - 1; row <= rows[i] + 1; row += 2)
            if (row >= 0 && row < c->m && !is_among(row, rows, found))
                check_untouched(c, row);
    }
    tear_down(c);
    qg_shim_choose_all();
}

static void check_m(int64_t m) {
    static const char *const recipes[] = {"metrale_act128", "mxfp4"};
    const int64_t last = m <= SLAB ? m - 1 : SLAB - 1;
    const int64_t xs[] = {0, last, last / 2};
    for (size_t r = 0; r < 2; r++)
        for (int kernel = 0; kernel < QG_GROUP_KERNEL_COUNT; kernel++) {
            slab_case c = {.recipe = recipes[r], .kernel = kernel, .type = QG_FORMAT_BF16};
            c.m = m;
            c.k = K;
            check_rows(&c, xs, 3);
        }
    // Lanes of the twin that have several vectors of a group.
    slab_case c = {.recipe = "metrale_act128",
                   .kernel = QG_GROUP_KERNEL_HOPPER,
                   .type = QG_FORMAT_FP32,
                   .group = 512,
                   .m = m,
                   .k = K};
    check_rows(&c, xs, 3);
}

START_TEST(rows_beyond_65535) { check_m(65537); }
END_TEST

START_TEST(rows_of_a_known_defect) { check_m(262141); }
END_TEST

START_TEST(rows_up_to_the_grid) { check_m(SLAB); }
END_TEST

START_TEST(rows_of_a_second_slab) {
    check_m(SLAB + 1);
    check_m(SLAB + 2);
}
END_TEST

// One row of more groups than a grid has CTAs along Y, and more than 2^32
// elements: CTAs of the first, a middle and the last span.
static void check_wide_row(const char *recipe, int kernel, int64_t k) {
    slab_case c = {.recipe = recipe, .kernel = kernel, .type = QG_FORMAT_BF16, .m = 1, .k = k};
    set_up(&c);
    int64_t group = c.call.recipe.layout.columns;
    qg_partition p = qg_partition_of(kernel, k, group, 2);
    int64_t y_count = qg_partition_grid_y(&p);
    ck_assert_int_eq(y_count, QG_GRID_Y_MOST);
    ck_assert_int_gt(p.groups, y_count * p.held);
    const int64_t ys[] = {0, y_count / 2, y_count - 2, y_count - 1};
    struct qg_shim_cta ctas[4];
    static float x[1 << 18];
    for (int i = 0; i < 4; i++) {
        qg_span span = qg_partition_span(&p, y_count, ys[i]);
        int64_t begin = span.begin * group;
        int64_t end = span.end * group < k ? span.end * group : k;
        uint16_t *out = (uint16_t *)(uintptr_t)c.call.x + begin;
        ctas[i] = (struct qg_shim_cta){0, (uint32_t)ys[i], 0};
        if (span.begin >= span.end)
            continue;
        ck_assert_int_le(end - begin, 1 << 18);
        block_data_fill((uint64_t)i, BLOCK_DATA_ORDINARY, x, end - begin);
        for (int64_t j = 0; j < end - begin; j++)
            out[j] = (uint16_t)(qg_bits_of_float(x[j]) >> 16);
    }
    qg_shim_choose_list(ctas, 4);
    qg_cuda_error error;
    REQUIRE(module->quantize(&c.call, &error) == QG_OK, "%s", error.text);
    qg_shim_choose_all();
    for (int i = 0; i < 4; i++) {
        static uint8_t codes[1 << 18], packed[1 << 18], scales[1 << 18];
        qg_span span = qg_partition_span(&p, y_count, ys[i]);
        int64_t begin = span.begin * group;
        int64_t end = span.end * group < k ? span.end * group : k;
        qg_quantize_options options = {.input_type = QG_FORMAT_BF16, .threads = 1};
        if (span.begin >= span.end)
            continue;
        for (int64_t j = 0; j < end - begin; j++)
            x[j] = qg_float_of_bits((uint32_t)((const uint16_t *)(uintptr_t)c.call.x)[begin + j]
                                    << 16);
        ck_assert_int_eq(qg_emulator_quantize(&c.call.recipe, &options, 1, end - begin, x, codes,
                                              scales, NULL, NULL),
                         QG_OK);
        int bits = qg_format_describe(c.call.recipe.element).bits;
        if (bits == 4)
            qg_pack4(codes, end - begin, packed);
        const uint8_t *stored = bits == 4 ? packed : codes;
        ck_assert_int_eq(memcmp(stored, c.call.codes + begin * bits / 8,
                                (size_t)qg_packed_bytes(bits, end - begin)),
                         0);
        ck_assert_int_eq(memcmp(scales, c.call.scales + span.begin * c.scale_bytes,
                                (size_t)((span.end - span.begin) * c.scale_bytes)),
                         0);
    }
    tear_down(&c);
}

START_TEST(more_groups_than_a_grid_is_high) {
    for (int kernel = 0; kernel < QG_GROUP_KERNEL_COUNT; kernel++) {
        check_wide_row("metrale_act128", kernel, (int64_t)128 * 65536 * 9 + 77);
        check_wide_row("mxfp4", kernel, (int64_t)32 * 65536 * 33 + 5);
        check_wide_row("mxfp8", kernel, ((int64_t)1 << 32) + 300);
    }
}
END_TEST

int main(void) {
    open_module();
    const TTest *tests[] = {rows_beyond_65535, rows_of_a_known_defect, rows_up_to_the_grid,
                            rows_of_a_second_slab, more_groups_than_a_grid_is_high};
    return RUN_SUITE("kernels_slabs", tests);
}
