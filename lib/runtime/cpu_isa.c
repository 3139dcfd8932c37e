// Which kernels run. See qg_cpu_use_isa in qg_cpu.h.
// Instructions beyond the set of its name that a table needs (VBMI) are its own matter: where the
// processor lacks them, the next lower table runs under that name's cap.
#include <cpu_kernels_internal.h>
#include <qg_cpu.h>

#include <stdatomic.h>
#include <stdlib.h>

static cpu_kernels chosen;
static atomic_bool is_chosen;

static void install(qg_isa cap) {
    cpu_kernels_scalar(&chosen);
#ifdef QG_HAVE_AVX2
    if (cap >= QG_ISA_AVX2 && qg_cpu_has(QG_ISA_AVX2))
        cpu_kernels_avx2(&chosen);
#endif
#ifdef QG_HAVE_AVX512
    if (cap >= QG_ISA_AVX512 && qg_cpu_has(QG_ISA_AVX512) && qg_cpu_detect().avx512vbmi)
        cpu_kernels_avx512(&chosen);
#endif
    (void)cap;
    is_chosen = true;
}

qg_status qg_cpu_use_isa(const char *isa) {
    qg_status status = qg_unit_use_isa(isa);
    if (status != QG_OK)
        return status;
    // qg_unit_use_isa knows the name, and that an empty variable is none.
    const char *name = isa ? isa : getenv("QG_ISA");
    install(name && *name ? (qg_isa)qg_isa_find(name) : QG_ISA_AVX512);
    return QG_OK;
}

const cpu_kernels *cpu_kernels_chosen(void) {
    if (is_chosen)
        return &chosen;
        // Nobody asked: the environment is obeyed where it can be, and a wrong QG_ISA means the
        // best.
#pragma omp critical(qg_cpu_isa)
    if (!is_chosen) {
        const char *name = getenv("QG_ISA");
        int cap = name ? qg_isa_find(name) : -1;
        install(cap >= 0 ? (qg_isa)cap : QG_ISA_AVX512);
    }
    return &chosen;
}
