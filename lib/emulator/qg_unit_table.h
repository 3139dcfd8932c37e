// The matrix units: which there are, and the exact arithmetic of each pair of operand types.
// One row per unit, operand set, accumulator and scale format; the rows that others extend.
//
// Sources: MMA-Sim (arXiv 2511.10909; microsoft/MMA-Sim); Khattak and Mikaitis (arXiv 2512.07004
// and 2510.15884) with their MATLAB-tensor-core recordings; Valpey et al. (arXiv 2502.15999);
// bksaiki/fpy. How well each row is known is its last column.
#ifndef QG_UNIT_TABLE_H
#define QG_UNIT_TABLE_H

// clang-format off

// X(ID, name, what it is)
#define QG_UNIT_TABLE(X)                                                                           \
    X(VOLTA_MMA,         "volta_mma",         "NVIDIA Volta mma.sync")                             \
    X(TURING_MMA,        "turing_mma",        "NVIDIA Turing mma.sync")                            \
    X(AMPERE_MMA,        "ampere_mma",        "NVIDIA Ampere mma.sync")                            \
    X(ADA_MMA,           "ada_mma",           "NVIDIA Ada mma.sync")                               \
    X(HOPPER_MMA,        "hopper_mma",        "NVIDIA Hopper mma.sync")                            \
    X(HOPPER_MMA_FP8,    "hopper_mma_fp8",    "NVIDIA Hopper FP8 mma.sync, on the FP16 unit")      \
    X(HOPPER_WGMMA,      "hopper_wgmma",      "NVIDIA Hopper wgmma")                               \
    X(BLACKWELL_MMA,     "blackwell_mma",     "NVIDIA Blackwell (datacenter) mma.sync")            \
    X(BLACKWELL_MMA_FP8, "blackwell_mma_fp8", "NVIDIA B200 FP8 mma.sync, on the FP16 unit")        \
    X(BLACKWELL_TCGEN05, "blackwell_tcgen05", "NVIDIA Blackwell tcgen05 (FP8: kind::f8f6f4)")      \
    X(BLACKWELL_MX,      "blackwell_mx",      "NVIDIA Blackwell kind::mxf8f6f4, block-scaled")     \
    X(BLACKWELL_MXF4,    "blackwell_mxf4",    "NVIDIA Blackwell kind::mxf4nvf4, block-scaled")     \
    X(RTX_BLACKWELL_MMA, "rtx_blackwell_mma", "NVIDIA RTX Blackwell mma.sync kind::f8f6f4")        \
    X(CDNA1_MFMA,        "cdna1_mfma",        "AMD CDNA1 MFMA")                                    \
    X(CDNA2_MFMA,        "cdna2_mfma",        "AMD CDNA2 MFMA")                                    \
    X(CDNA2_MFMA_1K,     "cdna2_mfma_1k",     "AMD CDNA2 MFMA, bf16_1k")                           \
    X(CDNA3_MFMA,        "cdna3_mfma",        "AMD CDNA3 MFMA")                                    \
    X(EXACT,             "exact",             "exact sum, correctly rounded to the output type")   \
    X(FP32_SEQUENTIAL,   "fp32_sequential",   "products and running sum rounded to binary32")      \
    X(FP32_FMA,          "fp32_fma",          "a chain of binary32 fused multiply-adds")           \
    X(FP32_BLOCKED,      "fp32_blocked",      "binary32 sums of N products, added in order")       \
    X(BF16_SEQUENTIAL,   "bf16_sequential",   "binary32 products, running sum in bfloat16")        \
    X(FP64,              "fp64",              "running sum in binary64")                           \
    X(NATIVE,            "native",            "the backend's own product, order unspecified")

