// GFLOP/s of the CPU's products of quantized operands, beside the library's own: OpenBLAS sgemm of
// binary32 matrices and oneDNN's matmul of BF16 matrices, in the same run.
//
// For each size and thread count, best and median over rounds in which every product runs once, so
// that load on the machine falls on all alike; dequantization included. Only the ratios carry over
// to other machines. What this build lacks is nan.
// OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are taken out of the environment.
#include <qg_cpu.h>
#include <qg_init.h>
#include <qg_recipe_name.h>

#include <math.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef QG_HAVE_OPENBLAS
#include <cblas.h>
#endif
#if defined(QG_HAVE_ONEDNN) && defined(_OPENMP)
#include <oneapi/dnnl/dnnl.h>
#endif

enum { ROUNDS_MAX = 64, LIST_MAX = 16 };

typedef struct operand {
    qg_recipe recipe;
    uint8_t *codes, *scales;
    float tensor_scale;
} operand;

typedef struct work {
    int64_t size;
    int threads;
    float *x, *y, *out;        // (size, size)
    uint16_t *x_bf16, *y_bf16; // the same, rounded
    void *onednn;
} work;

static void fail(const char *what) {
    fprintf(stderr, "bench_matmul: %s: %s\n", what, qg_detail());
    exit(5);
}

static void *room(int64_t bytes) {
    void *out = aligned_alloc(64, (size_t)((bytes + 63) / 64 * 64));
    if (!out)
        fail("not enough memory");
    memset(out, 0, (size_t)bytes);
    return out;
}

static clockid_t the_clock = CLOCK_MONOTONIC;

