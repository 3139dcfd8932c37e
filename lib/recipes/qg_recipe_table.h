// The recipes: one row each. The row that others extend when a system is added.
//
// X(ID, name, element, layout kind, layout rows, layout columns, rule, structure, amax, zero, nan, inf,
//   nan element, huge inverse, eps on, eps, block scale minimum)
// `zero`, `nan`, `inf` are the QG_EDGE_* of a zero block, a NaN amax and an infinite amax.
// Every recipe saturates and rounds to nearest even until a caller changes it.
// Not together with math.h, whose NAN is a macro.
#ifndef QG_RECIPE_TABLE_H
#define QG_RECIPE_TABLE_H

#include <qg_recipe.h>

#define QG_GROUP(G)    GROUP, 0, G
#define QG_BLOCK(R, C) BLOCK, R, C
#define QG_PER_TENSOR  PER_TENSOR, 0, 0

// Expands the shorthands of a row before X sees its columns.
#define QG_ROW(X, ...) X(__VA_ARGS__)

// Policies shared by several rows.
#define QG_OCP_POLICY   PROPAGATES_NAN, SMALLEST, NAN, NAN, ENCODED, FLT_MAX, NONE, 0.0f, 0.0f
#define QG_NVFP4_POLICY IGNORES_NAN, SMALLEST, BY_RULE, BY_RULE, MAX, FLT_MAX, NONE, 0.0f, 0.0f
#define QG_TE_POLICY    PROPAGATES_NAN, ONE, ONE, ONE, ENCODED, INPUT_MAX, NONE, 0.0f, 0.0f
#define QG_DEEPSEEK_POLICY                                                                         \
    PROPAGATES_NAN, BY_RULE, NAN, BY_RULE, ENCODED, FLT_MAX, ON_AMAX, 1e-10f, 0.0f