// X(UNIT, OPERANDS, ACCUMULATOR, K_LEAST, K, MODEL, L, F, RHO, FLOOR, SCALE, SCALE_BLOCK, EVIDENCE)
//   OPERANDS      set of element formats (QG_OPERANDS_*); a and b may be any two of it
//   ACCUMULATOR   format of C and D
//   K_LEAST, K    shortest and usual K of the instruction
//   MODEL         QG_MODEL_*, see qg_unit.h
//   L             products of one fused operation; pairwise model: products of one group
//   F             fraction bits kept below the largest exponent of a fused operation
//   RHO           the conversion at its end (QG_RHO_*)
//   FLOOR         exponent that zero terms contribute (0 where the model has none)
//   SCALE, _BLOCK format of the block scales and the elements that share one
#define QG_UNIT_ROW_TABLE(X)                                                                       \
    X(VOLTA_MMA,         FP16,   FP32,  4,  4, T,      4, 23, RZ_FP32,  -131, NONE,   0, HARDWARE) \
    X(VOLTA_MMA,         FP16,   FP16,  4,  4, T,      4, 23, RNE_FP16,  -20, NONE,   0, HARDWARE) \
    X(TURING_MMA,        FP16,   FP32,  8,  8, T,      8, 24, RZ_FP32,  -132, NONE,   0, SOURCE)   \
    X(TURING_MMA,        FP16,   FP16,  8,  8, T,      8, 24, RNE_FP16,  -21, NONE,   0, SOURCE)   \
    X(AMPERE_MMA,        TF32,   FP32,  4,  8, T,      4, 24, RZ_FP32,  -132, NONE,   0, HARDWARE) \
    X(AMPERE_MMA,        FP16,   FP32,  8, 16, T,      8, 24, RZ_FP32,  -132, NONE,   0, HARDWARE) \
    X(AMPERE_MMA,        BF16,   FP32,  8, 16, T,      8, 24, RZ_FP32,  -132, NONE,   0, HARDWARE) \
    X(AMPERE_MMA,        FP16,   FP16,  8, 16, T,      8, 24, RNE_FP16,  -21, NONE,   0, HARDWARE) \
    X(AMPERE_MMA,        FP64,   FP64,  4,  4, FMA,    1,  0, NONE,        0, NONE,   0, SOURCE)   \
    X(ADA_MMA,           TF32,   FP32,  4,  8, T,      4, 24, RZ_FP32,  -132, NONE,   0, HARDWARE) \
    X(ADA_MMA,           FP16,   FP32,  8, 16, T,      8, 24, RZ_FP32,  -132, NONE,   0, HARDWARE) \
    X(ADA_MMA,           BF16,   FP32,  8, 16, T,      8, 24, RZ_FP32,  -132, NONE,   0, HARDWARE) \
    X(ADA_MMA,           FP16,   FP16,  8, 16, T,      8, 24, RNE_FP16,  -21, NONE,   0, HARDWARE) \
    X(ADA_MMA,           FP8,    FP32, 16, 32, T,     16, 13, RZ_E8M13, -132, NONE,   0, HARDWARE) \
    X(ADA_MMA,           FP8,    FP16, 16, 32, T,     16, 13, RNE_FP16,  -21, NONE,   0, HARDWARE) \
    X(ADA_MMA,           FP64,   FP64,  4,  4, FMA,    1,  0, NONE,        0, NONE,   0, SOURCE)   \
    X(HOPPER_MMA,        TF32,   FP32,  4,  8, T,      8, 25, RZ_FP32,  -133, NONE,   0, HARDWARE) \
    X(HOPPER_MMA,        FP16,   FP32, 16, 16, T,     16, 25, RZ_FP32,  -133, NONE,   0, HARDWARE) \
    X(HOPPER_MMA,        BF16,   FP32, 16, 16, T,     16, 25, RZ_FP32,  -133, NONE,   0, HARDWARE) \
    X(HOPPER_MMA,        FP16,   FP16, 16, 16, T,     16, 25, RNE_FP16,  -22, NONE,   0, HARDWARE) \
    X(HOPPER_MMA,        FP64,   FP64,  4, 16, FMA,    1,  0, NONE,        0, NONE,   0, SOURCE)   \
    X(HOPPER_MMA_FP8,    FP8,    FP32, 32, 32, PAIRS, 16, 25, RZ_FP32,  -133, NONE,   0, INFERRED) \
    X(HOPPER_MMA_FP8,    FP8,    FP16, 32, 32, PAIRS, 16, 25, RNE_FP16,  -22, NONE,   0, HARDWARE) \
    X(HOPPER_WGMMA,      TF32,   FP32,  8,  8, T,      8, 25, RZ_FP32,  -133, NONE,   0, SOURCE)   \
    X(HOPPER_WGMMA,      FP16,   FP32, 16, 16, T,     16, 25, RZ_FP32,  -133, NONE,   0, SOURCE)   \
    X(HOPPER_WGMMA,      BF16,   FP32, 16, 16, T,     16, 25, RZ_FP32,  -133, NONE,   0, SOURCE)   \
    X(HOPPER_WGMMA,      FP16,   FP16, 16, 16, T,     16, 25, RNE_FP16, -133, NONE,   0, SOURCE)   \
    X(HOPPER_WGMMA,      FP8,    FP32, 32, 32, T,     32, 13, RZ_E8M13, -133, NONE,   0, HARDWARE) \
    X(HOPPER_WGMMA,      FP8,    FP16, 32, 32, T,     32, 13, RNE_FP16, -133, NONE,   0, SOURCE)   \
    X(BLACKWELL_MMA,     TF32,   FP32,  4,  8, T,      8, 25, RZ_FP32,  -133, NONE,   0, HARDWARE) \
    X(BLACKWELL_MMA,     FP16,   FP32, 16, 16, T,     16, 25, RZ_FP32,  -133, NONE,   0, HARDWARE) \
    X(BLACKWELL_MMA,     BF16,   FP32, 16, 16, T,     16, 25, RZ_FP32,  -133, NONE,   0, HARDWARE) \
    X(BLACKWELL_MMA,     FP16,   FP16, 16, 16, T,     16, 25, RNE_FP16,  -22, NONE,   0, HARDWARE) \
    X(BLACKWELL_MMA,     FP64,   FP64,  4, 16, FMA,    1,  0, NONE,        0, NONE,   0, SOURCE)   \
    X(BLACKWELL_MMA_FP8, FP8,    FP32, 32, 32, PAIRS, 16, 25, RZ_FP32,  -133, NONE,   0, HARDWARE) \
    X(BLACKWELL_MMA_FP8, FP8,    FP16, 32, 32, PAIRS, 16, 25, RNE_FP16,  -22, NONE,   0, HARDWARE) \
    X(BLACKWELL_TCGEN05, TF32,   FP32,  8,  8, T,      8, 25, RZ_FP32,  -133, NONE,   0, SOURCE)   \
    X(BLACKWELL_TCGEN05, FP16,   FP32, 16, 16, T,     16, 25, RZ_FP32,  -133, NONE,   0, SOURCE)   \
    X(BLACKWELL_TCGEN05, BF16,   FP32, 16, 16, T,     16, 25, RZ_FP32,  -133, NONE,   0, SOURCE)   \
    X(BLACKWELL_TCGEN05, FP16,   FP16, 16, 16, T,     16, 25, RNE_FP16, -133, NONE,   0, SOURCE)   \
    X(BLACKWELL_TCGEN05, F8F6F4, FP32, 32, 32, T,     32, 25, RZ_FP32,  -133, NONE,   0, SOURCE)   \
    X(BLACKWELL_TCGEN05, F8F6F4, FP16, 32, 32, T,     32, 25, RNE_FP16, -133, NONE,   0, SOURCE)   \
    X(BLACKWELL_MX,      F8F6F4, FP32, 32, 32, ST,    32, 25, RZ_FP32,  -133, E8M0,  32, SOURCE)   \
    X(BLACKWELL_MXF4,    E2M1,   FP32, 64, 64, GST,   64, 35, RZ_FP32,  -139, E8M0,  16, SOURCE)   \
    X(BLACKWELL_MXF4,    E2M1,   FP32, 64, 64, GST,   64, 35, RZ_FP32,  -139, UE4M3, 16, SOURCE)   \
    X(RTX_BLACKWELL_MMA, F8F6F4, FP32, 16, 32, T,     32, 25, RZ_FP32,  -133, NONE,   0, SOURCE)   \
    X(RTX_BLACKWELL_MMA, F8F6F4, FP16, 16, 32, T,     32, 25, RNE_FP16,  -22, NONE,   0, SOURCE)   \
    X(CDNA1_MFMA,        BF16,   FP32,  2,  4, E,      2,  0, RNE_FP32,    0, NONE,   0, SOURCE)   \
    X(CDNA1_MFMA,        FP16,   FP32,  4,  8, E,      4,  0, RNE_FP32,    0, NONE,   0, SOURCE)   \
    X(CDNA2_MFMA,        BF16,   FP32,  2,  4, FTZ,    2,  0, RNE_FP32,    0, NONE,   0, SOURCE)   \
    X(CDNA2_MFMA,        FP16,   FP32,  4,  8, FTZ,    4,  0, RNE_FP32,    0, NONE,   0, SOURCE)   \
    X(CDNA2_MFMA_1K,     BF16,   FP32,  4,  8, FTZ,    4,  0, RNE_FP32,    0, NONE,   0, SOURCE)   \
    X(CDNA3_MFMA,        TF32,   FP32,  4,  8, TR,     4, 24, RNE_FP32,    0, NONE,   0, SOURCE)   \
    X(CDNA3_MFMA,        BF16,   FP32,  4, 16, TR,     8, 24, RNE_FP32,    0, NONE,   0, SOURCE)   \
    X(CDNA3_MFMA,        FP16,   FP32,  4, 16, TR,     8, 24, RNE_FP32,    0, NONE,   0, SOURCE)   \
    X(CDNA3_MFMA,        FNUZ8,  FP32, 16, 32, GTR,   16, 24, RNE_FP32,    0, NONE,   0, SOURCE)

