// Stage `timing`: seconds per launch of the quantizers, hot and cold, beside a copy that reads and
// writes as many bytes; the twin against the shared kernel over a grid around their crossover; the
// products.
//
// Hot: every launch works on the same buffers. Cold: on as many sets of buffers in turn as exceed
// three times L2, so that none is found there; points too small for that have no cold row. All data
// are the law `normal` of seed 1, whose elements do not depend on the shape.
#include <device_recipes.h>
#include <device_stage.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 11, LEAST_LAUNCHES = 20, MOST_LAUNCHES = 4096, L2_TIMES = 3, LINE = 256 };

// The sets of buffers of a point lie one after the other in one piece of memory.
typedef struct arena {
    uint8_t *base;
    int64_t bytes;
} arena;

typedef struct statistics {
    double median, mad, min, max;
    int launches;
} statistics;

typedef struct bench {
    device_check *c;
    arena arena;
    uint8_t *normal; // of the device: elements of one type
    qg_format normal_type;
    int64_t normal_count;
    // The copy beside the last point, which other kernels at the same point share.
    int64_t copied_bytes;
    double copy_seconds[2];
} bench;

// ------------------------------------------------------------------------------------- statistics

static int by_value(const void *left, const void *right) {
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static double median_of(double *values) {
    qsort(values, SAMPLES, sizeof *values, by_value);
    return values[SAMPLES / 2];
}

static statistics statistics_of(double *samples, int launches) {
    statistics s = {.launches = launches};
    s.median = median_of(samples);
    s.min = samples[0];
    s.max = samples[SAMPLES - 1];
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = fabs(samples[i] - s.median);
    s.mad = median_of(samples);
    return s;
}

// ------------------------------------------------------------------------------------------ points

// A quantization of one shape: offsets into a set of buffers.
typedef struct point {
    device_job job;
    device_input shape; // of no memory: m, k and type alone
    int64_t x, up, codes, scales, tensor_scale, scratch, stride;
    int64_t bytes; // compulsory
} point;

typedef struct launch {
    bench *b;
    const point *p;
    int64_t sets;
} launch;

static int64_t aligned(int64_t bytes) { return qg_round_up(bytes, LINE); }

static bool reads_twice(const qg_recipe *r) {
    bool one_block = r->layout.kind == QG_LAYOUT_PER_TENSOR && r->rule != QG_RULE_DELAYED &&
                     r->rule != QG_RULE_FIXED;
    return one_block || qg_rule_has_tensor_scale(r->rule);
}

static qg_status make_point(bench *b, const device_recipe *spec, qg_format type, int kernel,
                            int64_t m, int64_t k, point *p) {
    qg_storage_shape shape;
    memset(p, 0, sizeof *p);
    qg_status status = device_recipe_make(spec, &p->job.recipe);
    p->shape = (device_input){.type = type, .m = m, .k = k};
    p->job.format = spec->format;
    p->job.kernel = kernel;
    p->job.x = &p->shape;
    p->job.storage.packed = true;
    p->job.seed = 1;
    if (status == QG_OK)
        status = qg_storage_shape_of(&p->job.recipe, &p->job.storage, m, k, &shape);
    if (status != QG_OK)
        return status;
    qg_cuda_quantize call = device_call_of(&p->job);
    int64_t input = m * k * device_type_bytes(type);
    p->codes = aligned(input);
    p->scales = p->codes + aligned(shape.codes_size);
    p->tensor_scale = p->scales + aligned(shape.scales_size);
    p->scratch = p->tensor_scale + LINE;
    p->stride = p->scratch + aligned(b->c->module->quantize_scratch(&call));
    p->bytes = input * (reads_twice(&p->job.recipe) ? 2 : 1) + shape.codes_size + shape.scales_size;
    return QG_OK;
}

static qg_status run_quantize(void *context, int i, qg_cuda_error *error) {
    const launch *l = context;
    uint8_t *set = l->b->arena.base + i % l->sets * l->p->stride;
    qg_cuda_quantize call = device_call_of(&l->p->job);
    call.x = set;
    call.codes = set + l->p->codes;
    call.scales = set + l->p->scales;
    call.tensor_scale = qg_rule_has_tensor_scale(call.recipe.rule)
                            ? (float *)(void *)(set + l->p->tensor_scale)
                            : NULL;
    call.scratch = set + l->p->scratch;
    return l->b->c->module->quantize(&call, error);
}

// Reads and writes as many bytes as the point, within the same memory.
static qg_status run_copy(void *context, int i, qg_cuda_error *error) {
    const launch *l = context;
    int64_t half = l->p->bytes / 2, stride = 2 * aligned(half);
    uint8_t *set = l->b->arena.base + i % l->sets * stride;
    return l->b->c->module->copy(set + aligned(half), set, half > 0 ? half : 1, error);
}

// ---------------------------------------------------------------------------------------- memory

static qg_status take_arena(bench *b, int64_t bytes) {
    device_check *c = b->c;
    void *base = NULL;
    if (b->arena.bytes >= bytes)
        return QG_OK;
    c->module->release(b->arena.base);
    b->arena = (arena){0};
    qg_status status = device_status(c, c->module->allocate(bytes, &base, &c->error));
    if (status == QG_OK)
        b->arena = (arena){base, bytes};
    return status;
}

// Elements of N(0, 1) on the device, as many as the largest point has.
static qg_status take_normal(bench *b, qg_format type, int64_t count) {
    enum { ROW = 4096 };
    device_check *c = b->c;
    if (b->normal && b->normal_type == type && b->normal_count >= count)
        return QG_OK;
    device_input input = {0};
    void *base = NULL;
    int64_t rows = qg_ceil_divide(count, ROW), bytes = rows * ROW * device_type_bytes(type);
    c->module->release(b->normal);
    b->normal = NULL;
    qg_status status = device_input_fill(&input, DEVICE_DATA_NORMAL, type, 1, rows, ROW);
    if (status == QG_OK)
        status = device_status(c, c->module->allocate(bytes, &base, &c->error));
    if (status == QG_OK) {
        b->normal = base;
        b->normal_type = type;
        b->normal_count = rows * ROW;
        status = device_status(c, c->module->copy_in(base, input.raw, bytes, &c->error));
    }
    device_input_free(&input);
    return status;
}

static qg_status fill_sets(bench *b, const point *p, int64_t sets) {
    device_check *c = b->c;
    int64_t bytes = p->shape.m * p->shape.k * device_type_bytes(p->shape.type);
    qg_status status = take_normal(b, p->shape.type, p->shape.m * p->shape.k);
    for (int64_t i = 0; i < sets && status == QG_OK; i++)
        status = device_status(
            c, c->module->copy(b->arena.base + i * p->stride, b->normal, bytes, &c->error));
    return status == QG_OK ? device_status(c, c->module->synchronize(&c->error)) : status;
}

// ------------------------------------------------------------------------------------------- time

static qg_status time_launches(bench *b,
                               qg_status (*run)(void *context, int i, qg_cuda_error *error),
                               launch *l, int launches, statistics *out) {
    double samples[SAMPLES] = {0};
    device_check *c = b->c;
    qg_status status =
        device_status(c, c->module->time(run, l, launches, SAMPLES, samples, &c->error));
    if (status == QG_OK)
        *out = statistics_of(samples, launches);
    return status;
}

// Sets of a cold point; 0: none would be cold.
static int64_t cold_sets(const bench *b, int64_t bytes) {
    int64_t most = b->c->device->l2_bytes * L2_TIMES;
    int64_t sets = qg_ceil_divide(most, bytes) + 1;
    if (b->c->is_small)
        return 4;
    return sets > MOST_LAUNCHES ? 0 : sets;
}

static qg_status time_copy(bench *b, launch *l, int cold) {
    statistics s;
    if (b->copied_bytes != l->p->bytes) {
        b->copied_bytes = l->p->bytes;
        b->copy_seconds[0] = b->copy_seconds[1] = 0;
    }
    if (b->copy_seconds[cold] > 0)
        return QG_OK;
    int launches = l->sets > LEAST_LAUNCHES ? (int)l->sets : LEAST_LAUNCHES;
    qg_status status = time_launches(b, run_copy, l, launches, &s);
    if (status == QG_OK)
        b->copy_seconds[cold] = s.median;
    return status;
}

static void write_row(bench *b, const point *p, int cold, const statistics *s) {
    char axes[DEVICE_AXES_SIZE], input[QG_NAME_SIZE];
    qg_cuda_quantize call = device_call_of(&p->job);
    device_recipe_axes(&p->job.recipe, p->job.format, axes);
    *strrchr(axes, '\t') = 0; // rounding: rne
    qg_format_name(p->shape.type, input);
    device_report_row(b->c->report, DEVICE_TIME, "timing", DEVICE_VERDICT_RAN, "",
                      "%s\t%s\t%s\t%s\t%" PRId64 "\t0\t%" PRId64
                      "\t%d\t%d\t%.6g\t%.6g\t%.6g\t%.6g\t%" PRId64 "\t0\t%.6g",
                      b->c->module->quantize_name(&call), axes, input, cold ? "cold" : "hot",
                      p->shape.m, p->shape.k, s->launches, SAMPLES, s->median, s->mad, s->min,
                      s->max, p->bytes, b->copy_seconds[cold]);
}

// seconds[cold]: medians; 0 where there is none.
static qg_status time_point(bench *b, const point *p, double seconds[2]) {
    seconds[0] = seconds[1] = 0;
    for (int cold = 0; cold < 2; cold++) {
        int64_t sets = cold ? cold_sets(b, p->bytes) : 1;
        if (sets == 0)
            continue;
        int launches = sets > LEAST_LAUNCHES ? (int)sets : LEAST_LAUNCHES;
        launch l = {b, p, sets};
        statistics s;
        // The copy's sets are of another stride, and it may run over the inputs: it goes first.
        int64_t copy_stride = 2 * aligned(p->bytes / 2);
        int64_t stride = p->stride > copy_stride ? p->stride : copy_stride;
        qg_status status = take_arena(b, sets * stride);
        if (status == QG_OK)
            status = time_copy(b, &l, cold);
        if (status == QG_OK)
            status = fill_sets(b, p, sets);
        if (status == QG_OK)
            status = time_launches(b, run_quantize, &l, launches, &s);
        if (status != QG_OK)
            return status;
        seconds[cold] = s.median;
        write_row(b, p, cold, &s);
    }
    return QG_OK;
}

static qg_status time_kernel(bench *b, const device_recipe *spec, qg_format type, int kernel,
                             int64_t m, int64_t k, point *p, double seconds[2]) {
    qg_status status = make_point(b, spec, type, kernel, m, k, p);
    if (status == QG_OK)
        status = time_point(b, p, seconds);
    if (status == QG_ERROR_UNSUPPORTED) {
        device_report_left(b->c->report, "timing", 1, qg_detail());
        seconds[0] = seconds[1] = 0;
        return QG_OK;
    }
    return status;
}

// ------------------------------------------------------------------------------------- the recipes

// Every kernel at a shape that exceeds any L2, bf16 and fp32.
static const struct {
    device_recipe spec;
    int kernel;
} LARGE[] = {
    {{"metrale_act128", NULL, NULL, NULL},    QG_GROUP_KERNEL_HOPPER},
    {{"metrale_act128", NULL, NULL, NULL},    QG_GROUP_KERNEL_SHARED},
    {{"mxfp8", NULL, NULL, NULL},             QG_GROUP_KERNEL_HOPPER},
    {{"mxfp8", NULL, NULL, NULL},             QG_GROUP_KERNEL_SHARED},
    {{"te_mxfp8", NULL, NULL, NULL},          QG_GROUP_KERNEL_HOPPER},
    {{"mxfp6_e2m3", NULL, NULL, NULL},        QG_GROUP_KERNEL_HOPPER},
    {{"mxfp4", NULL, NULL, NULL},             QG_GROUP_KERNEL_HOPPER},
    {{"nvfp4", NULL, NULL, NULL},             QG_GROUP_KERNEL_HOPPER},
    {{"nvfp4_4over6", NULL, NULL, NULL},      QG_GROUP_KERNEL_HOPPER},
    {{"e4m3", "per_row", "amax", NULL},       QG_GROUP_KERNEL_HOPPER},
    {{"deepseek_w128x128", NULL, NULL, NULL}, QG_GROUP_KERNEL_HOPPER},
    {{"te_e4m3", NULL, NULL, NULL},           QG_GROUP_KERNEL_HOPPER},
    {{"mx9", NULL, NULL, NULL},               QG_GROUP_KERNEL_HOPPER},
};

static void note_large(bench *b, const point *p, const double seconds[2]) {
    char name[64];
    qg_cuda_quantize call = device_call_of(&p->job);
    snprintf(name, sizeof name, "%s %s", b->c->module->quantize_name(&call), p->job.format);
    int cold = seconds[1] > 0;
    if (seconds[cold] > 0)
        device_report_note(
            b->c->report, DEVICE_TIME, "%-32s bf16 %s %9.2f us %8.0f GB/s %5.2f of the copy", name,
            cold ? "cold" : "hot ", 1e6 * seconds[cold], 1e-9 * (double)p->bytes / seconds[cold],
            b->copy_seconds[cold] / seconds[cold]);
}

static qg_status time_recipes(bench *b) {
    static const qg_format types[] = {QG_FORMAT_BF16, QG_FORMAT_FP32};
    int64_t m = b->c->is_small ? 8 : 4096, k = b->c->is_small ? 256 : 8192;
    size_t count = b->c->is_small ? 3 : sizeof LARGE / sizeof LARGE[0];
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < count; i++) {
            point p;
            double seconds[2];
            if (device_is_late(b->c)) {
                device_report_left(b->c->report, "timing of recipes", 1, "time is up");
                continue;
            }
            qg_status status =
                time_kernel(b, &LARGE[i].spec, types[t], LARGE[i].kernel, m, k, &p, seconds);
            if (status != QG_OK)
                return status;
            if (types[t] == QG_FORMAT_BF16) // the file has the others
                note_large(b, &p, seconds);
        }
    return QG_OK;
}

