// Bytes per second of quantize and dequantize on the CPU, beside memcpy and a kernel that moves the
// same bytes with almost no arithmetic, in the same run.
//
// For each recipe, size and thread count: best and median over rounds in which memcpy, the traffic
// kernel and the recipe run one after the other, so that load on the machine falls on all alike.
// GB/s counts bytes read and written; only the ratios carry over to other machines. Sizes: `dram`
// 64 Mi elements, `l2` 128 Ki elements, whose calls are repeated. QG_ISA caps the kernels.
#include <qg_cpu.h>
#include <qg_init.h>
#include <qg_memory.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>

#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAS_VECTORS 1
#endif

enum { ROUNDS_MAX = 256, CASE_COLUMNS = 4096 };

// An element format or recipe with a layout and a rule ("": the recipe's own).
typedef struct bench_case {
    const char *name, *recipe, *layout, *rule, *rounding;
    qg_format input;
    int packed, back; // back: dequantize
} bench_case;

// clang-format off
static const bench_case CASES[] = {
    {"e4m3 cast", "e4m3", "per_tensor", "fixed:1", "rne", QG_FORMAT_FP32, 0, 0},
    {"e5m2 cast", "e5m2", "per_tensor", "fixed:1", "rne", QG_FORMAT_FP32, 0, 0},
    {"e3m2 cast", "e3m2", "per_tensor", "fixed:1", "rne", QG_FORMAT_FP32, 0, 0},
    {"e2m3 cast packed", "e2m3", "per_tensor", "fixed:1", "rne", QG_FORMAT_FP32, 1, 0},
    {"e2m1 cast", "e2m1", "per_tensor", "fixed:1", "rne", QG_FORMAT_FP32, 0, 0},
    {"e2m1 cast packed", "e2m1", "per_tensor", "fixed:1", "rne", QG_FORMAT_FP32, 1, 0},
    {"int8 cast", "int8", "per_tensor", "fixed:1", "rne", QG_FORMAT_FP32, 0, 0},
    {"e4m3 cast rtz", "e4m3", "per_tensor", "fixed:1", "rtz", QG_FORMAT_FP32, 0, 0},
    {"e4m3 stochastic", "e4m3", "per_tensor", "fixed:1", "stochastic:A:16", QG_FORMAT_FP32, 0, 0},
    {"e4m3 per_tensor amax", "e4m3", "per_tensor", "amax", "rne", QG_FORMAT_FP32, 0, 0},
    {"mxfp8 floor", "mxfp8", "", "floor", "rne", QG_FORMAT_FP32, 0, 0},
    {"mxfp8 rceil", "mxfp8", "", "rceil", "rne", QG_FORMAT_FP32, 0, 0},
    {"mxfp8 rceil bf16", "mxfp8", "", "rceil", "rne", QG_FORMAT_BF16, 0, 0},
    {"mxfp4 floor packed", "mxfp4", "", "floor", "rne", QG_FORMAT_FP32, 1, 0},
    {"mxint8 floor", "mxint8", "", "floor", "rne", QG_FORMAT_FP32, 0, 0},
    {"nvfp4 packed bf16", "nvfp4", "", "", "rne", QG_FORMAT_BF16, 1, 0},
    {"group:128 amax_rcp bf16", "e4m3", "group:128", "amax_rcp", "rne", QG_FORMAT_BF16, 0, 0},
    {"group:128 amax_mul bf16", "e4m3", "group:128", "amax_mul", "rne", QG_FORMAT_BF16, 0, 0},
    {"group:128 amax bf16", "e4m3", "group:128", "amax", "rne", QG_FORMAT_BF16, 0, 0},
    {"block:128x128 amax bf16", "e4m3", "block:128x128", "amax", "rne", QG_FORMAT_BF16, 0, 0},
    {"e4m3 to fp32", "e4m3", "per_tensor", "fixed:1", "rne", QG_FORMAT_FP32, 0, 1},
    {"mxfp8 to fp32", "mxfp8", "", "floor", "rne", QG_FORMAT_FP32, 0, 1},
    {"mxfp4 packed to fp32", "mxfp4", "", "floor", "rne", QG_FORMAT_FP32, 1, 1},
    {"mxfp6_e2m3 packed to fp32", "mxfp6_e2m3", "", "floor", "rne", QG_FORMAT_FP32, 1, 1},
};
// clang-format on
enum { CASE_COUNT = sizeof CASES / sizeof CASES[0] };

static clockid_t the_clock = CLOCK_MONOTONIC;

