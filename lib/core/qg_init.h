// Start-up checks: the floating-point environment, and which processor this is.
#ifndef QG_INIT_H
#define QG_INIT_H

#include <qg_status.h>
#include <stdbool.h>
#include <stddef.h>

QG_EXTERN_C_BEGIN

// Call once before any numeric function. QG_ERROR_ENVIRONMENT, with what is wrong, when rounding is
// not to nearest, when subnormals are flushed (FTZ or DAZ), or when the compiler fused or
// re-associated what it must not. Programs exit with 5 then.
qg_status qg_init(void);

// Worker threads call enter before numeric work and leave after it: the calling thread's floating-
// point environment becomes the default one (nearest, no FTZ, no DAZ) and is then restored.
typedef struct qg_fp_state {
    unsigned control;
} qg_fp_state;
qg_fp_state qg_fp_enter(void);
void qg_fp_leave(qg_fp_state saved);

// "rne, ftz off, daz off" and the like, for provenance.
const char *qg_fp_describe(void);

typedef struct qg_cpu_features {
    bool avx2, fma, f16c, avx512f, avx512bw, avx512dq, avx512vl, avx512vbmi, avx512vbmi2;
    bool avx512vnni, avx512bf16, avx512bitalg, avx512vpopcntdq;
} qg_cpu_features;
qg_cpu_features qg_cpu_detect(void);

// The instruction sets that a variant is named after and QG_ISA caps, lowest first.
typedef enum qg_isa { QG_ISA_SCALAR, QG_ISA_AVX2, QG_ISA_AVX512, QG_ISA_COUNT } qg_isa;

const char *qg_isa_name(qg_isa isa); // "scalar", "avx2", "avx512"
int qg_isa_find(const char *name);   // its qg_isa, or -1

// Whether this processor has it: avx2 with FMA and F16C; avx512 with F, BW, DQ and VL above that.
bool qg_cpu_has(qg_isa isa);

// Writes the names of the features present, separated by spaces, and the processor's brand string.
void qg_cpu_describe(char *features, size_t features_size, char *brand, size_t brand_size);

QG_EXTERN_C_END

#endif