// --------------------------------------------------------------------------------- the crossover

static const int64_t GRID_M[] = {1,  2,  4,   8,   16,  17,   25,   32,   48,
                                 64, 96, 128, 256, 512, 1168, 2048, 4576, 8192};
static const int64_t GRID_K[] = {1024, 2048, 4096, 5120, 6144, 7168, 8192, 17408};

// The least m from which on the twin was never slower; -1: never.
static int64_t crossover(const double *ratio, size_t count) {
    int64_t from = -1;
    for (size_t i = count; i-- > 0 && ratio[i] >= 1;)
        from = GRID_M[i];
    return from;
}

static qg_status time_column(bench *b, int64_t k, size_t rows) {
    static const device_recipe spec = {.format = "metrale_act128"};
    double ratio[sizeof GRID_M / sizeof GRID_M[0]] = {0}, least = INFINITY;
    for (size_t i = 0; i < rows; i++) {
        point p;
        double shared[2], twin[2];
        if (device_is_late(b->c)) {
            device_report_left(b->c->report, "timing of the twin", (int64_t)(rows - i),
                               "time is up");
            return QG_OK;
        }
        qg_status status =
            time_kernel(b, &spec, QG_FORMAT_BF16, QG_GROUP_KERNEL_SHARED, GRID_M[i], k, &p, shared);
        if (status == QG_OK)
            status = time_kernel(b, &spec, QG_FORMAT_BF16, QG_GROUP_KERNEL_HOPPER, GRID_M[i], k, &p,
                                 twin);
        if (status != QG_OK)
            return status;
        int cold = shared[1] > 0 && twin[1] > 0;
        ratio[i] = twin[cold] > 0 ? shared[cold] / twin[cold] : 0;
        if (GRID_M[i] >= 1024 && ratio[i] < least)
            least = ratio[i];
    }
    device_report_note(b->c->report, DEVICE_TIME,
                       "twin over shared, k %5" PRId64 ": faster from m %4" PRId64
                       ", %5.2f times at m %" PRId64 ", at least %.2f for m >= 1024",
                       k, crossover(ratio, rows), ratio[rows - 1], GRID_M[rows - 1],
                       isfinite(least) ? least : 0);
    return QG_OK;
}

