// Backends: who performs quantize, dequantize and multiply. One table, in qg_backend_listed's order.
//
// `emulator` is the specification; `cpu` gives the same bytes at the speed of memory, and products
// whose order of summation is a library's own; `cuda` does both on a GPU (qg_cuda.h). Buffers are
// the caller's; `impl` names the variant that ran, for provenance: a text that stays until the
// thread's next call. No I/O.
#ifndef QG_BACKEND_H
#define QG_BACKEND_H

#include <qg_emulator.h>
#include <qg_scale_order.h>
#include <qg_unit.h>

QG_EXTERN_C_BEGIN

// How codes and scales lie in memory. All zero: as in qg_emulator.h, codes unpacked, scales
// row-major and unpadded.
typedef struct qg_storage {
    bool packed;          // codes of 4 and 6 bits as qg_pack.h, each row padded to whole bytes (4
                          // bits) or three bytes (6 bits), padding 0
    qg_scale_order order; // of the block scales; padding 0, every byte written
} qg_storage;

// Bytes of the codes of a row, of all codes and of all scales under a storage.
typedef struct qg_storage_shape {
    qg_shape shape; // of the recipe, unpacked and unpadded
    int64_t row_bytes;
    int64_t codes_size, scales_size;
} qg_storage_shape;

// Errors: those of qg_shape_of; QG_ERROR_UNSUPPORTED: a scale order other than row_major for the
// scale fields of pair-shift and residual recipes.
qg_status qg_storage_shape_of(const qg_recipe *recipe, const qg_storage *storage, int64_t m,
                              int64_t k, qg_storage_shape *out);

typedef struct qg_backend {
    const char *name;    // "cpu"
    const char *summary; // for --help
    // NULL, or why the backend does not answer here.
    const char *(*unavailable)(void);

    // x: (m, k) row-major of options->input_type: float, or uint16_t of bf16 and fp16. The other
    // arguments and the errors as qg_emulator_quantize; impl may be NULL.
    qg_status (*quantize)(const qg_recipe *recipe, const qg_quantize_options *options,
                          const qg_storage *storage, int64_t m, int64_t k, const void *x,
                          uint8_t *codes, uint8_t *scales, float *tensor_scale, const char **impl);

    // quantize of the bf16 that SiLU(gate) times up is (qg_silu.h): the recipe sees input type
    // bf16. gate, up: (m, k) of options->input_type. Also QG_ERROR_MEMORY. NULL: not there.
    qg_status (*silu_quantize)(const qg_recipe *recipe, const qg_quantize_options *options,
                               const qg_storage *storage, int64_t m, int64_t k, const void *gate,
                               const void *up, uint8_t *codes, uint8_t *scales, float *tensor_scale,
                               const char **impl);

    // q: (m, k) binary32, as qg_emulator_dequantize.
    qg_status (*dequantize)(const qg_recipe *recipe, const qg_storage *storage, int64_t m,
                            int64_t k, const uint8_t *codes, const uint8_t *scales,
                            float tensor_scale, int threads, float *q, const char **impl);

    // out: (m, n) of options->out_type. `unit`: a modelled unit for the emulator, `native` (NULL)
    // for the others. Operands are stored as the emulator stores them.
    qg_status (*scaled_matmul)(const qg_unit *unit, const qg_matmul_options *options, int64_t m,
                               int64_t n, int64_t k, const qg_matmul_operand *a,
                               const qg_matmul_operand *b, void *out, const char **impl);

    // What holds products of `native`, as qg_cpu_matmul_bound and qg_cpu_matmul_underflow. Both
    // NULL: nothing is known of them, and nothing is judged.
    double (*matmul_bound)(const qg_recipe *a, const qg_recipe *b, int64_t k, qg_format out_type);
    double (*matmul_underflow)(int64_t k, qg_format out_type);
} qg_backend;

// The i-th backend, NULL past the end; that of a name, NULL for NULL or another word.
const qg_backend *qg_backend_at(size_t i);
const qg_backend *qg_backend_find(const char *name);

QG_EXTERN_C_END

#endif
