// The number formats: one table, from which the enum, the descriptors, the names and the static
// assertions come.
//
// A code is a magnitude with an optional sign bit above it (floats), or two's complement
// (integers).
// Magnitudes are ordered like the numbers they stand for, so rounding up is adding one to the code.
// Knows nothing of scales or memory. C and CUDA. Exact.
// Sources: OCP OFP8 and MX v1.0 (E4M3, E5M2, E2M3, E3M2, E2M1, E8M0, MXINT8); ml_dtypes (FNUZ,
// E3M4, IEEE-style E4M3); P3109 interim report v4.0, 4.7 (binary8p*); IEEE 754-2019.
#ifndef QG_FORMAT_H
#define QG_FORMAT_H

#include <qg_bits.h>
#include <qg_hd.h>
#include <stdint.h>

// Identifies a format: a row of the table (QG_FORMAT_E4M3, ...) or an all-finite minifloat
// (qg_format_minifloat).
typedef uint32_t qg_format;

enum { QG_KIND_FLOAT = 0, QG_KIND_INT = 1 };

// Which codes are NaN beyond those above the largest finite magnitude and infinity.
enum {
    QG_NAN_NONE = 0, // no NaN: every code is a number (or infinity)
    QG_NAN_ONES = 1, // magnitudes above max_code and infinity; canonical: all ones
    QG_NAN_SLOT = 2  // the one code that would be -0
};

// What overflow gives when the conversion does not saturate.
enum { QG_OVERFLOWS_TO_MAX = 0, QG_OVERFLOWS_TO_INF = 1, QG_OVERFLOWS_TO_NAN = 2 };

enum { QG_NO_INF = 0 };

// X(ID, name, kind, bits, sign, ebits, mbits, bias, max_code, inf_code, nan, overflow, zero, shift)
//   bits      width of a stored code; sign: has a sign bit (integers: is signed)
//   bias      exponent bias; integers: binary digits after the point
//   max_code  magnitude code of the largest finite value
//   inf_code  magnitude code of infinity, or QG_NO_INF
//   zero      has a zero (E8M0 has none: its code 0 is 2^-127)
//   shift     unused low bits of a stored code (TF32 lies in the top 19 of 32)
#define QG_FORMAT_TABLE(X)                                                                         \
    X(E4M3, "e4m3", FLOAT, 8, 1, 4, 3, 7, 0x7E, QG_NO_INF, ONES, NAN, 1, 0)                        \
    X(E5M2, "e5m2", FLOAT, 8, 1, 5, 2, 15, 0x7B, 0x7C, ONES, INF, 1, 0)                            \
    X(E4M3FNUZ, "e4m3fnuz", FLOAT, 8, 1, 4, 3, 8, 0x7F, QG_NO_INF, SLOT, NAN, 1, 0)                \
    X(E5M2FNUZ, "e5m2fnuz", FLOAT, 8, 1, 5, 2, 16, 0x7F, QG_NO_INF, SLOT, NAN, 1, 0)               \
    X(E4M3B11FNUZ, "e4m3b11fnuz", FLOAT, 8, 1, 4, 3, 11, 0x7F, QG_NO_INF, SLOT, NAN, 1, 0)         \
    X(E4M3_IEEE, "e4m3_ieee", FLOAT, 8, 1, 4, 3, 7, 0x77, 0x78, ONES, INF, 1, 0)                   \
    X(E3M4, "e3m4", FLOAT, 8, 1, 3, 4, 3, 0x6F, 0x70, ONES, INF, 1, 0)                             \
    X(E2M3, "e2m3", FLOAT, 6, 1, 2, 3, 1, 0x1F, QG_NO_INF, NONE, MAX, 1, 0)                        \
    X(E3M2, "e3m2", FLOAT, 6, 1, 3, 2, 3, 0x1F, QG_NO_INF, NONE, MAX, 1, 0)                        \
    X(E2M1, "e2m1", FLOAT, 4, 1, 2, 1, 1, 0x07, QG_NO_INF, NONE, MAX, 1, 0)                        \
    X(E8M0, "e8m0", FLOAT, 8, 0, 8, 0, 127, 0xFE, QG_NO_INF, ONES, NAN, 0, 0)                      \
    X(UE4M3, "ue4m3", FLOAT, 8, 0, 4, 3, 7, 0x7E, QG_NO_INF, ONES, NAN, 1, 0)                      \
    X(UE5M3, "ue5m3", FLOAT, 8, 0, 5, 3, 15, 0xFE, QG_NO_INF, ONES, NAN, 1, 0)                     \
    X(MXINT8, "mxint8", INT, 8, 1, 0, 0, 6, 127, QG_NO_INF, NONE, MAX, 1, 0)                       \
    X(MXINT6, "mxint6", INT, 6, 1, 0, 0, 4, 31, QG_NO_INF, NONE, MAX, 1, 0)                        \
    X(MXINT4, "mxint4", INT, 4, 1, 0, 0, 2, 7, QG_NO_INF, NONE, MAX, 1, 0)                         \
    X(INT8, "int8", INT, 8, 1, 0, 0, 0, 127, QG_NO_INF, NONE, MAX, 1, 0)                           \
    X(INT6, "int6", INT, 6, 1, 0, 0, 0, 31, QG_NO_INF, NONE, MAX, 1, 0)                            \
    X(INT4, "int4", INT, 4, 1, 0, 0, 0, 7, QG_NO_INF, NONE, MAX, 1, 0)                             \
    X(INT8_FULL, "int8_full", INT, 8, 1, 0, 0, 0, 127, QG_NO_INF, NONE, MAX, 1, 0)                 \
    X(BF16, "bf16", FLOAT, 16, 1, 8, 7, 127, 0x7F7F, 0x7F80, ONES, INF, 1, 0)                      \
    X(FP16, "fp16", FLOAT, 16, 1, 5, 10, 15, 0x7BFF, 0x7C00, ONES, INF, 1, 0)                      \
    X(TF32, "tf32", FLOAT, 32, 1, 8, 10, 127, 0x3FBFF, 0x3FC00, ONES, INF, 1, 13)                  \
    X(FP32, "fp32", FLOAT, 32, 1, 8, 23, 127, 0x7F7FFFFF, 0x7F800000, ONES, INF, 1, 0)             \
    X(FP64, "fp64", FLOAT, 64, 1, 11, 52, 1023, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, ONES, INF, \
      1, 0)                                                                                        \
    QG_P3109_ROWS(X, 1)                                                                            \
    QG_P3109_ROWS(X, 2)                                                                            \
    QG_P3109_ROWS(X, 3)                                                                            \
    QG_P3109_ROWS(X, 4)                                                                            \
    QG_P3109_ROWS(X, 5)                                                                            \
    QG_P3109_ROWS(X, 6)                                                                            \
    QG_P3109_ROWS(X, 7)

