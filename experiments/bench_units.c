// Multiply-adds per second of the fused-sum kernels, beside OpenBLAS sgemm in the same run (where
// the build found OpenBLAS; else its columns are nan).
//
// For each size, thread count and unit: packing and decoding included, best and median over rounds
// in which every path runs once, sgemm right before and after, so that load on the machine falls on
// all alike. Only the ratios carry over to other machines. "public" is the same product through
// qg_emulator_scaled_matmul: quantized operands in, scales, promotion and epilogue, binary32 out.
// Options: --sizes 256,512 --threads 1,2 --rounds N --only TEXT --tsv --cpu-time (the calling
// thread's CPU time instead of wall time: for one thread on a busy machine). QG_ISA caps the
// kernels. OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are taken out of the environment.
#include <fused_problem_internal.h>
#include <isa_choice.h>
#include <message.h>
#include <qg_recipe_name.h>
#include <qg_unit.h>

#include <math.h>
#include <popt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_thread_num(void) { return 0; }
#endif

#ifdef QG_HAVE_OPENBLAS
#include <cblas.h>
#endif

typedef struct path {
    const char *name;
    qg_format a, b;
    int length, bits, result, floor, group;
    qg_format scale;
    int scale_block;
    int64_t promote;
    int scaled, pairs;
    const char *unit, *recipe_a, *recipe_b; // of the public product
} path;

enum { FP32 = QG_FUSED_RZ_FP32, E8M13 = QG_FUSED_RZ_E8M13 };

// clang-format off
#define F(name) QG_FORMAT_##name
static const path PATHS[] = {
    {"hopper_e4m3", F(E4M3), F(E4M3), 32, 13, E8M13, -133, 0, 0, 0, 0, 0, 0,
     "hopper_wgmma", "e4m3", "e4m3"},
    {"hopper_e5m2_e4m3", F(E5M2), F(E4M3), 32, 13, E8M13, -133, 0, 0, 0, 0, 0, 0,
     "hopper_wgmma", "e5m2", "e4m3"},
    {"hopper_e4m3+promote:128", F(E4M3), F(E4M3), 32, 13, E8M13, -133, 0, 0, 0, 128, 0, 0,
     "hopper_wgmma+promote:128", "e4m3", "e4m3"},
    {"hopper_e4m3+scaled:128", F(E4M3), F(E4M3), 32, 13, E8M13, -133, 0, 0, 0, 128, 1, 0,
     "hopper_wgmma+promote:128", "deepseek_act128", "deepseek_w128x128"},
    {"ada_e4m3", F(E4M3), F(E4M3), 16, 13, E8M13, -132, 0, 0, 0, 0, 0, 0,
     "ada_mma", "e4m3", "e4m3"},
    {"blackwell_mx_e4m3", F(E4M3), F(E4M3), 32, 25, FP32, -133, 0, F(E8M0), 32, 0, 0, 0,
     "blackwell_mx", "mxfp8", "mxfp8"},
    {"blackwell_e4m3", F(E4M3), F(E4M3), 32, 25, FP32, -133, 0, 0, 0, 0, 0, 0,
     "blackwell_tcgen05", "e4m3", "e4m3"},
    {"hopper_mma_e4m3", F(E4M3), F(E4M3), 16, 25, FP32, -133, 0, 0, 0, 0, 0, 1,
     "hopper_mma_fp8", "e4m3", "e4m3"},
    {"hopper_fp16", F(FP16), F(FP16), 16, 25, FP32, -133, 0, 0, 0, 0, 0, 0,
     "hopper_mma", "fp16", "fp16"},
    {"hopper_bf16", F(BF16), F(BF16), 16, 25, FP32, -133, 0, 0, 0, 0, 0, 0,
     "hopper_mma", "bf16", "bf16"},
    {"ampere_fp16", F(FP16), F(FP16), 8, 24, FP32, -132, 0, 0, 0, 0, 0, 0,
     "ampere_mma", "fp16", "fp16"},
    {"hopper_tf32", F(TF32), F(TF32), 8, 25, FP32, -133, 0, 0, 0, 0, 0, 0,
     "hopper_mma", "tf32", "tf32"},
    {"volta_fp16", F(FP16), F(FP16), 4, 23, FP32, -131, 0, 0, 0, 0, 0, 0,
     "volta_mma", "fp16", "fp16"},
    {"nvfp4", F(E2M1), F(E2M1), 64, 35, FP32, -139, 16, F(UE4M3), 16, 0, 0, 0,
     "blackwell_mxf4", "nvfp4", "nvfp4"},
};
// clang-format on
enum { PATH_COUNT = sizeof PATHS / sizeof *PATHS, ROUNDS_MAX = 64 };