static double seconds(void) {
    struct timespec t;
    clock_gettime(the_clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ------------------------------------------------------------------------------------- the librari

#ifdef QG_HAVE_OPENBLAS
static double time_sgemm(work *w) {
    int s = (int)w->size;
    openblas_set_num_threads(w->threads);
    double start = seconds();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, s, s, s, 1, w->x, s, w->y, s, 0, w->out,
                s);
    return seconds() - start;
}
#else
static double time_sgemm(work *w) { return w->size ? (double)NAN : 0; }
#endif

#if defined(QG_HAVE_ONEDNN) && defined(_OPENMP)

typedef struct library {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t run;
    dnnl_exec_arg_t arguments[3];
} library;

static void must(dnnl_status_t status) {
    if (status != dnnl_success)
        fail("oneDNN refused");
}

// Row-major a and out, b with k last, as the caller of a plain library would have them.
#if DNNL_VERSION_MAJOR >= 3
static void open_library(work *w) {
    library *l = w->onednn = room((int64_t)sizeof *l);
    dnnl_dims_t sizes = {w->size, w->size};
    dnnl_memory_desc_t a, b, c;
    dnnl_primitive_desc_t plan;
    must(dnnl_engine_create(&l->engine, dnnl_cpu, 0));
    must(dnnl_stream_create(&l->stream, l->engine, dnnl_stream_default_flags));
    must(dnnl_memory_desc_create_with_tag(&a, 2, sizes, dnnl_bf16, dnnl_ab));
    must(dnnl_memory_desc_create_with_tag(&b, 2, sizes, dnnl_bf16, dnnl_ba));
    must(dnnl_memory_desc_create_with_tag(&c, 2, sizes, dnnl_f32, dnnl_ab));
    must(dnnl_matmul_primitive_desc_create(&plan, l->engine, a, b, NULL, c, NULL));
    must(dnnl_primitive_create(&l->run, plan));
    dnnl_exec_arg_t arguments[3] = {
        {DNNL_ARG_SRC,     NULL},
        {DNNL_ARG_WEIGHTS, NULL},
        {DNNL_ARG_DST,     NULL}
    };
    must(dnnl_memory_create(&arguments[0].memory, a, l->engine, w->x_bf16));
    must(dnnl_memory_create(&arguments[1].memory, b, l->engine, w->y_bf16));
    must(dnnl_memory_create(&arguments[2].memory, c, l->engine, w->out));
    memcpy(l->arguments, arguments, sizeof arguments);
    dnnl_primitive_desc_destroy(plan);
    dnnl_memory_desc_destroy(a);
    dnnl_memory_desc_destroy(b);
    dnnl_memory_desc_destroy(c);
}
#else
static void open_library(work *w) {
    library *l = w->onednn = room((int64_t)sizeof *l);
    dnnl_dims_t sizes = {w->size, w->size};
    dnnl_memory_desc_t a, b, c;
    dnnl_matmul_desc_t product;
    dnnl_primitive_desc_t plan;
    must(dnnl_engine_create(&l->engine, dnnl_cpu, 0));
    must(dnnl_stream_create(&l->stream, l->engine, dnnl_stream_default_flags));
    must(dnnl_memory_desc_init_by_tag(&a, 2, sizes, dnnl_bf16, dnnl_ab));
    must(dnnl_memory_desc_init_by_tag(&b, 2, sizes, dnnl_bf16, dnnl_ba));
    must(dnnl_memory_desc_init_by_tag(&c, 2, sizes, dnnl_f32, dnnl_ab));
    must(dnnl_matmul_desc_init(&product, &a, &b, NULL, &c));
    must(dnnl_primitive_desc_create(&plan, &product, NULL, l->engine, NULL));
    must(dnnl_primitive_create(&l->run, plan));
    dnnl_exec_arg_t arguments[3] = {
        {DNNL_ARG_SRC,     NULL},
        {DNNL_ARG_WEIGHTS, NULL},
        {DNNL_ARG_DST,     NULL}
    };
    must(dnnl_memory_create(&arguments[0].memory, &a, l->engine, w->x_bf16));
    must(dnnl_memory_create(&arguments[1].memory, &b, l->engine, w->y_bf16));
    must(dnnl_memory_create(&arguments[2].memory, &c, l->engine, w->out));
    memcpy(l->arguments, arguments, sizeof arguments);
    dnnl_primitive_desc_destroy(plan);
}
#endif

static void close_library(work *w) {
    library *l = w->onednn;
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(l->arguments[i].memory);
    dnnl_primitive_destroy(l->run);
    dnnl_stream_destroy(l->stream);
    dnnl_engine_destroy(l->engine);
    free(l);
}

static double time_bf16(work *w) {
    library *l = w->onednn;
    double start = seconds();
    must(dnnl_primitive_execute(l->run, l->stream, 3, l->arguments));
    must(dnnl_stream_wait(l->stream));
    return seconds() - start;
}

// The library asks OpenMP when a primitive is made.
static void limit_library(int threads) { omp_set_num_threads(threads); }

#else
static void open_library(work *w) { w->onednn = NULL; }
static void close_library(work *w) { (void)w; }
static double time_bf16(work *w) { return w->size ? (double)NAN : 0; }
static void limit_library(int threads) { (void)threads; }
#endif

// ---------------------------------------------------------------------------------------- the prod

typedef struct path {
    const char *name, *recipe;
    qg_layout layout;
    int rule;
} path;

// Preset recipes keep their layout and rule.
enum { PRESET = -1 };

static const path PATHS[] = {
    {"e4m3 per_tensor",    "e4m3",  {QG_LAYOUT_PER_TENSOR, 0, 0}, QG_RULE_AMAX},
    {"e4m3 per_row",       "e4m3",  {QG_LAYOUT_PER_ROW, 0, 0},    QG_RULE_AMAX},
    {"mxfp8",              "mxfp8", {0, 0, 0},                    PRESET      },
    {"mxfp4",              "mxfp4", {0, 0, 0},                    PRESET      },
    {"nvfp4",              "nvfp4", {0, 0, 0},                    PRESET      },
    {"e4m3 group:128",     "e4m3",  {QG_LAYOUT_GROUP, 0, 128},    QG_RULE_AMAX},
    {"e4m3 block:128x128", "e4m3",  {QG_LAYOUT_BLOCK, 128, 128},  QG_RULE_AMAX},
};
enum { PATH_COUNT = sizeof PATHS / sizeof *PATHS };

static operand quantized(const path *q, int64_t size, const float *x) {
    operand o = {.tensor_scale = 1.0f};
    qg_shape shape;
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32};
    qg_status status = qg_recipe_find(q->recipe, &o.recipe);
    if (status == QG_OK && q->rule != PRESET)
        status = qg_recipe_set_layout(&o.recipe, q->layout);
    if (status == QG_OK && q->rule != PRESET)
        status = qg_recipe_set_rule(&o.recipe, q->rule, 0.0f);
    if (status == QG_OK)
        status = qg_shape_of(&o.recipe, size, size, &shape);
    if (status != QG_OK)
        fail(q->name);
    o.codes = room(shape.codes_size);
    o.scales = room(shape.scales_size);
    if (qg_emulator_quantize(&o.recipe, &options, size, size, x, o.codes, o.scales, &o.tensor_scale,
                             NULL) != QG_OK)
        fail(q->name);
    return o;
}

