// RLX's numerical defects, one function each, written from their description in words: what a check
// is worth shows on them. Numbers are those of the list of its defects (test_rlx_defects_values.c).
#ifndef RLX_FAULTS_H
#define RLX_FAULTS_H

#include <rlx_check.h>

// 1, 7: the code of least |value - x| in binary64; among equals one whose lowest bit is 0, else the
// first. Large x swallow the difference, and -0 is never first. Infinity: the largest; NaN: code 0.
uint64_t rlx_fault_encode(const slow_format *format, double x);

// 2, 6: ceil(log2f(raw)) + 127 within 0 .. 254, and 0 for what is not finite or not above 0.
uint8_t rlx_fault_e8m0(float raw);
// The same with a log2f that is rounded correctly, which no library's is.
uint8_t rlx_fault_e8m0_at_best(float raw);

// 2 to 6: its quantizer in a layout of rlx_layouts. Scales are made for the format `scaled_for`;
// codes are written in `written_as`: another one where the platform calls it by the same name (3).
rlx_quantized rlx_fault_quantize(const char *scaled_for, const char *written_as, int layout,
                                 int64_t m, int64_t k, const float *x);

// 4: codes of whatever format read as E4M3.
void rlx_fault_read_as_e4m3(rlx_quantized *q);

// 8: whether the cosine of what was computed with what was wanted reaches a threshold, and no more.
bool rlx_fault_gate(int64_t count, const float *wanted, const float *got, double threshold);

// 9: the product with every operand scaled before it is multiplied, in binary32, K ascending, the
// bias (or NULL) added last. out: (m, n).
void rlx_fault_product(const rlx_quantized *lhs, const rlx_quantized *rhs, const float *bias,
                       float *out);

// 15: a count of elements in 32 bits.
uint32_t rlx_fault_elements(int64_t m, int64_t k);

// 16: whether it has a recipe of this text: the layouts of rlx_layouts on its own formats.
bool rlx_fault_has_recipe(const char *text);

#endif