static qg_status time_grid(bench *b) {
    size_t columns = b->c->is_small ? 1 : sizeof GRID_K / sizeof GRID_K[0];
    size_t rows = b->c->is_small ? 3 : sizeof GRID_M / sizeof GRID_M[0];
    qg_status status = take_normal(b, QG_FORMAT_BF16, GRID_M[rows - 1] * GRID_K[columns - 1]);
    for (size_t j = 0; j < columns && status == QG_OK; j++)
        status = time_column(b, GRID_K[j], rows);
    return status;
}

// ---------------------------------------------------------------------------------------- products

typedef struct timed_product {
    const qg_cuda_module *module;
    qg_cuda_product call;
} timed_product;

static qg_status run_product(void *context, int i, qg_cuda_error *error) {
    timed_product *t = context;
    (void)i;
    return t->module->product(&t->call, error);
}

// E4M3 per tensor; the codes are those of the arena, whatever they are, but no NaN.
static qg_status prepare_product(bench *b, int64_t size, int fast, timed_product *t) {
    enum { WORKSPACE = 32 << 20 };
    device_check *c = b->c;
    float one = 1;
    int64_t bytes = size * size;
    device_recipe spec = {.format = "e4m3", .layout = "per_tensor", .rule = "fixed:1"};
    qg_recipe recipe;
    qg_status status = device_recipe_make(&spec, &recipe);
    if (status == QG_OK)
        status = take_arena(b, 4 * aligned(bytes) + LINE + WORKSPACE);
    if (status == QG_OK)
        status =
            device_status(c, c->module->fill(b->arena.base, 0x38, 2 * aligned(bytes), &c->error));
    uint8_t *scale = b->arena.base ? b->arena.base + 4 * aligned(bytes) : NULL;
    if (status == QG_OK)
        status = device_status(c, c->module->copy_in(scale, &one, sizeof one, &c->error));
    if (status != QG_OK)
        return status;
    t->module = c->module;
    t->call = (qg_cuda_product){
        .m = size,
        .n = size,
        .k = size,
        .a = {recipe, b->arena.base,                  scale, 1},
        .b = {recipe, b->arena.base + aligned(bytes), scale, 1},
        .out_type = QG_FORMAT_BF16,
        .accumulates_fast = fast,
        .out = b->arena.base + 2 * aligned(bytes),
        .workspace = scale + LINE,
        .workspace_bytes = WORKSPACE,
    };
    return device_status(c, c->module->product_takes(&t->call, &c->error));
}