static double seconds(void) {
    struct timespec t;
    clock_gettime(the_clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

// ---------------------------------------------------------------------------------------- traffic

// Reads `in` bytes and writes `out` bytes, nothing else: 64 bytes for every in / out * 64.
typedef struct traffic {
    const char *from;
    char *to;
    int64_t in, out;
    int streams;
} traffic;

static void move_plainly(const traffic *t) {
    int64_t n = t->in < t->out ? t->in : t->out;
    memcpy(t->to, t->from, (size_t)n);
}

#ifdef HAS_VECTORS
__attribute__((target("avx512f"))) static void move_512(const traffic *t) {
    int64_t reads = t->in > t->out ? t->in / t->out : 1,
            writes = t->out > t->in ? t->out / t->in : 1;
    int64_t steps = t->in / (64 * reads);
    for (int64_t i = 0; i < steps; i++) {
        const char *from = t->from + i * 64 * reads;
        char *to = t->to + i * 64 * writes;
        __m512i sum = _mm512_loadu_si512(from);
        _mm_prefetch(from + 8192, _MM_HINT_NTA);
        for (int64_t r = 1; r < reads; r++) {
            _mm_prefetch(from + 8192 + 64 * r, _MM_HINT_NTA);
            sum = _mm512_or_si512(sum, _mm512_loadu_si512(from + 64 * r));
        }
        for (int64_t w = 0; w < writes; w++) {
            if (t->streams)
                _mm512_stream_si512((void *)(to + 64 * w), sum);
            else
                _mm512_storeu_si512(to + 64 * w, sum);
        }
    }
    _mm_sfence();
}
#endif

static void move_share(const traffic *t) {
#ifdef HAS_VECTORS
    if (__builtin_cpu_supports("avx512f")) {
        move_512(t);
        return;
    }
#endif
    move_plainly(t);
}

static void move_traffic(const traffic *t, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < threads; i++) {
        int64_t in = t->in / threads / 4096 * 4096, out = t->out / threads / 4096 * 4096;
        traffic share = {t->from + i * in, t->to + i * out, in, out, t->streams};
        move_share(&share);
    }
}

static void copy(const char *from, char *to, int64_t bytes, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < threads; i++) {
        int64_t share = bytes / threads;
        memcpy(to + i * share, from + i * share, (size_t)share);
    }
}

// ------------------------------------------------------------------------------------------ cases

typedef struct work {
    int64_t elements;
    int repeats, is_dram;
    float *x;
    uint16_t *narrow;
    uint8_t *codes, *scales;
    float *q;
} work;

// Magnitudes over some binades, both signs.
static void fill(work *w) {
    for (int64_t i = 0; i < w->elements; i += 4) {
        qg_philox_block r = qg_philox_quad(1, QG_STREAM_DATA, (uint64_t)i / 4);
        for (int j = 0; j < 4 && i + j < w->elements; j++) {
            uint32_t bits = (r.word[j] & 0x807fffffu) | (124u + (r.word[j] >> 23 & 7)) << 23;
            w->x[i + j] = qg_float_of_bits(bits);
            w->narrow[i + j] = (uint16_t)(bits >> 16);
        }
    }
}

static qg_status recipe_of(const bench_case *c, qg_recipe *recipe) {
    int rule;
    float fixed;
    qg_layout layout;
    qg_status status = qg_recipe_find(c->recipe, recipe);
    if (status == QG_OK && c->layout[0]) {
        status = qg_layout_parse(c->layout, &layout);
        if (status == QG_OK)
            status = qg_recipe_set_layout(recipe, layout);
    }
    if (status == QG_OK && c->rule[0]) {
        status = qg_rule_parse(c->rule, &rule, &fixed);
        if (status == QG_OK)
            status = qg_recipe_set_rule(recipe, rule, fixed);
    }
    return status == QG_OK ? qg_rounding_parse(c->rounding, &recipe->conversion.rounding) : status;
}

typedef struct bench_run {
    const bench_case *c;
    const work *w;
    qg_recipe recipe;
    qg_storage storage;
    int64_t m, k, bytes_in, bytes_out;
    float tensor;
    int threads;
    const char *impl;
} bench_run;

static qg_status quantize_once(bench_run *r) {
    qg_quantize_options options = {
        .input_type = r->c->input, .stream = QG_STREAM_ROUNDING, .threads = r->threads};
    const void *x = r->c->input == QG_FORMAT_FP32 ? (const void *)r->w->x : r->w->narrow;
    return qg_cpu_quantize(&r->recipe, &options, &r->storage, r->m, r->k, x, r->w->codes,
                           r->w->scales, &r->tensor, &r->impl);
}

static qg_status run_once(bench_run *r) {
    if (!r->c->back)
        return quantize_once(r);
    return qg_cpu_dequantize(&r->recipe, &r->storage, r->m, r->k, r->w->codes, r->w->scales,
                             r->tensor, r->threads, r->w->q, &r->impl);
}

