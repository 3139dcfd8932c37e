// The CPU runtime: the emulator's bytes at the speed of memory. See qg_backend.h for the arguments.
//
// Scalar, AVX2 and AVX-512 variants of the same inner loops; QG_ISA or qg_cpu_use_isa caps the
// choice. Bytes do not depend on variant or threads. What has no vector form (a rule, a format, an
// edge of a block) runs through the functions of qg_block_scale.h, element by element.
// Products dequantize exactly to BF16 or binary32 and multiply with oneDNN or OpenBLAS, or with a
// plain loop where neither is: the order of summation is theirs, so a derived bound holds them.
#ifndef QG_CPU_H
#define QG_CPU_H

#include <qg_backend.h>

QG_EXTERN_C_BEGIN

// Chooses the variants of this floor and, by qg_unit_use_isa, those of the matrix units. NULL: what
// QG_ISA says, else the best of this processor. Statuses as qg_unit_use_isa. Not thread-safe.
qg_status qg_cpu_use_isa(const char *isa);

qg_status qg_cpu_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                          const qg_storage *storage, int64_t m, int64_t k, const void *x,
                          uint8_t *codes, uint8_t *scales, float *tensor_scale, const char **impl);

qg_status qg_cpu_silu_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                               const qg_storage *storage, int64_t m, int64_t k, const void *gate,
                               const void *up, uint8_t *codes, uint8_t *scales, float *tensor_scale,
                               const char **impl);

qg_status qg_cpu_dequantize(const qg_recipe *recipe, const qg_storage *storage, int64_t m,
                            int64_t k, const uint8_t *codes, const uint8_t *scales,
                            float tensor_scale, int threads, float *q, const char **impl);

// What quantize, dequantize and multiply run for a recipe, one line: "avx512: rceil, e4m3 rne" or
// "scalar: stochastic". For --verbose and tests.
void qg_cpu_plan_text(const qg_recipe *recipe, qg_format input_type, char *text, size_t size);

qg_status qg_cpu_scaled_matmul(const qg_unit *unit, const qg_matmul_options *options, int64_t m,
                               int64_t n, int64_t k, const qg_matmul_operand *a,
                               const qg_matmul_operand *b, void *out, const char **impl);

// Grouped (expert-indexed) product: rows of a are cut into groups by `offsets` (groups + 1,
// ascending, offsets[0] = 0, offsets[groups] = m), and rows offsets[g] .. offsets[g+1] - 1 are
// multiplied by b[expert[g]], each an (n, k) operand. Empty groups are fine.
qg_status qg_cpu_grouped_matmul(const qg_matmul_options *options, int64_t m, int64_t n, int64_t k,
                                const qg_matmul_operand *a, int64_t groups, const int64_t *offsets,
                                const int64_t *expert, int64_t experts, const qg_matmul_operand *b,
                                void *out, const char **impl);

// |out - exact| <= bound (|a| |b|^T + |bias|) + underflow, element by element, exact the product of
// the dequantized operands, for what qg_cpu_scaled_matmul does with these recipes, as long as the
// right side stays below what binary32 and the output type hold. `bound` is derived from k, where
// the scales enter and the output type; `underflow` is what rounding to subnormals may cost.
// The derivation is beside the code.
double qg_cpu_matmul_bound(const qg_recipe *a, const qg_recipe *b, int64_t k, qg_format out_type);
double qg_cpu_matmul_underflow(int64_t k, qg_format out_type);

QG_EXTERN_C_END

#endif
