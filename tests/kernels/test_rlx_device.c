// Statements R8 and R11 of RLX and its known defect 14, each test named after its own, on the
// module that runs on the host and the library in cuBLASLt's place.
//   R8  r08_the_device_gives_the_same_codes_scales_and_values
//   R11 r11_per_tensor_fp8_on_a_capable_device_goes_to_the_library, r11_..._fall_back
//   14  d14_what_the_library_rejects_is_refused_before_it_is_called
//       d14_a_bias_is_fp32_for_fp32_outputs, d14_nothing_is_left_behind_on_early_returns
// (The whole table of what the library takes: test_product_capability. One heuristic per call is
// what the library's interface asks for and is kept; that the GPU kernels are written for their
// speed, which is the rest of 15, no test here can show.)
#include "product_case.h"
#include "rlx_product_fault.h"

#include <rlx_graph.h>
#include <run_suite.h>

#include <unistd.h>

// ------------------------------------------------------------------------------------- the backend

// For one device per process.
static void start(const char *architecture, const char *library) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    ck_assert_int_gt(length, 0);
    path[length] = 0;
    char *end = strrchr(path, '/') + 1;
    snprintf(end, (size_t)(path + sizeof path - end), "quantgauge_cuda_shim.so");
    setenv("QG_CUDA_MODULE", path, 1);
    setenv("QG_CUBLASLT", library, 1);
    setenv("QG_SHIM_ARCH", architecture, 1);
    const char *why = qg_backend_find("cuda")->unavailable();
    REQUIRE(!why, "%s", why);
}

// ---------------------------------------------------------------------------------------------- R8

START_TEST(r08_the_device_gives_the_same_codes_scales_and_values) {
    enum { ROWS = 6, COLUMNS = 40 };
    float x[ROWS * COLUMNS], values[2][ROWS * COLUMNS];
    start("90", fake_path());
    for (int i = 0; i < RLX_SWEEP * RLX_LAYOUTS; i++) {
        const char *text = rlx_recipe_text(rlx_sweep[i / RLX_LAYOUTS], i % RLX_LAYOUTS);
        const char *const backends[] = {"emulator", "cuda"};
        rlx_quantized q[2];
        rlx_hard((uint64_t)i, ROWS * COLUMNS, x);
        for (int b = 0; b < 2; b++) {
            q[b] = rlx_quantize(backends[b], text, ROWS, COLUMNS, x);
            RLX_OK(qg_backend_find(backends[b])
                       ->dequantize(&q[b].recipe, NULL, ROWS, COLUMNS, q[b].codes, q[b].scales, 1,
                                    1, values[b], NULL));
        }
        ck_assert_int_eq(memcmp(q[0].codes, q[1].codes, (size_t)q[0].shape.codes_size), 0);
        ck_assert_int_eq(memcmp(q[0].scales, q[1].scales, (size_t)q[0].shape.scales_size), 0);
        ck_assert_int_eq(memcmp(values[0], values[1], sizeof x), 0);
        rlx_discard(&q[0]);
        rlx_discard(&q[1]);
    }
}
END_TEST

// --------------------------------------------------------------------------------------------- R11

// Runs the product on the backend cuda, checks it, and tells what ran.
static void run_product_of(const char *lhs, const char *rhs, int64_t m, int64_t k, int64_t n,
                           bool biased, char impl[256]) {
    float *x = malloc((size_t)(m * k) * 4), *w = malloc((size_t)(n * k) * 4);
    float *bias = malloc((size_t)n * 4);
    rlx_ordinary(1, m * k, x);
    rlx_ordinary(2, n * k, w);
    rlx_ordinary(3, n, bias);
    qg_graph *graph = rlx_graph();
    qg_node added = biased ? qg_graph_constant(graph, "bias", qg_tensor(QG_DTYPE_FP32, 1, n), bias)
                           : QG_NODE_NONE;
    qg_node y = qg_graph_scaled_matmul(
        graph, qg_graph_quantize(graph, rlx_input(graph, "x", m, k), lhs),
        qg_graph_quantize(graph, rlx_input(graph, "w", n, k), rhs), added, QG_DTYPE_FP32);
    qg_graph_output(graph, qg_graph_name(graph, y, "y"));
    RLX_OK(qg_graph_status(graph));
    const qg_graph_feed feeds[] = {
        {"x", x},
        {"w", w}
    };
    qg_graph_runner *runner = rlx_run(graph, "cuda", NULL, 2, feeds);
    // Any order of binary32 additions, and the scales' two roundings, are within this bound.
    rlx_expect_product(graph, runner, "y", "cuda", "fp32_fma", biased ? bias : NULL);
    snprintf(impl, 256, "%s", qg_graph_runner_impl(runner, y));
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
    free(x);
    free(w);
    free(bias);
}