static qg_status prepare(bench_run *r) {
    qg_storage_shape shape;
    r->storage.packed = r->c->packed != 0;
    r->k = CASE_COLUMNS;
    r->m = r->w->elements / r->k;
    qg_status status = recipe_of(r->c, &r->recipe);
    if (status == QG_OK)
        status = qg_storage_shape_of(&r->recipe, &r->storage, r->m, r->k, &shape);
    if (status == QG_OK)
        status = quantize_once(r);
    if (status != QG_OK)
        return status;
    int64_t stored = shape.codes_size + shape.scales_size;
    int64_t input = r->w->elements * (r->c->input == QG_FORMAT_FP32 ? 4 : 2);
    r->bytes_in = r->c->back ? stored : input;
    r->bytes_out = r->c->back ? 4 * r->w->elements : stored;
    return run_once(r);
}

static void print_row(const bench_run *r, double *own, double *mem, double *moved, double *to_mem,
                      double *to_moved, int rounds, int tsv) {
    double bytes = (double)(r->bytes_in + r->bytes_out) * 1e-9 * r->w->repeats;
    double own_median = median(own, rounds), mem_median = median(mem, rounds);
    double moved_median = median(moved, rounds);
    printf(
        tsv ? "%s\t%s\t%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.3f\t%.3f\t%.3f\t%.3f\n"
            : "%-26s %-7s %-4s %2d %7.2f %7.2f %7.2f %7.2f %7.2f %7.2f %6.3f %6.3f %6.3f %6.3f\n",
        r->c->name, r->impl, r->w->is_dram ? "dram" : "l2", r->threads, bytes / own[0],
        bytes / own_median, bytes / mem[0], bytes / mem_median, bytes / moved[0],
        bytes / moved_median, mem[0] / own[0], median(to_mem, rounds), moved[0] / own[0],
        median(to_moved, rounds));
    fflush(stdout);
}

static qg_status bench(const bench_case *c, const work *w, int threads, int rounds, int tsv) {
    static double own[ROUNDS_MAX], mem[ROUNDS_MAX], moved[ROUNDS_MAX], to_mem[ROUNDS_MAX],
        to_moved[ROUNDS_MAX];
    bench_run r = {.c = c, .w = w, .threads = threads};
    qg_status status = prepare(&r);
    if (status != QG_OK)
        return status;
    // memcpy reads and writes half of the bytes each.
    int64_t half = (r.bytes_in + r.bytes_out) / 2;
    traffic t = {(const char *)w->x, (char *)w->codes, r.bytes_in, r.bytes_out, w->is_dram};
    if (c->back)
        t.from = (const char *)w->codes, t.to = (char *)w->q;
    for (int i = 0; i < rounds; i++) {
        double start = seconds();
        for (int n = 0; n < w->repeats; n++)
            copy((const char *)w->x, (char *)w->q, half, threads);
        double copied = seconds();
        for (int n = 0; n < w->repeats; n++)
            move_traffic(&t, threads);
        double done = seconds();
        // What the traffic kernel wrote is no quantized tensor.
        if (c->back)
            (void)quantize_once(&r);
        for (int n = -1; n < w->repeats; n++) {
            if (n == 0)
                own[i] = seconds();
            (void)run_once(&r);
        }
        own[i] = seconds() - own[i];
        mem[i] = copied - start;
        moved[i] = done - copied;
        to_mem[i] = mem[i] / own[i];
        to_moved[i] = moved[i] / own[i];
    }
    print_row(&r, own, mem, moved, to_mem, to_moved, rounds, tsv);
    return QG_OK;
}

static qg_status work_open(work *w, int is_dram, int64_t dram_elements) {
    enum { L2_ELEMENTS = 128 << 10 };
    *w = (work){.elements = is_dram ? dram_elements : L2_ELEMENTS, .is_dram = is_dram};
    w->repeats = is_dram ? 1 : 200;
    void *room[5];
    const int64_t sizes[5] = {4, 2, 4, 4, 4};
    for (int i = 0; i < 5; i++) {
        qg_status status = qg_allocate(&room[i], w->elements + 4096, sizes[i], "benchmark data");
        if (status != QG_OK)
            return status;
        memset(room[i], 1, (size_t)(w->elements * sizes[i])); // pages exist before they are timed
    }
    w->x = room[0], w->narrow = room[1], w->codes = room[2], w->scales = room[3], w->q = room[4];
    fill(w);
    return QG_OK;
}

static void work_close(work *w) {
    qg_release(w->x);
    qg_release(w->narrow);
    qg_release(w->codes);
    qg_release(w->scales);
    qg_release(w->q);
}

// ----------------------------------------------------------------------------------------- options