static clockid_t the_clock = CLOCK_MONOTONIC;

static double seconds(void) {
    struct timespec t;
    clock_gettime(the_clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t state = 88172645463325252ull;

static uint32_t draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16);
}

// Codes spread over a dozen binades around 1, both signs; finite.
static void fill(void *out, qg_format format, int64_t count) {
    qg_format_info info = qg_format_describe(format);
    int range = info.ebits <= 4 ? (int)info.max_code + 1 : 12 << info.mbits;
    int start = info.ebits <= 4 ? 0 : (info.bias - 8) << info.mbits;
    for (int64_t i = 0; i < count; i++) {
        uint32_t code = (uint32_t)start + draw() % (uint32_t)range;
        code = (code | (draw() & 1) << (info.ebits + info.mbits)) << info.shift;
        switch (qg_format_code_bytes(&info)) {
        case 1: ((uint8_t *)out)[i] = (uint8_t)code; break;
        case 2: ((uint16_t *)out)[i] = (uint16_t)code; break;
        default: ((uint32_t *)out)[i] = code;
        }
    }
}

static int by_value(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count & 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

typedef struct work {
    int64_t size;
    float *x, *y, *z;
    uint8_t *a, *b, *sa, *sb;
    float *scale;
    void *space;
    size_t room;
} work;

#ifdef QG_HAVE_OPENBLAS
static double time_sgemm(const work *w) {
    int s = (int)w->size;
    double start = seconds();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, s, s, s, 1, w->x, s, w->y, s, 0, w->z, s);
    return seconds() - start;
}
#else
static double time_sgemm(const work *w) { return w->size ? (double)NAN : 0; }
static void openblas_set_num_threads(int threads) { (void)threads; }
static const char *openblas_get_corename(void) { return "not in this build"; }
#endif

// The data give the kernels nothing to leave out.
static int64_t left_out;

static void count_left_out(const qg_fused_problem *problem, int64_t row, int64_t column,
                           int64_t count) {
    (void)problem, (void)row, (void)column;
#pragma omp atomic
    left_out += count;
}

// The CPUs this process may use; on and off: each OpenMP thread on its own, or the calling thread
// anywhere, as OpenBLAS expects it. Otherwise a scheduler may keep two threads that wake for a
// millisecond on one core.
static cpu_set_t all_cpus;

static void pin_threads(int threads, int on) {
    (void)threads; // without OpenMP
    if (!on) {
        sched_setaffinity(0, sizeof all_cpus, &all_cpus);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        int skip = omp_get_thread_num() % CPU_COUNT(&all_cpus);
        size_t cpu = 0;
        while (!CPU_ISSET(cpu, &all_cpus) || skip-- > 0)
            cpu++;
        cpu_set_t own;
        CPU_ZERO(&own);
        CPU_SET(cpu, &own);
        sched_setaffinity(0, sizeof own, &own);
    }
}

static qg_isa isa = QG_ISA_AVX512;

