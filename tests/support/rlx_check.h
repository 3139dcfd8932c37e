// What the tests of RLX's statements and defects share: its formats and layouts by name, tensors
// quantized on a backend, and their values read back by the independent model of the formats.
#ifndef RLX_CHECK_H
#define RLX_CHECK_H

#include <qg_backend.h>
#include <slow_model.h>

enum { RLX_NAMED = 7, RLX_MINIFLOATS = 28, RLX_SWEEP = 8, RLX_LAYOUTS = 3 };

// The seven hardware formats; the 28 all-finite ones (f<1+X+Y>e<X>m<Y>, the five that collide with
// a hardware format with their bias written out); the eight of the sweep: the seven and f4e3m0.
extern const char *const rlx_named[RLX_NAMED];
const char *rlx_minifloat(int i);
extern const char *const rlx_sweep[RLX_SWEEP];

// per_tensor, MX in blocks of 32 with rounded-up scales, NVFP4's groups of 16 without tensor scale.
extern const char *const rlx_layouts[RLX_LAYOUTS];

// "e4m3/group:32/rceil": a format in a layout, as qg_recipe_parse reads it. Overwritten by the call
// after next.
const char *rlx_recipe_text(const char *format, int layout);
qg_recipe rlx_recipe(const char *text);

// ------------------------------------------------------------------------------------ quantization

typedef struct rlx_quantized {
    qg_recipe recipe;
    qg_shape shape;
    uint8_t *codes, *scales;
    float tensor_scale;
    slow_format *format; // of the elements
} rlx_quantized;

rlx_quantized rlx_quantize(const char *backend, const char *recipe, int64_t m, int64_t k,
                           const float *x);
void rlx_discard(rlx_quantized *q);

// X of an element, from the stored bytes: not for pair shifts.
float rlx_scale_of(const rlx_quantized *q, int64_t row, int64_t column);
// The value of an element before its last rounding: code times scale, exactly; the sum of both
// planes of a residual recipe.
double rlx_value_of(const rlx_quantized *q, int64_t row, int64_t column);

// ----------------------------------------------------------------------------------------- tensors

// What RLX tests with: two smooth sines, a of (4, 64) and b of (8, 64) there.
void rlx_smooth(int64_t count, double frequency, float *x);
// What it does not: denormals, -0, +-1e30, ties, magnitudes over many binades.
void rlx_hard(uint64_t seed, int64_t count, float *x);
// Magnitudes within a few binades, of both signs.
void rlx_ordinary(uint64_t seed, int64_t count, float *x);

// ---------------------------------------------------------------------------------------- products

// The sum of products of two operands as they are dequantized (binary32), lhs (m, k) and rhs (n,
// k), in long double, and the sum of magnitudes.
typedef struct rlx_sum {
    long double value, magnitude;
} rlx_sum;
rlx_sum rlx_dot(const rlx_quantized *lhs, int64_t row, const rlx_quantized *rhs, int64_t column);

// The emulator's product on a unit, +promote added where the layouts need it. bias may be NULL.
void rlx_multiply(const char *unit, const rlx_quantized *lhs, const rlx_quantized *rhs,
                  const float *bias, float *out);

#endif