typedef struct options {
    char *only, *sizes, *threads;
    int rounds, tsv, cpu_time, elements_mi;
} options;

static int usage_error(poptContext context, const char *what, const char *why) {
    fprintf(stderr, "bench_quantize: %s: %s\n", what, why);
    poptFreeContext(context);
    return 2;
}

static int read_options(int argc, const char **argv, options *o) {
    struct poptOption table[] = {
        {"only",     'o', POPT_ARG_STRING, &o->only,        0, "cases whose name holds TEXT",  "TEXT"},
        {"sizes",    's', POPT_ARG_STRING, &o->sizes,       0, "l2, dram (default: both)",     "LIST"},
        {"threads",  't', POPT_ARG_STRING, &o->threads,     0, "thread counts (default: 1,2)", "LIST"},
        {"rounds",   'r', POPT_ARG_INT,    &o->rounds,      0, "rounds (default: 9)",          "N"   },
        {"elements", 'e', POPT_ARG_INT,    &o->elements_mi, 0, "Mi elements of size dram",     "N"   },
        {"tsv",      0,   POPT_ARG_NONE,   &o->tsv,         0, "tab-separated values",         NULL  },
        {"cpu-time", 0,   POPT_ARG_NONE,   &o->cpu_time,    0,
         "the calling thread's CPU time: for one thread on a busy machine",                    NULL  },
        POPT_AUTOHELP POPT_TABLEEND
    };
    poptContext context = poptGetContext("bench_quantize", argc, argv, table, 0);
    int code = poptGetNextOpt(context);
    if (code < -1)
        return usage_error(context, poptBadOption(context, 0), poptStrerror(code));
    if (poptPeekArg(context))
        return usage_error(context, poptPeekArg(context), "no such argument");
    poptFreeContext(context);
    if (o->rounds < 1 || o->rounds > ROUNDS_MAX) {
        fprintf(stderr, "bench_quantize: --rounds must be 1 to %d\n", ROUNDS_MAX);
        return 2;
    }
    for (const char *at = o->threads ? o->threads : "1"; *at;) {
        char *end;
        long threads = strtol(at, &end, 10);
        if (end == at || threads < 1 || threads > 1024 || (*end && *end != ',')) {
            fprintf(stderr, "bench_quantize: --threads takes numbers from 1 to 1024\n");
            return 2;
        }
        at = *end ? end + 1 : end;
    }
    if (o->elements_mi < 1) {
        fprintf(stderr, "bench_quantize: --elements must be at least 1\n");
        return 2;
    }
    return 0;
}

static int bench_size(const options *o, int is_dram) {
    work w;
    qg_status status = work_open(&w, is_dram, (int64_t)o->elements_mi << 20);
    for (int i = 0; i < CASE_COUNT && status == QG_OK; i++) {
        if (o->only && !strstr(CASES[i].name, o->only))
            continue;
        const char *at = o->threads ? o->threads : "1,2";
        while (*at && status == QG_OK) {
            char *end;
            int threads = (int)strtol(at, &end, 10);
            status = bench(&CASES[i], &w, threads, o->rounds, o->tsv);
            at = *end ? end + 1 : end;
        }
    }
    if (status != QG_OK)
        fprintf(stderr, "bench_quantize: %s\n", qg_detail());
    work_close(&w);
    return status == QG_OK ? 0 : 1;
}

int main(int argc, const char **argv) {
    options o = {.rounds = 9, .elements_mi = 64};
    int code = read_options(argc, argv, &o);
    if (code)
        return code;
    if (qg_init() != QG_OK || qg_cpu_use_isa(NULL) != QG_OK) {
        fprintf(stderr, "bench_quantize: %s\n", qg_detail());
        return 5;
    }
    if (o.cpu_time)
        the_clock = CLOCK_THREAD_CPUTIME_ID;
    if (o.tsv)
        printf("case\timpl\tsize\tthreads\tgb_s_best\tgb_s_median\tmemcpy_best\tmemcpy_median\t"
               "traffic_best\ttraffic_median\tto_memcpy_best\tto_memcpy_median\tto_traffic_best\t"
               "to_traffic_median\n");
    else
        printf(
            "GB/s, read and written\n%-26s %-7s %-4s %2s %7s %7s %7s %7s %7s %7s %6s %6s %6s %6s\n",
            "case", "impl", "size", "t", "best", "median", "memcpy", "median", "traffic", "median",
            "/memcp", "median", "/traff", "median");
    if (!o.sizes || strstr(o.sizes, "l2"))
        code = bench_size(&o, 0);
    if (code == 0 && (!o.sizes || strstr(o.sizes, "dram")))
        code = bench_size(&o, 1);
    return code;
}