// X(SET, the element formats of which a and b may be any two)
#define QG_UNIT_OPERANDS_TABLE(X)                                                                  \
    X(FP16, QG_FORMAT_FP16)                                                                        \
    X(BF16, QG_FORMAT_BF16)                                                                        \
    X(TF32, QG_FORMAT_TF32)                                                                        \
    X(FP64, QG_FORMAT_FP64)                                                                        \
    X(FP8, QG_FORMAT_E4M3, QG_FORMAT_E5M2)                                                         \
    X(F8F6F4, QG_FORMAT_E4M3, QG_FORMAT_E5M2, QG_FORMAT_E2M3, QG_FORMAT_E3M2, QG_FORMAT_E2M1)      \
    X(E2M1, QG_FORMAT_E2M1)                                                                        \
    X(FNUZ8, QG_FORMAT_E4M3FNUZ, QG_FORMAT_E5M2FNUZ)

// X(ID, tag, what it says): how a row is known.
#define QG_UNIT_EVIDENCE_TABLE(X)                                                                  \
    X(HARDWARE, "V-HW",  "equals recorded outputs of the hardware")                                \
    X(RUN,      "V-RUN", "equals another model")                                                   \
    X(SOURCE,   "SRC",   "from a public model whose authors checked it on the hardware")           \
    X(DOCUMENT, "DOC",   "from a statement of the vendor or of a paper")                           \
    X(INFERRED, "INF",   "inferred from related units")                                            \
    X(OPEN,     "OPEN",  "unknown")

// clang-format on

#endif
