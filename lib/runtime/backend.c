// The backend table. See qg_backend.h.
#include <qg_cpu.h>
#include <qg_cuda.h>
#include <storage_internal.h>

#include <string.h>

static const char *always_answers(void) { return NULL; }

static void name_variant(const char **impl, const char *name) {
    if (impl)
        *impl = name;
}

static qg_status quantize_by_emulator(const qg_recipe *recipe, const qg_quantize_options *options,
                                      const qg_storage *storage, int64_t m, int64_t k,
                                      const void *x, uint8_t *codes, uint8_t *scales,
                                      float *tensor_scale, const char **impl) {
    name_variant(impl, "emulator");
    return emulated_quantize(recipe, options, storage, m, k, x, codes, scales, tensor_scale);
}

static qg_status silu_quantize_by_emulator(const qg_recipe *recipe,
                                           const qg_quantize_options *options,
                                           const qg_storage *storage, int64_t m, int64_t k,
                                           const void *gate, const void *up, uint8_t *codes,
                                           uint8_t *scales, float *tensor_scale,
                                           const char **impl) {
    name_variant(impl, "emulator");
    return emulated_silu_quantize(recipe, options, storage, m, k, gate, up, codes, scales,
                                  tensor_scale);
}

static qg_status dequantize_by_emulator(const qg_recipe *recipe, const qg_storage *storage,
                                        int64_t m, int64_t k, const uint8_t *codes,
                                        const uint8_t *scales, float tensor_scale, int threads,
                                        float *q, const char **impl) {
    name_variant(impl, "emulator");
    return emulated_dequantize(recipe, storage, m, k, codes, scales, tensor_scale, threads, q);
}

static qg_status multiply_by_emulator(const qg_unit *unit, const qg_matmul_options *options,
                                      int64_t m, int64_t n, int64_t k, const qg_matmul_operand *a,
                                      const qg_matmul_operand *b, void *out, const char **impl) {
    if (!unit)
        return qg_fail(QG_ERROR_ARGUMENT, "the emulator multiplies on a modelled unit: name one");
    return qg_emulator_scaled_matmul(unit, options, m, n, k, a, b, out, impl);
}

static const qg_backend backends[] = {
    {
     .name = "emulator",
     .summary = "the specification: scalar, every recipe and unit",
     .unavailable = always_answers,
     .quantize = quantize_by_emulator,
     .silu_quantize = silu_quantize_by_emulator,
     .dequantize = dequantize_by_emulator,
     .scaled_matmul = multiply_by_emulator,
     },
    {
     .name = "cpu",
     .summary = "the emulator's bytes by scalar, AVX2 or AVX-512 code",
     .unavailable = always_answers,
     .quantize = qg_cpu_quantize,
     .silu_quantize = qg_cpu_silu_quantize,
     .dequantize = qg_cpu_dequantize,
#ifdef QG_HAVE_CPU_MATMUL
     .scaled_matmul = qg_cpu_scaled_matmul,
     .matmul_bound = qg_cpu_matmul_bound,
     .matmul_underflow = qg_cpu_matmul_underflow,
#endif
     },
    {
     .name = "cuda",
     .summary = "the emulator's bytes by kernels on a GPU, products by cuBLASLt",
     .unavailable = qg_cuda_unavailable,
     .quantize = qg_cuda_backend_quantize,
     .dequantize = qg_cuda_backend_dequantize,
     .scaled_matmul = qg_cuda_backend_scaled_matmul,
     .silu_quantize = qg_cuda_backend_silu_quantize,
     },
};

const qg_backend *qg_backend_at(size_t i) {
    return i < sizeof backends / sizeof backends[0] ? &backends[i] : NULL;
}

const qg_backend *qg_backend_find(const char *name) {
    for (size_t i = 0; name && qg_backend_at(i); i++)
        if (strcmp(backends[i].name, name) == 0)
            return &backends[i];
    return NULL;
}