static qg_fused_problem problem_of(const path *q, const work *w, int threads) {
    int64_t s = w->size;
    qg_fused_problem p = {.m = s, .n = s, .k = s, .d = w->z};
    qg_format_info fa = qg_format_describe(q->a), fb = qg_format_describe(q->b);
    p.a = (qg_fused_operand){q->a, w->a, s * qg_format_code_bytes(&fa), NULL, 0};
    p.b = (qg_fused_operand){q->b, w->b, s * qg_format_code_bytes(&fb), NULL, 0};
    p.length = q->length, p.bits = q->bits;
    p.result = q->result, p.floor = q->floor, p.group = q->group, p.scale_format = q->scale;
    p.pairs = q->pairs;
    p.scale_block = q->scale_block, p.promote = q->promote, p.threads = threads;
    p.fallback = count_left_out;
    if (q->scale) {
        p.a.scales = w->sa, p.b.scales = w->sb;
        p.a.scale_stride = p.b.scale_stride = (s + q->scale_block - 1) / q->scale_block;
    }
    if (q->scaled)
        p.row_scale = p.column_scale = w->scale;
    return p;
}

static void fill_operands(const path *q, const work *w) {
    int64_t s = w->size;
    state = 88172645463325252ull;
    fill(w->a, q->a, s * s);
    fill(w->b, q->b, s * s);
    for (int64_t i = 0; i < s * s / 16; i++)
        w->sa[i] = (uint8_t)(q->scale == F(E8M0) ? 120 + draw() % 12 : 1 + draw() % 0x7E),
        w->sb[i] = (uint8_t)(q->scale == F(E8M0) ? 120 + draw() % 12 : 1 + draw() % 0x7E);
}

static double time_kernel(const qg_fused_kernel *kernel, const qg_fused_problem *p, void *space) {
    double start = seconds();
    kernel->run(p, space);
    return seconds() - start;
}

static qg_recipe recipe_of(const char *name) {
    qg_recipe recipe;
    if (qg_recipe_find(name, &recipe) != QG_OK) {
        fprintf(stderr, "bench_units: %s\n", qg_detail());
        exit(1);
    }
    return recipe;
}

// The public product of the same codes; scales of four bytes are those of promotion.
static double time_public(const path *q, const work *w, int threads) {
    qg_recipe a = recipe_of(q->recipe_a), b = recipe_of(q->recipe_b);
    const uint8_t *wide = (const uint8_t *)w->scale;
    qg_matmul_operand in[2] = {
        {&a, w->a, q->scale ? w->sa : wide, 1},
        {&b, w->b, q->scale ? w->sb : wide, 1}
    };
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .threads = threads};
    qg_unit unit;
    qg_status status = qg_unit_parse(q->unit, &unit);
    double start = seconds();
    if (status == QG_OK)
        status = qg_emulator_scaled_matmul(&unit, &options, w->size, w->size, w->size, &in[0],
                                           &in[1], w->z, NULL);
    if (status != QG_OK) {
        fprintf(stderr, "bench_units: %s: %s\n", q->name, qg_detail());
        exit(1);
    }
    return seconds() - start;
}

typedef struct times {
    double kernel[ROUNDS_MAX], whole[ROUNDS_MAX], blas[ROUNDS_MAX]; // whole: the public product
    double kernel_ratio[ROUNDS_MAX], whole_ratio[ROUNDS_MAX];
} times;

static void time_round(const path *q, const qg_fused_kernel *kernel, const qg_fused_problem *p,
                       const work *w, times *t, int i) {
    double before = time_sgemm(w);
    // OpenBLAS's workers spin for some 25 ms after a call, on the cores that run() needs.
    if (p->threads > 1) {
        nanosleep(&(struct timespec){0, 40000000}, NULL);
        pin_threads(p->threads, 1);
    }
    t->kernel[i] = time_kernel(kernel, p, w->space);
    t->whole[i] = time_public(q, w, p->threads);
    if (p->threads > 1)
        pin_threads(p->threads, 0);
    double after = time_sgemm(w);
    t->blas[i] = before < after ? before : after;
    t->kernel_ratio[i] = t->blas[i] / t->kernel[i];
    t->whole_ratio[i] = t->blas[i] / t->whole[i];
}

