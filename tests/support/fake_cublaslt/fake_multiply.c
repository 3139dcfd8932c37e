// The product that descriptors describe, from the documentation's words: column-major matrices,
// scales by mode, one rounding of a sum in double to binary32, one to D.
#include "fake_internal.h"

#include <math.h>
#include <string.h>

// ----------------------------------------------------------------------------------------- numbers

// A float of 1 sign, e exponent and m mantissa bits without regard to special values.
static double decode_bits(unsigned code, int e, int m, int bias) {
    unsigned exponent = code >> m & ((1u << e) - 1), fraction = code & ((1u << m) - 1);
    double magnitude = exponent ? ldexp((double)(fraction + (1u << m)), (int)exponent - bias - m)
                                : ldexp((double)fraction, 1 - bias - m);
    return code >> (e + m) & 1 ? -magnitude : magnitude;
}

static double decode_e4m3(unsigned code) {
    return (code & 0x7f) == 0x7f ? NAN : decode_bits(code, 4, 3, 7);
}

static double decode_e5m2(unsigned code) {
    if ((code & 0x7f) > 0x7c)
        return NAN;
    return (code & 0x7f) == 0x7c ? (code & 0x80 ? -INFINITY : INFINITY)
                                 : decode_bits(code, 5, 2, 15);
}

static double element(const void *matrix, int type, int64_t i) {
    const uint8_t *bytes = matrix;
    uint16_t narrow;
    float wide;
    switch (type) {
    case TYPE_E4M3: return decode_e4m3(bytes[i]);
    case TYPE_E5M2: return decode_e5m2(bytes[i]);
    case TYPE_E2M1: return decode_bits(bytes[i / 2] >> (i % 2 * 4) & 15u, 2, 1, 1);
    case TYPE_BF16: memcpy(&narrow, bytes + 2 * i, 2); return decode_bits(narrow, 8, 7, 127);
    case TYPE_FP16: memcpy(&narrow, bytes + 2 * i, 2); return decode_bits(narrow, 5, 10, 15);
    default: memcpy(&wide, bytes + 4 * i, 4); return (double)wide;
    }
}

// x to m mantissa bits with exponents from `least` on, ties to even.
static double round_to(double x, int m, int least) {
    int exponent;
    if (x == 0 || !isfinite(x))
        return x;
    (void)frexp(x, &exponent);
    int unit = (exponent - 1 < least ? least : exponent - 1) - m;
    return ldexp(nearbyint(ldexp(x, -unit)), unit);
}

// The code of a value that is one, or infinity: the inverse of decode_bits.
static unsigned encode_bits(double x, int e, int m, int bias) {
    const unsigned sign = signbit(x) ? 1u << (e + m) : 0, top = ((1u << e) - 1) << m;
    const double magnitude = fabs(x), one = ldexp(1.0, m);
    int exponent;
    if (x != x)
        return sign | top | ((1u << m) - 1);
    if (e != 4 && magnitude >= ldexp(1.0, (1 << e) - 1 - bias)) // E4M3 uses its top exponent
        return sign | top;
    (void)frexp(magnitude, &exponent);
    if (magnitude == 0 || exponent - 1 < 1 - bias)
        return sign | (unsigned)ldexp(magnitude, bias - 1 + m);
    const unsigned field = (unsigned)(exponent - 1 + bias) << m;
    return sign | (field + (unsigned)(ldexp(magnitude, m - exponent + 1) - one));
}

static uint8_t encode_fp8(double x, int type) {
    const double most = type == TYPE_E4M3 ? 448 : 57344;
    double y = type == TYPE_E4M3 ? round_to(x, 3, -6) : round_to(x, 2, -14);
    y = y > most ? most : y < -most ? -most : y;
    return (uint8_t)(type == TYPE_E4M3 ? encode_bits(y, 4, 3, 7) : encode_bits(y, 5, 2, 15));
}