// The four 8-bit P3109 formats of precision P: signed or unsigned, extended or finite.
#define QG_P3109_ROWS(X, P)                                                                        \
    X(BINARY8P##P##SE, "binary8p" #P "se", FLOAT, 8, 1, 8 - P, P - 1, 1 << (7 - P), 0x7E, 0x7F,    \
      SLOT, INF, 1, 0)                                                                             \
    X(BINARY8P##P##SF, "binary8p" #P "sf", FLOAT, 8, 1, 8 - P, P - 1, 1 << (7 - P), 0x7F,          \
      QG_NO_INF, SLOT, MAX, 1, 0)                                                                  \
    X(BINARY8P##P##UE, "binary8p" #P "ue", FLOAT, 8, 0, 9 - P, P - 1, 1 << (8 - P), 0xFD, 0xFE,    \
      ONES, INF, 1, 0)                                                                             \
    X(BINARY8P##P##UF, "binary8p" #P "uf", FLOAT, 8, 0, 9 - P, P - 1, 1 << (8 - P), 0xFE,          \
      QG_NO_INF, ONES, MAX, 1, 0)

enum {
#define QG_FORMAT_ENUM(ID, ...) QG_FORMAT_##ID,
    QG_FORMAT_TABLE(QG_FORMAT_ENUM)
#undef QG_FORMAT_ENUM
        QG_FORMAT_COUNT
};

typedef struct qg_format_info {
    uint8_t kind, bits, sign, ebits, mbits, nan, overflow, zero, shift;
    int16_t bias;
    uint64_t max_code; // magnitude code of the largest finite value
    uint64_t min_code; // magnitude code of the most negative value that conversion produces
    uint64_t inf_code; // magnitude code of infinity, or QG_NO_INF
} qg_format_info;

enum { QG_FORMAT_MINIFLOAT_FLAG = 1 << 30 };