static void report(const path *q, const char *kernel, const work *w, int threads, int rounds,
                   times *t, int tsv) {
    double s = (double)w->size, work_done = s * s * s * 1e-9;
    // median sorts: the best is then first.
    double kernel_ratio = median(t->kernel_ratio, rounds);
    double whole_ratio = median(t->whole_ratio, rounds);
    double own = median(t->kernel, rounds), whole = median(t->whole, rounds);
    double blas = median(t->blas, rounds);
    if (tsv)
        printf("%s\t%s\t%ld\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.4f\t%.4f\t%.2f\t%.2f\t%.4f\t%.4f\n",
               q->name, kernel, (long)w->size, threads, work_done / t->kernel[0], work_done / own,
               work_done / t->blas[0], work_done / blas, t->blas[0] / t->kernel[0], kernel_ratio,
               work_done / t->whole[0], work_done / whole, t->blas[0] / t->whole[0], whole_ratio);
    else
        printf("%-23s %-10s %5ld %2d %6.1f %6.1f %6.3f %6.3f %6.3f %6.3f\n", q->name, kernel,
               (long)w->size, threads, work_done / t->blas[0], work_done / t->kernel[0],
               t->blas[0] / t->kernel[0], kernel_ratio, t->blas[0] / t->whole[0], whole_ratio);
    fflush(stdout);
}

static void bench_path(const path *q, work *w, int threads, int rounds, int tsv) {
    qg_fused_problem p = problem_of(q, w, threads);
    const qg_fused_kernel *kernel = qg_fused_kernel_choose(&p, isa);
    if (!kernel)
        return;
    fill_operands(q, w);
    if (kernel->workspace(&p) > w->room) {
        free(w->space);
        w->room = (kernel->workspace(&p) + 4095) / 4096 * 4096;
        w->space = aligned_alloc(4096, w->room);
    }
    openblas_set_num_threads(threads);
    time_kernel(kernel, &p, w->space);
    time_sgemm(w);
    times t;
    for (int i = 0; i < rounds; i++)
        time_round(q, kernel, &p, w, &t, i);
    report(q, kernel->name, w, threads, rounds, &t, tsv);
}

static int next_number(const char **text) {
    char *end;
    int value = (int)strtol(*text, &end, 10);
    *text = *end ? end + 1 : end;
    return value;
}

// OpenBLAS reads its variables before main: without them it takes its own choice for this machine.
static void start_without_openblas_settings(char **argv) {
    if (!getenv("OPENBLAS_CORETYPE") && !getenv("OPENBLAS_L2_SIZE"))
        return;
    unsetenv("OPENBLAS_CORETYPE");
    unsetenv("OPENBLAS_L2_SIZE");
    execv("/proc/self/exe", argv);
    perror("bench_units: OPENBLAS_CORETYPE, OPENBLAS_L2_SIZE");
    exit(5);
}

// What QG_ISA allows; unset, what the processor has.
static qg_isa isa_cap(void) {
    int code = qg_isa_choose(NULL);
    if (code)
        exit(code);
    return (qg_isa)qg_isa_find(qg_unit_isa());
}

typedef struct options {
    const char *sizes, *threads, *only;
    int rounds, tsv, cpu_time;
} options;

