// Which kernel of the fused sums a CPU and a problem get. Owns the order of preference only.
#include <fused_problem_internal.h>

enum { MOST = 4 };

static const qg_fused_kernel *const kernels[QG_ISA_COUNT][MOST] = {
    {NULL },
#ifdef QG_HAVE_AVX2
    { &qg_fused_f13_avx2,   &qg_fused_f25_avx2,   &qg_fused_gst_avx2, NULL},
#else
    {NULL},
#endif
#ifdef QG_HAVE_AVX512
    { &qg_fused_f13_avx512, &qg_fused_f25_avx512, &qg_fused_gst_avx512, NULL},
#else
    {NULL},
#endif
};

const qg_fused_kernel *qg_fused_kernel_choose(const qg_fused_problem *problem, qg_isa isa) {
    const qg_fused_kernel *const *row = kernels[isa];
    for (; *row; row++)
        if ((*row)->cpu_has() && (*row)->supports(problem))
            return *row;
    return NULL;
}