static qg_status time_product(bench *b, int64_t size, int fast) {
    timed_product t;
    double samples[SAMPLES] = {0}, flops = 2.0 * (double)size * (double)size * (double)size;
    device_check *c = b->c;
    qg_status status = prepare_product(b, size, fast, &t);
    if (status == QG_OK)
        status = device_status(
            c, c->module->time(run_product, &t, LEAST_LAUNCHES, SAMPLES, samples, &c->error));
    if (status != QG_OK)
        return status;
    statistics s = statistics_of(samples, LEAST_LAUNCHES);
    device_report_row(c->report, DEVICE_TIME, "timing", DEVICE_VERDICT_RAN, "",
                      "product_%s\te4m3\tper_tensor\tfixed:1\tfp32\thot\t%" PRId64 "\t%" PRId64
                      "\t%" PRId64 "\t%d\t%d\t%.6g\t%.6g\t%.6g\t%.6g\t%" PRId64 "\t%.0f\tnan",
                      fast ? "fast" : "promoted", size, size, size, s.launches, SAMPLES, s.median,
                      s.mad, s.min, s.max, 4 * size * size, flops);
    device_report_note(c->report, DEVICE_TIME,
                       "product e4m3, %-8s m = n = k = %-6" PRId64 " %9.2f us %8.1f TFLOP/s",
                       fast ? "fast" : "promoted", size, 1e6 * s.median, 1e-12 * flops / s.median);
    return QG_OK;
}

static qg_status time_products(bench *b) {
    static const int64_t sizes[] = {1024, 4096, 8192};
    size_t count = b->c->is_small ? 1 : sizeof sizes / sizeof sizes[0];
    if (b->c->simulated[0][0])
        return QG_OK; // nothing that could be timed
    for (size_t i = 0; i < count; i++)
        for (int fast = 1; fast >= 0; fast--) {
            qg_status status = QG_OK;
            if (device_is_late(b->c))
                device_report_left(b->c->report, "timing of products", 1, "time is up");
            else
                status = time_product(b, b->c->is_small ? 64 : sizes[i], fast);
            if (status == QG_ERROR_UNSUPPORTED)
                device_report_left(b->c->report, "timing of products", 1, qg_detail());
            else if (status != QG_OK)
                return status;
        }
    return QG_OK;
}

qg_status device_stage_timing(device_check *c) {
    bench b = {.c = c};
    qg_status status = time_recipes(&b);
    if (status == QG_OK)
        status = time_grid(&b);
    if (status == QG_OK)
        status = time_products(&b);
    if (b.arena.base)
        c->module->release(b.arena.base);
    if (b.normal)
        c->module->release(b.normal);
    return status;
}
