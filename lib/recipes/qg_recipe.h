// Recipes: a complete quantization, every policy a named field.
//
// A recipe is plain data: copy a row of the table (qg_recipe_table.h), change fields, use it.
// Meanings: the README's chapter "Recipes" and the comments here. C and CUDA.
#ifndef QG_RECIPE_H
#define QG_RECIPE_H

#include <qg_codec.h>
#include <qg_layout.h>

// Scale rules. X(ID, name, scale format)
#define QG_SCALE_RULE_TABLE(X)                                                                     \
    X(AMAX, "amax", FP32)               /* X = fl(amax/F), code = encode(fl(x/X)) */               \
    X(AMAX_RCP, "amax_rcp", FP32)       /* same X, encode(fl(x * fl(1/X))) */                      \
    X(AMAX_MUL, "amax_mul", FP32)       /* s = fl(F/amax), encode(fl(x*s)), X = fl(1/s) */         \
    X(AMAX_POW2, "amax_pow2", FP32)     /* X = 2^e, e as rceil */                                  \
    X(FLOOR, "floor", E8M0)             /* e = exp(amax) - emax */                                 \
    X(CEIL, "ceil", E8M0)               /* e = ceil(log2 amax) - emax */                           \
    X(EVEN, "even", E8M0)               /* floor of amax rounded to the element's mantissa */      \
    X(RCEIL, "rceil", E8M0)             /* smallest e with amax <= F 2^e */                        \
    X(RCEIL_MUL, "rceil_mul", E8M0)     /* up(fl(amax * fl(1/F))) */                               \
    X(RCEIL_DIV, "rceil_div", E8M0)     /* up(fl(amax / F)) */                                     \
    X(FLOOR_PLUS1, "floor_plus1", E8M0) /* one exponent above floor */                             \
    X(NEAREST, "nearest", E8M0)         /* nearest 2^e to fl(amax/F), ties to the even code */     \
    X(NEAREST_UP, "nearest_up", E8M0)   /* the same, ties up */                                    \
    X(BEST, "best", E8M0)               /* the 2^e of least squared error, ties to the smaller */  \
    X(AMAX_UE4M3, "amax_ue4m3", UE4M3)  /* encode(fl(amax/F)), no tensor scale */                  \
    X(TWO_LEVEL, "two_level", UE4M3)    /* Transformer Engine's NVFP4 */                           \
    X(TWO_LEVEL_TORCHAO, "two_level_torchao", UE4M3)                                               \
    X(FOUR_OVER_SIX, "four_over_six", UE4M3) /* the better of amax to F and amax to F/1.5 */       \
    X(DELAYED, "delayed", FP32)              /* s from an amax history */                          \
    X(FIXED, "fixed", FP32)                  /* X given */

enum {
#define QG_SCALE_RULE_ENUM(ID, name, SCALE) QG_RULE_##ID,
    QG_SCALE_RULE_TABLE(QG_SCALE_RULE_ENUM)
#undef QG_SCALE_RULE_ENUM
        QG_RULE_COUNT
};

// The format of a rule's scales.
QG_HD qg_format qg_rule_scale_format(int rule) {
    switch (rule) {
#define QG_SCALE_RULE_CASE(ID, name, SCALE)                                                        \
    case QG_RULE_##ID: return QG_FORMAT_##SCALE;
        QG_SCALE_RULE_TABLE(QG_SCALE_RULE_CASE)
#undef QG_SCALE_RULE_CASE
    default: return QG_FORMAT_FP32;
    }
}

// Two-level rules carry one binary32 per tensor beside the block scales.
QG_HD int qg_rule_has_tensor_scale(int rule) {
    return rule == QG_RULE_TWO_LEVEL || rule == QG_RULE_TWO_LEVEL_TORCHAO ||
           rule == QG_RULE_FOUR_OVER_SIX;
}

// Which elements the amax is over.
enum {
    QG_AMAX_PROPAGATES_NAN, // a NaN makes amax NaN; infinity counts
    QG_AMAX_IGNORES_NAN,    // fmax: NaN is dropped; infinity counts
    QG_AMAX_OVER_FINITE     // NaN and infinity are dropped
};

// What a block of zeros, a NaN amax or an infinite amax gives.
enum {
    QG_EDGE_BY_RULE,  // what the formula gives (eps included): X = Inf for an infinite amax
    QG_EDGE_ONE,      // X = 1 (and s = 1)
    QG_EDGE_SMALLEST, // the scale format's code 0
    QG_EDGE_LARGEST,  // the scale format's largest value: byte 254 of E8M0
    QG_EDGE_NAN       // the scale format's NaN: byte 255 of E8M0; every code of the block is NaN
};

// The code of a NaN element in a block whose scale is a number.
enum {
    QG_NAN_ELEMENT_ENCODED, // as the conversion encodes NaN
    QG_NAN_ELEMENT_MAX,     // code of +F
    QG_NAN_ELEMENT_ZERO     // code of +0
};

// Where eps is a lower bound.
enum { QG_EPS_NONE, QG_EPS_ON_AMAX, QG_EPS_ON_SCALE };

// What replaces an infinite s = fl(F/amax).
enum { QG_HUGE_INVERSE_FLT_MAX, QG_HUGE_INVERSE_INPUT_MAX };

// How elements and scales are stored beyond one code and one scale.
enum {
    QG_STRUCTURE_PLAIN,
    QG_STRUCTURE_PAIR_SHIFT, // scale field: exponent byte E + 127, then one shift bit per pair
    QG_STRUCTURE_NO_SHIFT,   // the same with all shifts 0 (MSFP)
    QG_STRUCTURE_RESIDUAL    // two planes of codes and two scales: the second of the residual
};

typedef struct qg_recipe {
    qg_format element;
    qg_layout layout;
    uint8_t rule;
    uint8_t structure;
    qg_conversion conversion; // rounding, overflow, NaN of the elements
    uint8_t amax;             // QG_AMAX_*
    uint8_t zero_scale;       // QG_EDGE_* of a block whose amax is 0
    uint8_t nan_scale;        // QG_EDGE_* of a NaN amax
    uint8_t inf_scale;        // QG_EDGE_* of an infinite amax
    uint8_t nan_element;
    uint8_t eps_on;
    uint8_t huge_inverse;
    float eps;
    float block_scale_min; // lower bound of a two-level block scale before encoding (torchao 2^-6)
    float fixed_scale;     // X of rule `fixed`
    int8_t margin;         // delayed: s = F 2^-margin / amax
} qg_recipe;

#endif