// -1, or the exit code to end with.
static int read_options(int argc, char **argv, options *o) {
    struct poptOption table[] = {
        {"sizes",    's', POPT_ARG_STRING, &o->sizes,    0, "m = n = k (default: 256 to 2048)", "LIST"},
        {"threads",  't', POPT_ARG_STRING, &o->threads,  0, "thread counts (default: 1,2)",     "LIST"},
        {"only",     'o', POPT_ARG_STRING, &o->only,     0, "paths whose name holds TEXT",      "TEXT"},
        {"rounds",   'r', POPT_ARG_INT,    &o->rounds,   0, "rounds (default: 7)",              "N"   },
        {"tsv",      0,   POPT_ARG_NONE,   &o->tsv,      0, "tab-separated values",             NULL  },
        {"cpu-time", 0,   POPT_ARG_NONE,   &o->cpu_time, 0, "processor time of the thread",     NULL  },
        POPT_AUTOHELP POPT_TABLEEND
    };
    poptContext context = poptGetContext("bench_units", argc, (const char **)argv, table, 0);
    int code = poptGetNextOpt(context);
    const char *word = code < -1 ? poptBadOption(context, 0) : poptPeekArg(context);
    int stop = word ? 2 : -1;
    if (word)
        fprintf(stderr, "bench_units: %s: %s; --help lists the options\n", word,
                code < -1 ? poptStrerror(code) : "no such argument");
    poptFreeContext(context);
    return stop;
}

int main(int argc, char **argv) {
    start_without_openblas_settings(argv);
    qg_message_program("bench_units");
    isa = isa_cap();
    options o = {"256,512,1024,2048", "1,2", "", 7, 0, 0};
    int stop = read_options(argc, argv, &o);
    if (stop >= 0)
        return stop;
    if (o.cpu_time)
        the_clock = CLOCK_THREAD_CPUTIME_ID;
    sched_getaffinity(0, sizeof all_cpus, &all_cpus);
    o.rounds = o.rounds < 1 ? 1 : o.rounds > ROUNDS_MAX ? ROUNDS_MAX : o.rounds;
    if (!o.tsv)
        printf("G multiply-adds/s at best; ratios to sgemm, best and median, of the kernel and of\n"
               "qg_emulator_scaled_matmul; OpenBLAS core: %s\n"
               "%-23s %-10s %5s %2s %6s %6s %13s %13s\n",
               openblas_get_corename(), "path", "kernel", "size", "t", "sgemm", "kernel",
               "kernel/sgemm", "matmul/sgemm");
    else
        printf("path\tkernel\tsize\tthreads\tbest\tmedian\tsgemm_best\tsgemm_median\tratio_best\t"
               "ratio_median\tpublic_best\tpublic_median\tpublic_ratio_best\t"
               "public_ratio_median\n");
    for (const char *at = o.sizes; *at;) {
        work w = {.size = next_number(&at)};
        size_t count = (size_t)(w.size * w.size);
        w.x = malloc(count * 4), w.y = malloc(count * 4), w.z = malloc(count * 4);
        w.a = malloc(count * 4), w.b = malloc(count * 4);
        w.sa = malloc(count), w.sb = malloc(count), w.scale = malloc(count * 4);
        for (size_t i = 0; i < count; i++) {
            w.x[i] = (float)(int32_t)draw() * 0x1p-31f, w.y[i] = (float)(int32_t)draw() * 0x1p-31f;
            w.scale[i] = 1 + (float)(draw() & 0xFFFF) * 0x1p-16f;
        }
        int runs = o.rounds;
        if (w.size <= 512)
            runs = o.rounds * 4 < ROUNDS_MAX ? o.rounds * 4 : ROUNDS_MAX;
        for (const char *t = o.threads; *t;) {
            int count_threads = next_number(&t);
            for (int i = 0; i < PATH_COUNT; i++)
                if (strstr(PATHS[i].name, o.only))
                    bench_path(&PATHS[i], &w, count_threads, runs, o.tsv);
        }
        free(w.x), free(w.y), free(w.z), free(w.a), free(w.b), free(w.sa), free(w.sb);
        free(w.scale), free(w.space);
    }
    if (left_out) {
        fprintf(stderr, "bench_units: the kernels left out elements: rates are too high\n");
        return 1;
    }
    return 0;
}
