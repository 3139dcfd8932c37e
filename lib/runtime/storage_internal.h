// The forms in which tensors come and go, one function each: input types widened, codes packed.
#ifndef STORAGE_INTERNAL_H
#define STORAGE_INTERNAL_H

#include <qg_backend.h>

// What every backend refuses before it quantizes.
qg_status storage_check_options(const qg_recipe *recipe, const qg_quantize_options *options,
                                const qg_shape *shape, const float *tensor_scale);

// Of rule `delayed`.
float storage_history_amax(const qg_quantize_options *options);

// Whether codes of `bits` bits are stored packed.
bool storage_packs(const qg_storage *storage, int bits);

// x: (count) of bf16 or fp16, widened exactly; NaN keeps its payload, so that magnitudes stay in
// the order of their bits.
void storage_widen(qg_format type, const void *x, int64_t count, float *wide);

// codes: (m, k) bytes of one plane; stored: m rows of row_bytes.
void storage_pack_rows(int bits, int64_t m, int64_t k, const uint8_t *codes, int64_t row_bytes,
                       uint8_t *stored);
void storage_unpack_rows(int bits, int64_t m, int64_t k, const uint8_t *stored, int64_t row_bytes,
                         uint8_t *codes);

// Through the emulator: x widened and codes and scales stored from and to temporary buffers.
qg_status emulated_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                            const qg_storage *storage, int64_t m, int64_t k, const void *x,
                            uint8_t *codes, uint8_t *scales, float *tensor_scale);
qg_status emulated_silu_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                                 const qg_storage *storage, int64_t m, int64_t k, const void *gate,
                                 const void *up, uint8_t *codes, uint8_t *scales,
                                 float *tensor_scale);
qg_status emulated_dequantize(const qg_recipe *recipe, const qg_storage *storage, int64_t m,
                              int64_t k, const uint8_t *codes, const uint8_t *scales,
                              float tensor_scale, int threads, float *q);

#endif