// The id of a minifloat as a constant expression; see qg_format_minifloat.
#define QG_MINIFLOAT_ID(ebits, mbits, bias)                                                        \
    ((uint32_t)QG_FORMAT_MINIFLOAT_FLAG | (uint32_t)(ebits) | (uint32_t)(mbits) << 4 |             \
     (uint32_t)((bias) + 1024) << 8)

// The minifloat of 1 sign, `ebits` >= 1 exponent and `mbits` >= 0 mantissa bits, 1 + ebits + mbits
// <= 8, every code finite. Its values must be binary32 numbers: qg_format_parse checks the bias.
QG_HD qg_format qg_format_minifloat(int ebits, int mbits, int bias) {
    return QG_MINIFLOAT_ID(ebits, mbits, bias);
}

QG_HD int qg_format_is_minifloat(qg_format format) {
    return (format & (uint32_t)QG_FORMAT_MINIFLOAT_FLAG) != 0;
}

QG_HD qg_format_info qg_format_describe_minifloat(qg_format format) {
    qg_format_info info = QG_ZEROED;
    info.kind = QG_KIND_FLOAT;
    info.sign = 1;
    info.ebits = (uint8_t)(format & 15);
    info.mbits = (uint8_t)(format >> 4 & 15);
    info.bits = (uint8_t)(1 + info.ebits + info.mbits);
    info.bias = (int16_t)((int)(format >> 8 & 0xFFF) - 1024);
    info.nan = QG_NAN_NONE;
    info.overflow = QG_OVERFLOWS_TO_MAX;
    info.zero = 1;
    info.max_code = info.min_code = (1ull << (info.ebits + info.mbits)) - 1;
    return info;
}

// The descriptor of a format. An id outside the table gives a descriptor with bits = 0.
QG_HD qg_format_info qg_format_describe(qg_format format) {
    qg_format_info info = QG_ZEROED;
    if (qg_format_is_minifloat(format))
        return qg_format_describe_minifloat(format);
    switch (format) {
#define QG_FORMAT_CASE(ID, name, KIND, bits_, sign_, ebits_, mbits_, bias_, max_, inf_, NAN_,      \
                       OVERFLOW_, zero_, shift_)                                                   \
    case QG_FORMAT_##ID:                                                                           \
        info.kind = QG_KIND_##KIND;                                                                \
        info.bits = bits_;                                                                         \
        info.sign = sign_;                                                                         \
        info.ebits = ebits_;                                                                       \
        info.mbits = mbits_;                                                                       \
        info.bias = bias_;                                                                         \
        info.max_code = info.min_code = max_;                                                      \
        info.inf_code = inf_;                                                                      \
        info.nan = QG_NAN_##NAN_;                                                                  \
        info.overflow = QG_OVERFLOWS_TO_##OVERFLOW_;                                               \
        info.zero = zero_;                                                                         \
        info.shift = shift_;                                                                       \
        break;
        QG_FORMAT_TABLE(QG_FORMAT_CASE)
#undef QG_FORMAT_CASE
    default: break;
    }
    if (format == QG_FORMAT_INT8_FULL)
        info.min_code = 128;
    return info;
}

// Bytes of a stored code: 1 up to 8 bits, else 2, 4 or 8.
QG_HD int qg_format_code_bytes(const qg_format_info *info) { return (info->bits + 7) / 8; }

QG_HD uint64_t qg_format_sign_bit(const qg_format_info *info) {
    return info->sign && info->kind == QG_KIND_FLOAT ? 1ull << (info->ebits + info->mbits) : 0;
}

QG_HD int qg_format_has_negative_zero(const qg_format_info *info) {
    return info->kind == QG_KIND_FLOAT && info->sign && info->nan != QG_NAN_SLOT;
}

// Rows differ in width but not in kind: no finite code may reach infinity's or the sign bit.
#define QG_FORMAT_CHECK(ID, name, KIND, bits, sign, ebits, mbits, bias, max, inf, NAN_,            \
                        OVERFLOW_, zero, shift)                                                    \
    QG_STATIC_ASSERT(inf == QG_NO_INF || inf == max + 1, format_##ID##_infinity_follows_max);      \
    QG_STATIC_ASSERT(bits >= shift + sign + ebits + mbits, format_##ID##_fits_its_width);
QG_FORMAT_TABLE(QG_FORMAT_CHECK)
#undef QG_FORMAT_CHECK

#endif
