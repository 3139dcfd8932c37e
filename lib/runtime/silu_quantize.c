// SiLU(gate) times up, then its bf16 quantized: of the emulator and of the CPU runtime. See
// qg_backend.h. The bf16 tensor in between is a temporary buffer.
#include <cpu_kernels_internal.h>
#include <cpu_run_internal.h>
#include <qg_cpu.h>
#include <qg_init.h>
#include <qg_memory.h>
#include <qg_silu.h>
#include <storage_internal.h>

enum { PIECE = 1024 }; // elements activated between two buffers, or by a thread at a time

// What is quantized, and the options under which it is.
typedef struct activated {
    uint16_t *r; // (m, k) of bf16
    qg_quantize_options options;
} activated;

static qg_status activated_open(const qg_recipe *recipe, const qg_quantize_options *options,
                                const qg_storage *storage, int64_t m, int64_t k,
                                const float *tensor_scale, activated *a) {
    qg_storage_shape stored;
    void *r = NULL;
    *a = (activated){.options = *options};
    a->options.input_type = QG_FORMAT_BF16;
    qg_status status = qg_storage_shape_of(recipe, storage, m, k, &stored);
    if (status == QG_OK)
        status = storage_check_options(recipe, options, &stored.shape, tensor_scale);
    if (status == QG_OK)
        status = qg_allocate(&r, m * k, (int64_t)sizeof(uint16_t), "activated elements");
    a->r = r;
    return status;
}

// --------------------------------------------------------------------------------------- emulator

static qg_status activate_by_emulator(qg_format type, const void *gate, const void *up,
                                      int64_t count, uint16_t *out) {
    int64_t bytes = type == QG_FORMAT_FP32 ? 4 : 2;
    float r[PIECE];
    for (int64_t first = 0; first < count; first += PIECE) {
        int64_t length = count - first < PIECE ? count - first : PIECE;
        qg_status status = qg_emulator_silu_times_up(
            length, type, (const char *)gate + first * bytes, (const char *)up + first * bytes, r);
        if (status != QG_OK)
            return status;
        for (int64_t i = 0; i < length; i++)
            out[first + i] = (uint16_t)(qg_bits_of_float(r[i]) >> 16);
    }
    return QG_OK;
}

qg_status emulated_silu_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                                 const qg_storage *storage, int64_t m, int64_t k, const void *gate,
                                 const void *up, uint8_t *codes, uint8_t *scales,
                                 float *tensor_scale) {
    activated a;
    qg_status status = activated_open(recipe, options, storage, m, k, tensor_scale, &a);
    if (status == QG_OK)
        status = activate_by_emulator(options->input_type, gate, up, m * k, a.r);
    if (status == QG_OK)
        status =
            emulated_quantize(recipe, &a.options, storage, m, k, a.r, codes, scales, tensor_scale);
    qg_release(a.r);
    return status;
}

// -------------------------------------------------------------------------------------------- cpu

static int input_index(qg_format type) {
    return type == QG_FORMAT_FP32 ? INPUT_FP32 : type == QG_FORMAT_BF16 ? INPUT_BF16 : INPUT_FP16;
}

static void activate_share(int type, const void *gate, const void *up, int64_t count, uint16_t *out,
                           int member, int team) {
    qg_fp_state saved = qg_fp_enter();
    for (int64_t first = (int64_t)member * PIECE; first < count; first += (int64_t)team * PIECE)
        for (int64_t i = first; i < first + PIECE && i < count; i++) {
            float r = qg_silu_times_up(cpu_element(type, gate, i), cpu_element(type, up, i));
            out[i] = (uint16_t)(qg_bits_of_float(r) >> 16);
        }
    qg_fp_leave(saved);
}

// A team may be smaller than asked for.
static void activate(qg_format input_type, const void *gate, const void *up, int64_t count,
                     int threads, uint16_t *out) {
    int type = input_index(input_type);
    threads = thread_count(threads, count);
    if (threads == 1) {
        activate_share(type, gate, up, count, out, 0, 1);
        return;
    }
#pragma omp parallel num_threads(threads)
    activate_share(type, gate, up, count, out, thread_index(), thread_team());
}

qg_status qg_cpu_silu_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                               const qg_storage *storage, int64_t m, int64_t k, const void *gate,
                               const void *up, uint8_t *codes, uint8_t *scales, float *tensor_scale,
                               const char **impl) {
    activated a;
    qg_status status = activated_open(recipe, options, storage, m, k, tensor_scale, &a);
    if (status == QG_OK) {
        activate(options->input_type, gate, up, m * k, options->threads, a.r);
        status = qg_cpu_quantize(recipe, &a.options, storage, m, k, a.r, codes, scales,
                                 tensor_scale, impl);
    }
    qg_release(a.r);
    return status;
}