static void store(void *matrix, int type, int64_t i, float x) {
    uint8_t *bytes = matrix;
    uint16_t narrow = 0;
    switch (type) {
    case TYPE_E4M3:
    case TYPE_E5M2: bytes[i] = encode_fp8((double)x, type); return;
    case TYPE_BF16: narrow = (uint16_t)encode_bits(round_to((double)x, 7, -126), 8, 7, 127); break;
    case TYPE_FP16: narrow = (uint16_t)encode_bits(round_to((double)x, 10, -14), 5, 10, 15); break;
    default: memcpy(bytes + 4 * i, &x, 4); return;
    }
    memcpy(bytes + 2 * i, &narrow, 2);
}

// ------------------------------------------------------------------------------------------ scales

// Offset of scale (outer, inner) in 512-byte tiles of 128 x 4, from the documentation's figure.
static int64_t tile_offset(int64_t outer, int64_t inner, int64_t inner_count) {
    int64_t tiles = (inner_count + 3) / 4, tile = outer / 128 * tiles + inner / 4;
    int64_t row = outer % 128;
    return tile * 512 + row % 32 * 16 + row / 32 * 4 + inner % 4;
}

static double byte_scale(const void *scales, int64_t offset, int mode) {
    unsigned code = ((const uint8_t *)scales)[offset];
    if (mode == VEC16)
        return decode_e4m3(code & 0x7f);
    return code == 255 ? NAN : ldexp(1.0, (int)code - 127);
}

// The scale of element k of the `outer`-th vector along K of an operand with `outers` of them.
static double scale_at(const void *scales, int mode, int64_t outer, int64_t outers, int64_t k,
                       int64_t depth) {
    int64_t offset = 0;
    if (!scales)
        return 1;
    switch (mode) {
    case VEC16: return byte_scale(scales, tile_offset(outer, k / 16, (depth + 15) / 16), mode);
    case VEC32: return byte_scale(scales, tile_offset(outer, k / 32, (depth + 31) / 32), mode);
    case OUTER_VEC: offset = outer; break;
    case VEC128: offset = k / 128 * outers + outer; break;
    case BLK128: offset = outer / 128 * (((depth + 127) / 128 + 3) / 4 * 4) + k / 128; break;
    default: break;
    }
    float value;
    memcpy(&value, (const char *)scales + 4 * offset, 4);
    return (double)value;
}

// ----------------------------------------------------------------------------------------- product

// op(X)(i, k): vectors along K are columns where the operand is contiguous in K.
static double along_k(const void *matrix, const fake_layout *layout, bool k_is_row, int64_t i,
                      int64_t k) {
    int64_t at = k_is_row ? i * layout->leading + k : k * layout->leading + i;
    return element(matrix, layout->type, at);
}

static double dot(const fake_problem *p, const void *a, const void *b, int64_t i, int64_t j) {
    const fake_desc *desc = p->desc;
    const bool a_k = desc->trans_a == 1, b_k = desc->trans_b == 0;
    const int64_t depth = (int64_t)(a_k ? p->a->rows : p->a->columns);
    const int64_t m = (int64_t)p->d->rows, n = (int64_t)p->d->columns;
    double sum = 0;
    for (int64_t k = 0; k < depth; k++)
        sum += along_k(a, p->a, a_k, i, k) * scale_at(desc->a_scale, desc->a_mode, i, m, k, depth) *
               along_k(b, p->b, b_k, j, k) * scale_at(desc->b_scale, desc->b_mode, j, n, k, depth);
    return sum;
}

void fake_multiply(const fake_problem *p, float alpha, const void *a, const void *b, float beta,
                   const void *c, void *d) {
    const double d_scale = p->desc->d_scale ? scale_at(p->desc->d_scale, SCALAR, 0, 1, 0, 1) : 1;
    for (int64_t j = 0; j < (int64_t)p->d->columns; j++)
        for (int64_t i = 0; i < (int64_t)p->d->rows; i++) {
            double value = (double)alpha * dot(p, a, b, i, j);
            if (beta != 0)
                value += (double)beta * element(c, p->c->type, j * p->c->leading + i);
            store(d, p->d->type, j * p->d->leading + i, (float)(value * d_scale));
        }
}