static void expect_library(const char *lhs, const char *rhs) {
    char impl[256];
    for (int biased = 0; biased < 2; biased++) {
        run_product_of(lhs, rhs, 16, 64, 32, biased, impl);
        ck_assert_msg(strncmp(impl, "cublaslt: ", 10) == 0, "%s by %s: %s", lhs, rhs, impl);
    }
}

static void expect_fallback(const char *lhs, const char *rhs, int64_t m, int64_t k, int64_t n,
                            const char *reason) {
    char impl[256];
    for (int biased = 0; biased < 2; biased++) {
        run_product_of(lhs, rhs, m, k, n, biased, impl);
        ck_assert_msg(strncmp(impl, "fp32_fma: ", 10) == 0 && strstr(impl, reason), "%s by %s: %s",
                      lhs, rhs, impl);
    }
}

START_TEST(r11_per_tensor_fp8_on_a_capable_device_goes_to_the_library) {
    start("90", fake_path());
    expect_library("rlx_e4m3", "rlx_e4m3");
    expect_library("rlx_e4m3", "e5m2/per_tensor/amax");
    expect_library("e5m2/per_tensor/amax", "rlx_e4m3");
}
END_TEST

// The eight formats in the three layouts, both sides alike, of any shape: never an abort.
START_TEST(r11_every_other_combination_falls_back) {
    start("90", fake_path());
    for (int f = 0; f < RLX_SWEEP; f++)
        for (int layout = 0; layout < RLX_LAYOUTS; layout++)
            if (f > 0 || layout > 0) {
                const char *text = rlx_recipe_text(rlx_sweep[f], layout);
                expect_fallback(text, text, 16, 64, 32, "");
            }
    expect_fallback("rlx_e4m3", "rlx_mxfp8", 16, 64, 32, "no such pair of layouts");
    expect_fallback("rlx_e4m3", "rlx_e4m3", 18, 40, 20, "n = 20 is no multiple of 16");
    expect_fallback("rlx_e4m3", "rlx_e4m3", 37, 80, 45, "n = 45 is no multiple of 16");
    expect_fallback("rlx_e4m3", "rlx_e4m3", 3, 7, 5, "is no multiple of 16");
}
END_TEST

START_TEST(r11_a_device_without_fp8_falls_back) {
    start("80", fake_path());
    expect_fallback("rlx_e4m3", "rlx_e4m3", 16, 64, 32, "needs sm_89, this is sm_80");
}
END_TEST

START_TEST(r11_without_the_library_products_fall_back) {
    start("90", "/nonexistent/libcublasLt.so");
    expect_fallback("rlx_e4m3", "rlx_e4m3", 16, 64, 32, "cuBLASLt was not loaded");
}
END_TEST

// The library's product and one that falls back, in one graph.
START_TEST(r11_each_product_of_a_graph_tells_what_ran) {
    enum { M = 16, K = 64, N = 32 };
    float x[M * K], w[N * K];
    start("90", fake_path());
    rlx_ordinary(1, M * K, x);
    rlx_ordinary(2, N * K, w);
    qg_graph *graph = rlx_graph();
    qg_node nodes[2], left = rlx_input(graph, "x", M, K), right = rlx_input(graph, "w", N, K);
    for (int i = 0; i < 2; i++) {
        const char *recipe = i ? "rlx_mxfp8" : "rlx_e4m3";
        nodes[i] = qg_graph_scaled_matmul(graph, qg_graph_quantize(graph, left, recipe),
                                          qg_graph_quantize(graph, right, recipe), QG_NODE_NONE,
                                          QG_DTYPE_FP32);
        qg_graph_output(graph, nodes[i]);
    }
    const qg_graph_feed feeds[] = {
        {"x", x},
        {"w", w}
    };
    qg_graph_runner *runner = rlx_run(graph, "cuda", NULL, 2, feeds);
    ck_assert_int_eq(strncmp(qg_graph_runner_impl(runner, nodes[0]), "cublaslt: ", 10), 0);
    ck_assert_int_eq(strncmp(qg_graph_runner_impl(runner, nodes[1]), "fp32_fma: ", 10), 0);
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}
END_TEST

// ---------------------------------------------------------------------------------------------- 14

static lt_library library;

// A product that succeeded or not: what it asked the library, and what it left there.
typedef struct outcome {
    bool failed;
    int heuristics, live;
    char text[QG_CUDA_TEXT];
} outcome;

static outcome by_module(product_case *c) {
    qg_cuda_error error = {""};
    int before = fake_last()->heuristics, live = fake_live();
    outcome o = {.failed = product_run(&c->p, NULL, &error) != QG_OK};
    o.heuristics = fake_last()->heuristics - before;
    o.live = fake_live() - live;
    memcpy(o.text, error.text, sizeof o.text);
    return o;
}