static double time_path(const work *w, const operand *a, const operand *b, const char *name,
                        const char **impl) {
    qg_matmul_options options = {QG_FORMAT_FP32, NULL, w->threads, false};
    qg_matmul_operand in_a = {&a->recipe, a->codes, a->scales, a->tensor_scale};
    qg_matmul_operand in_b = {&b->recipe, b->codes, b->scales, b->tensor_scale};
    double start = seconds();
    if (qg_cpu_scaled_matmul(NULL, &options, w->size, w->size, w->size, &in_a, &in_b, w->out,
                             impl) != QG_OK)
        fail(name);
    return seconds() - start;
}

// ------------------------------------------------------------------------------------------ the ta

static int by_value(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count & 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

// Times of one product; sorted by the median.
typedef struct times {
    double seconds[ROUNDS_MAX];
} times;

static void print_row(const work *w, const char *name, const char *impl, times *own,
                      const times *bf16, const times *sgemm, int rounds, int tsv) {
    double to_bf16[ROUNDS_MAX], to_sgemm[ROUNDS_MAX];
    for (int i = 0; i < rounds; i++) {
        to_bf16[i] = bf16->seconds[i] / own->seconds[i];
        to_sgemm[i] = sgemm->seconds[i] / own->seconds[i];
    }
    times sorted = *own, best_bf16 = *bf16, best_sgemm = *sgemm;
    double middle = median(sorted.seconds, rounds), best = sorted.seconds[0];
    median(best_bf16.seconds, rounds);
    median(best_sgemm.seconds, rounds);
    double work_done = 2e-9 * (double)w->size * (double)w->size * (double)w->size;
    printf(tsv ? "%s\t%s\t%ld\t%d\t%.1f\t%.1f\t%.4f\t%.4f\t%.4f\t%.4f\n"
               : "%-20s %-14s %5ld %2d %8.1f %8.1f %8.3f %8.3f %8.3f %8.3f\n",
           name, impl, (long)w->size, w->threads, work_done / best, work_done / middle,
           best_bf16.seconds[0] / best, median(to_bf16, rounds), best_sgemm.seconds[0] / best,
           median(to_sgemm, rounds));
    fflush(stdout);
}

// OpenBLAS's and OpenMP's workers spin for a while after a call, on cores that the next one needs.
static void settle(const work *w) {
    if (w->threads > 1)
        nanosleep(&(struct timespec){0, 40000000}, NULL);
}

static void bench(work *w, int rounds, const char *only, int tsv) {
    static times sgemm, bf16, own[PATH_COUNT];
    operand a[PATH_COUNT], b[PATH_COUNT];
    const char *impl[PATH_COUNT];
    limit_library(w->threads);
    open_library(w);
    for (int i = 0; i < PATH_COUNT; i++) {
        a[i] = quantized(&PATHS[i], w->size, w->x);
        b[i] = quantized(&PATHS[i], w->size, w->y);
        if (strstr(PATHS[i].name, only))
            time_path(w, &a[i], &b[i], PATHS[i].name, &impl[i]);
    }
    time_sgemm(w);
    time_bf16(w);
    for (int r = 0; r < rounds; r++) {
        sgemm.seconds[r] = time_sgemm(w);
        for (int i = 0; i < PATH_COUNT; i++)
            if (strstr(PATHS[i].name, only)) {
                settle(w);
                own[i].seconds[r] = time_path(w, &a[i], &b[i], PATHS[i].name, &impl[i]);
            }
        settle(w);
        bf16.seconds[r] = time_bf16(w);
    }
    print_row(w, "sgemm", "openblas", &sgemm, &bf16, &sgemm, rounds, tsv);
    print_row(w, "bf16 matmul", "onednn", &bf16, &bf16, &sgemm, rounds, tsv);
    for (int i = 0; i < PATH_COUNT; i++) {
        if (strstr(PATHS[i].name, only))
            print_row(w, PATHS[i].name, impl[i], &own[i], &bf16, &sgemm, rounds, tsv);
        free(a[i].codes), free(a[i].scales), free(b[i].codes), free(b[i].scales);
    }
    close_library(w);
}

static void bench_size(work *w, int rounds, const char *only, int tsv, const int64_t *threads,
                       int thread_counts) {
    int64_t count = w->size * w->size;
    w->x = room(count * 4), w->y = room(count * 4), w->out = room(count * 4);
    w->x_bf16 = room(count * 2), w->y_bf16 = room(count * 2);
    uint64_t state = 88172645463325252ull;
    for (int64_t i = 0; i < count; i++) {
        float *at[2] = {&w->x[i], &w->y[i]};
        uint16_t *narrow[2] = {&w->x_bf16[i], &w->y_bf16[i]};
        for (int j = 0; j < 2; j++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            *at[j] = (float)(int32_t)(state >> 16) * 0x1p-31f;
            *narrow[j] = (uint16_t)(qg_bits_of_float(*at[j]) >> 16);
        }
    }
    for (int i = 0; i < thread_counts; i++) {
        w->threads = (int)threads[i];
        bench(w, rounds, only, tsv);
    }
    free(w->x), free(w->y), free(w->out), free(w->x_bf16), free(w->y_bf16);
}

// OpenBLAS reads its variables before main: without them it takes its own choice for this machine.
static void start_without_openblas_settings(char **argv) {
    if (!getenv("OPENBLAS_CORETYPE") && !getenv("OPENBLAS_L2_SIZE"))
        return;
    unsetenv("OPENBLAS_CORETYPE");
    unsetenv("OPENBLAS_L2_SIZE");
    execv("/proc/self/exe", argv);
    perror("bench_matmul: OPENBLAS_CORETYPE, OPENBLAS_L2_SIZE");
    exit(5);
}

// "512,1024": how many numbers, all within 1 .. most; 0 for anything else.
static int parse_list(const char *text, int64_t most, int64_t out[LIST_MAX]) {
    int count = 0;
    for (char *end; count < LIST_MAX; text = end + 1) {
        out[count] = strtoll(text, &end, 10);
        if (end == text || out[count] < 1 || out[count] > most)
            return 0;
        count++;
        if (*end != ',')
            return *end ? 0 : count;
    }
    return 0;
}

int main(int argc, char **argv) {
    start_without_openblas_settings(argv);
    char *sizes = NULL, *threads = NULL, *only = NULL;
    int rounds = 7, tsv = 0, cpu_time = 0;
    // clang-format off
    const struct poptOption options[] = {
        {"sizes", 's', POPT_ARG_STRING, &sizes, 0, "m = n = k (default: 512,1024,2048)", "N,N"},
        {"threads", 't', POPT_ARG_STRING, &threads, 0, "counts of threads (default: 1,2)", "N,N"},
        {"rounds", 'r', POPT_ARG_INT | POPT_ARGFLAG_SHOW_DEFAULT, &rounds, 0, "rounds", "N"},
        {"only", 0, POPT_ARG_STRING, &only, 0, "products whose name contains TEXT", "TEXT"},
        {"cpu-time", 0, POPT_ARG_NONE, &cpu_time, 0,
         "the calling thread's CPU time: for one thread on a busy machine", NULL},
        {"tsv", 0, POPT_ARG_NONE, &tsv, 0, "print a table for programs", NULL},
        POPT_AUTOHELP POPT_TABLEEND};
    // clang-format on
    poptContext context = poptGetContext("bench_matmul", argc, (const char **)argv, options, 0);
    int64_t size_list[LIST_MAX], thread_list[LIST_MAX];
    int rest = poptGetNextOpt(context);
    int size_count = parse_list(sizes ? sizes : "512,1024,2048", 32768, size_list);
    int thread_count = parse_list(threads ? threads : "1,2", 1024, thread_list);
    const char *wrong = rest < -1                           ? poptBadOption(context, 0)
                        : poptPeekArg(context)              ? poptPeekArg(context)
                        : !size_count                       ? "--sizes"
                        : !thread_count                     ? "--threads"
                        : rounds < 1 || rounds > ROUNDS_MAX ? "--rounds"
                                                            : NULL;
    if (wrong) {
        fprintf(stderr, "bench_matmul: %s: wrong option or value; --help lists the options\n",
                wrong);
        return 2;
    }
    poptFreeContext(context);
    if (cpu_time)
        the_clock = CLOCK_THREAD_CPUTIME_ID;
    if (qg_init() != QG_OK || qg_cpu_use_isa(NULL) != QG_OK)
        fail("start");
    printf(tsv ? "product\timpl\tsize\tthreads\tgflops_best\tgflops_median\tto_bf16_best\t"
                 "to_bf16_median\tto_sgemm_best\tto_sgemm_median\n"
               : "%-20s %-14s %5s %2s %8s %8s %8s %8s %8s %8s\n",
           "product", "impl", "size", "t", "GFLOP/s", "median", "/ bf16", "median", "/ sgemm",
           "median");
    for (int i = 0; i < size_count; i++) {
        work w = {.size = size_list[i]};
        bench_size(&w, rounds, only ? only : "", tsv, thread_list, thread_count);
    }
    free(sizes), free(threads), free(only);
    return 0;
}