// clang-format off: one row per recipe
#define QG_RECIPE_TABLE(X)                                                                         \
    QG_ROW(X, MXFP8, "mxfp8", E4M3, QG_GROUP(32), FLOOR, PLAIN, QG_OCP_POLICY)                     \
    QG_ROW(X, MXFP8_E5M2, "mxfp8_e5m2", E5M2, QG_GROUP(32), FLOOR, PLAIN, QG_OCP_POLICY)           \
    QG_ROW(X, MXFP6_E2M3, "mxfp6_e2m3", E2M3, QG_GROUP(32), FLOOR, PLAIN, QG_OCP_POLICY)           \
    QG_ROW(X, MXFP6_E3M2, "mxfp6_e3m2", E3M2, QG_GROUP(32), FLOOR, PLAIN, QG_OCP_POLICY)           \
    QG_ROW(X, MXFP4, "mxfp4", E2M1, QG_GROUP(32), FLOOR, PLAIN, QG_OCP_POLICY)                     \
    QG_ROW(X, MXINT8, "mxint8", MXINT8, QG_GROUP(32), FLOOR, PLAIN, QG_OCP_POLICY)                 \
    QG_ROW(X, MXINT6, "mxint6", MXINT6, QG_GROUP(32), FLOOR, PLAIN, QG_OCP_POLICY)                 \
    QG_ROW(X, MXINT4, "mxint4", MXINT4, QG_GROUP(32), FLOOR, PLAIN, QG_OCP_POLICY)                 \
    QG_ROW(X, TORCHAO_MXFP8_FLOOR, "torchao_mxfp8_floor", E4M3, QG_GROUP(32), FLOOR, PLAIN,        \
           QG_OCP_POLICY)                                                                          \
    QG_ROW(X, TORCHAO_MXFP8_CEIL, "torchao_mxfp8_ceil", E4M3, QG_GROUP(32), CEIL, PLAIN,           \
           QG_OCP_POLICY)                                                                          \
    QG_ROW(X, TORCHAO_MXFP8_EVEN, "torchao_mxfp8_even", E4M3, QG_GROUP(32), EVEN, PLAIN,           \
           QG_OCP_POLICY)                                                                          \
    QG_ROW(X, TORCHAO_MXFP8_RCEIL, "torchao_mxfp8_rceil", E4M3, QG_GROUP(32), RCEIL, PLAIN,        \
           QG_OCP_POLICY)                                                                          \
    QG_ROW(X, TE_MXFP8, "te_mxfp8", E4M3, QG_GROUP(32), RCEIL_MUL, PLAIN, PROPAGATES_NAN,          \
           SMALLEST, NAN, LARGEST, ENCODED, FLT_MAX, NONE, 0.0f, 0.0f)                             \
    QG_ROW(X, NEURON_MXFP8, "neuron_mxfp8", E4M3, QG_GROUP(32), FLOOR_PLUS1, PLAIN, QG_OCP_POLICY) \
    QG_ROW(X, NVFP4, "nvfp4", E2M1, QG_GROUP(16), TWO_LEVEL, PLAIN, QG_NVFP4_POLICY)               \
    QG_ROW(X, NVFP4_TORCHAO, "nvfp4_torchao", E2M1, QG_GROUP(16), TWO_LEVEL_TORCHAO, PLAIN,        \
           IGNORES_NAN, BY_RULE, BY_RULE, BY_RULE, MAX, FLT_MAX, NONE, 0.0f, 0x1p-6f)              \
    QG_ROW(X, NVFP4_4OVER6, "nvfp4_4over6", E2M1, QG_GROUP(16), FOUR_OVER_SIX, PLAIN,              \
           QG_NVFP4_POLICY)                                                                        \
    QG_ROW(X, NVINT4, "nvint4", INT4, QG_GROUP(16), TWO_LEVEL, PLAIN, QG_NVFP4_POLICY)             \
    QG_ROW(X, RLX_E4M3, "rlx_e4m3", E4M3, QG_PER_TENSOR, AMAX, PLAIN, OVER_FINITE, ONE, BY_RULE,   \
           BY_RULE, ZERO, FLT_MAX, NONE, 0.0f, 0.0f)                                               \
    QG_ROW(X, RLX_MXFP8, "rlx_mxfp8", E4M3, QG_GROUP(32), RCEIL, PLAIN, IGNORES_NAN, ONE, BY_RULE, \
           LARGEST, ZERO, FLT_MAX, NONE, 0.0f, 0.0f)                                               \
    QG_ROW(X, RLX_NVFP4, "rlx_nvfp4", E2M1, QG_GROUP(16), AMAX_UE4M3, PLAIN, OVER_FINITE, ONE,     \
           BY_RULE, BY_RULE, ZERO, FLT_MAX, NONE, 0.0f, 0.0f)                                      \
    QG_ROW(X, RLX_MXFP4X2, "rlx_mxfp4x2", E2M1, QG_GROUP(32), AMAX, RESIDUAL, OVER_FINITE, ONE,    \
           BY_RULE, BY_RULE, ZERO, FLT_MAX, NONE, 0.0f, 0.0f)                                      \
    QG_ROW(X, METRALE_ACT128, "metrale_act128", E4M3, QG_GROUP(128), AMAX, PLAIN, IGNORES_NAN,     \
           BY_RULE, BY_RULE, BY_RULE, MAX, FLT_MAX, ON_SCALE, 1e-12f, 0.0f)                        \
    QG_ROW(X, DEEPSEEK_ACT128, "deepseek_act128", E4M3, QG_GROUP(128), AMAX, PLAIN,                \
           QG_DEEPSEEK_POLICY)                                                                     \
    QG_ROW(X, DEEPSEEK_W128X128, "deepseek_w128x128", E4M3, QG_BLOCK(128, 128), AMAX, PLAIN,       \
           QG_DEEPSEEK_POLICY)                                                                     \
    QG_ROW(X, TE_E4M3, "te_e4m3", E4M3, QG_PER_TENSOR, AMAX_MUL, PLAIN, QG_TE_POLICY)              \
    QG_ROW(X, TE_E5M2, "te_e5m2", E5M2, QG_PER_TENSOR, AMAX_MUL, PLAIN, QG_TE_POLICY)              \
    QG_ROW(X, TE_E4M3_POW2, "te_e4m3_pow2", E4M3, QG_PER_TENSOR, AMAX_POW2, PLAIN, QG_TE_POLICY)   \
    QG_ROW(X, TE_E5M2_POW2, "te_e5m2_pow2", E5M2, QG_PER_TENSOR, AMAX_POW2, PLAIN, QG_TE_POLICY)   \
    QG_ROW(X, TE_DELAYED_E4M3, "te_delayed_e4m3", E4M3, QG_PER_TENSOR, DELAYED, PLAIN,             \
           PROPAGATES_NAN, ONE, ONE, ONE, ENCODED, FLT_MAX, NONE, 0.0f, 0.0f)                      \
    QG_ROW(X, TE_DELAYED_E5M2, "te_delayed_e5m2", E5M2, QG_PER_TENSOR, DELAYED, PLAIN,             \
           PROPAGATES_NAN, ONE, ONE, ONE, ENCODED, FLT_MAX, NONE, 0.0f, 0.0f)                      \
    QG_ROW(X, VLLM_UE8M0, "vllm_ue8m0", E4M3, QG_GROUP(128), RCEIL, PLAIN, IGNORES_NAN, BY_RULE,   \
           BY_RULE, LARGEST, ENCODED, FLT_MAX, ON_SCALE, 1e-10f, 0.0f)                             \
    QG_ROW(X, VLLM_UE8M0_TRITON, "vllm_ue8m0_triton", E4M3, QG_GROUP(128), RCEIL, PLAIN,           \
           IGNORES_NAN, BY_RULE, BY_RULE, LARGEST, ENCODED, FLT_MAX, ON_AMAX, 1e-10f, 0.0f)        \
    QG_ROW(X, MX9, "mx9", F8E1M6, QG_GROUP(16), FLOOR, PAIR_SHIFT, QG_OCP_POLICY)                  \
    QG_ROW(X, MX6, "mx6", F5E1M3, QG_GROUP(16), FLOOR, PAIR_SHIFT, QG_OCP_POLICY)                  \
    QG_ROW(X, MX4, "mx4", F3E1M1, QG_GROUP(16), FLOOR, PAIR_SHIFT, QG_OCP_POLICY)                  \
    QG_ROW(X, MSFP16, "msfp16", F8E1M6, QG_GROUP(16), FLOOR, NO_SHIFT, QG_OCP_POLICY)              \
    QG_ROW(X, MSFP12, "msfp12", F4E1M2, QG_GROUP(16), FLOOR, NO_SHIFT, QG_OCP_POLICY)
// clang-format on

#endif