static outcome by_rlx(product_case *c) {
    int before = fake_last()->heuristics, live = fake_live();
    rlx_fault_objects kept = {0};
    outcome o = {.failed = !rlx_fault_multiply(&library, &c->p, &kept)};
    o.heuristics = fake_last()->heuristics - before;
    o.live = fake_live() - live;
    rlx_fault_free(&library, &kept);
    return o;
}

static void open_both(int32_t architecture) {
    open_fake(architecture);
    ck_assert(lt_load(&library));
    ck_assert_int_eq(library.create(&library.handle), 0);
}

// Refused, with a reason, and the library was not bothered.
static bool is_refused_beforehand(outcome o) {
    return o.failed && o.heuristics == 0 && o.live == 0 && o.text[0];
}

typedef struct rejected {
    const char *a, *b;
    int32_t architecture;
    int64_t m, n, k;
} rejected;

START_TEST(d14_what_the_library_rejects_is_refused_before_it_is_called) {
    static const rejected products[] = {
        {"te_e5m2",  "te_e5m2",  90, 16, 16, 32 },
        {"rlx_e4m3", "rlx_e4m3", 90, 16, 16, 100},
        {"rlx_e4m3", "rlx_e4m3", 90, 16, 63, 32 },
        {"rlx_e4m3", "rlx_e4m3", 80, 16, 16, 32 },
    };
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const rejected *r = &products[i];
        open_both(r->architecture);
        product_case c = case_of(r->a, r->b, r->m, r->n, r->k, QG_FORMAT_FP32, 0);
        ck_assert(is_refused_beforehand(by_module(&c)));
        ck_assert(!is_refused_beforehand(by_rlx(&c)));
        ck_assert_int_eq(library.destroy(library.handle), 0);
        free_case(&c);
    }
}
END_TEST

// Elements that differ from the sum with this bias by more than binary32 additions may.
static int elements_off(const product_case *c, const float *bias) {
    int off = 0;
    for (int64_t i = 0; i < c->p.m * c->p.n; i++) {
        double sum = (double)bias[i % c->p.n], size = fabs(sum);
        for (int64_t j = 0; j < c->p.k; j++) {
            double product =
                c->a.values[i / c->p.n * c->p.k + j] * c->b.values[i % c->p.n * c->p.k + j];
            sum += product;
            size += fabs(product);
        }
        off += fabs(load_value(QG_FORMAT_FP32, c->p.out, i) - sum) > size * 0x1p-22;
    }
    return off;
}

// The library would take a bias of bf16 there: it is told of none, and all of its 24 bits are
// added.
START_TEST(d14_a_bias_is_fp32_for_fp32_outputs) {
    open_fake(90);
    product_case c = case_of("rlx_e4m3", "rlx_e4m3", 4, 16, 32, QG_FORMAT_FP32, CASE_BIAS);
    outcome o = by_module(&c);
    ck_assert_msg(!o.failed && o.heuristics == 1, "%s", o.text);
    ck_assert_int_eq(elements_off(&c, c.bias), 0);
    float narrow[16];
    for (int j = 0; j < 16; j++)
        narrow[j] = qg_float_of_bits(qg_bits_of_float(c.bias[j]) & 0xffff0000u);
    ck_assert_int_gt(elements_off(&c, narrow), 0);
    free_case(&c);
}
END_TEST

// Creations and attributes that fail one after the other, until the product succeeds.
static int most_left_behind(outcome (*multiply)(product_case *), product_case *c) {
    int most = 0;
    for (int i = 1; i < 100; i++) {
        char what[20];
        snprintf(what, sizeof what, "object:%d", i);
        fake_fail(what);
        outcome o = multiply(c);
        most = o.live > most ? o.live : most;
        if (!o.failed)
            break;
    }
    fake_fail("");
    return most;
}

START_TEST(d14_nothing_is_left_behind_on_early_returns) {
    open_both(90);
    product_case c = case_of("rlx_e4m3", "rlx_e4m3", 4, 16, 32, QG_FORMAT_FP32, 0);
    ck_assert_int_eq(most_left_behind(by_module, &c), 0);
    ck_assert_int_eq(most_left_behind(by_rlx, &c), 4); // all but the preference
    free_case(&c);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        r08_the_device_gives_the_same_codes_scales_and_values,
        r11_per_tensor_fp8_on_a_capable_device_goes_to_the_library,
        r11_every_other_combination_falls_back,
        r11_a_device_without_fp8_falls_back,
        r11_without_the_library_products_fall_back,
        r11_each_product_of_a_graph_tells_what_ran,
        d14_what_the_library_rejects_is_refused_before_it_is_called,
        d14_a_bias_is_fp32_for_fp32_outputs,
        d14_nothing_is_left_behind_on_early_returns,
    };
    return RUN_SUITE("rlx_device", tests);
}
