// Products of binary32 panels: OpenBLAS, or a loop. See cpu_matmul_internal.h.
#include <cpu_matmul_internal.h>

#ifdef QG_HAVE_OPENBLAS
#include <cblas.h>
#endif

int qg_matmul_test_paths = 0;

// Sixteen running sums: a compiler makes vectors of them without re-associating anything.
static float dot(int64_t length, const float *a, const float *b) {
    enum { LANES = 16 };
    float lanes[LANES] = {0};
    int64_t l = 0;
    for (; l + LANES <= length; l += LANES)
        for (int i = 0; i < LANES; i++)
            lanes[i] = lanes[i] + a[l + i] * b[l + i];
    for (int i = 0; l < length; l++, i++)
        lanes[i] = lanes[i] + a[l] * b[l];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lanes[i] = lanes[i] + lanes[i + half];
    return lanes[0];
}

static void multiply_by_loop(int64_t rows, int64_t columns, int64_t length, bool adds,
                             const float *a, const float *b, float *c) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float *sum = &c[i * columns + j];
            float part = dot(length, a + i * length, b + j * length);
            *sum = adds ? *sum + part : part;
        }
}

#ifdef QG_HAVE_OPENBLAS

static bool uses_openblas(void) { return !(qg_matmul_test_paths & MATMUL_WITHOUT_OPENBLAS); }

int qg_matmul_fp32_enter(void) {
    int saved = openblas_get_num_threads();
    if (saved != 1)
        openblas_set_num_threads(1);
    return saved;
}

void qg_matmul_fp32_leave(int saved) {
    if (saved != 1)
        openblas_set_num_threads(saved);
}

const char *qg_matmul_fp32_name(void) { return uses_openblas() ? "openblas fp32" : "loop fp32"; }

void qg_matmul_fp32_run(int64_t rows, int64_t columns, int64_t length, bool adds, const float *a,
                        const float *b, float *c) {
    if (!uses_openblas()) {
        multiply_by_loop(rows, columns, length, adds, a, b, c);
        return;
    }
    // At most FP32_ROWS, FP32_COLUMNS, FP32_LENGTH.
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows, (blasint)columns,
                (blasint)length, 1.0f, a, (blasint)length, b, (blasint)length, adds ? 1.0f : 0.0f,
                c, (blasint)columns);
}

#else

int qg_matmul_fp32_enter(void) { return 1; }
void qg_matmul_fp32_leave(int saved) { (void)saved; }
const char *qg_matmul_fp32_name(void) { return "loop fp32"; }

void qg_matmul_fp32_run(int64_t rows, int64_t columns, int64_t length, bool adds, const float *a,
                        const float *b, float *c) {
    multiply_by_loop(rows, columns, length, adds, a, b, c);
}

#endif
