// The SIMD kernels of the fused sums as variants of the unit models (qg_unit_variant_set).
//
// Owns the translation of a qg_unit_product to a qg_fused_problem, the choice of kernel, and
// qg_unit_use_isa. The scalar model is the fallback for what a kernel leaves out.
// Exact: the bits of the scalar panel.
#include <fused_problem_internal.h>
#include <qg_init.h>
#include <qg_memory.h>
#include <unit_internal.h>

#include <stdlib.h>
#include <string.h>

enum { ISA_SCALAR, ISA_AVX2, ISA_AVX512 }; // as in qg_fused_kernel_choose

static void scalar_run(const qg_fused_problem *problem, int64_t row, int64_t column,
                       int64_t count) {
    qg_unit_product p = *(const qg_unit_product *)problem->context;
    // acc's rows are n apart, of which one is written.
    p.acc += row * p.n + column;
    p.m = 1, p.n = count, p.threads = 1;
    p.a.codes += row * p.a.stride, p.b.codes += column * p.b.stride;
    if (p.a.scales)
        p.a.scales += row * p.a.scale_stride, p.b.scales += column * p.b.scale_stride;
    (void)qg_unit_panel_scalar(&p); // it fails only for rows that no kernel supports
}

static qg_fused_operand operand_of(const qg_unit_matrix *x) {
    return (qg_fused_operand){x->format, x->codes, x->stride, x->scales, x->scale_stride};
}

static qg_status panel(const qg_unit_product *p, int isa) {
    const qg_unit_row *row = p->row;
    if ((row->model != QG_MODEL_T && row->model != QG_MODEL_ST && row->model != QG_MODEL_GST) ||
        (row->rho != QG_RHO_RZ_FP32 && row->rho != QG_RHO_RZ_E8M13))
        return qg_fail(QG_ERROR_UNSUPPORTED, "no SIMD kernel for this row");
    qg_fused_problem problem = {.m = p->m, .n = p->n, .k = p->k, .d = p->acc};
    problem.a = operand_of(&p->a), problem.b = operand_of(&p->b);
    problem.length = row->length, problem.bits = row->fraction, problem.floor = row->floor;
    problem.result = row->rho == QG_RHO_RZ_E8M13 ? QG_FUSED_RZ_E8M13 : QG_FUSED_RZ_FP32;
    problem.group = row->model == QG_MODEL_GST ? 16 : 0;
    if (row->scale != QG_UNIT_NO_SCALE)
        problem.scale_format = (qg_format)row->scale, problem.scale_block = row->scale_block;
    problem.threads = p->threads;
    problem.fallback = scalar_run, problem.context = p;
    const qg_fused_kernel *kernel = qg_fused_kernel_choose(&problem, isa);
    if (!kernel)
        return qg_fail(QG_ERROR_UNSUPPORTED, "no SIMD kernel for this row");
    void *workspace;
    qg_status status =
        qg_allocate(&workspace, (int64_t)kernel->workspace(&problem), 1, "packed operands");
    if (status != QG_OK)
        return status;
    kernel->run(&problem, workspace);
    qg_release(workspace);
    return QG_OK;
}

qg_status qg_unit_panel_avx2(const qg_unit_product *product) { return panel(product, ISA_AVX2); }

qg_status qg_unit_panel_avx512(const qg_unit_product *product) {
    qg_status status = panel(product, ISA_AVX512);
    return status == QG_ERROR_UNSUPPORTED ? panel(product, ISA_AVX2) : status;
}

// ----------------------------------------------------------------------------------- installation

static const struct {
    const char *name;
    qg_unit_panel panel;
    bool built;
} isas[] = {
    {"scalar", NULL,                 true},
#ifdef QG_HAVE_AVX2
    {"avx2",   qg_unit_panel_avx2,   true},
#else
    {"avx2", qg_unit_panel_avx2, false},
#endif
#ifdef QG_HAVE_AVX512
    {"avx512", qg_unit_panel_avx512, true},
#else
    {"avx512", qg_unit_panel_avx512, false},
#endif
};
enum { ISA_COUNT = sizeof isas / sizeof isas[0] };

// The instructions beyond these that a single kernel needs are its own matter: without them the
// next best kernel runs.
static bool processor_has(int isa) {
    qg_cpu_features cpu = qg_cpu_detect();
    bool avx2 = cpu.avx2 && cpu.fma && cpu.f16c;
    bool avx512 = avx2 && cpu.avx512f && cpu.avx512bw && cpu.avx512dq && cpu.avx512vl;
    return isa == ISA_SCALAR || (isa == ISA_AVX2 ? avx2 : avx512);
}

static void install(int isa) {
    static const int models[] = {QG_MODEL_T, QG_MODEL_ST, QG_MODEL_GST};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        qg_unit_variant_set(models[i], isas[isa].panel ? isas[isa].name : NULL, isas[isa].panel);
}

static int best_isa(void) {
    int isa = ISA_COUNT - 1;
    while (isa > ISA_SCALAR && !(isas[isa].built && processor_has(isa)))
        isa--;
    return isa;
}

qg_status qg_unit_use_isa(const char *isa) {
    const char *name = isa ? isa : getenv("QG_ISA");
    if (!name) {
        install(best_isa());
        return QG_OK;
    }
    int i = 0;
    while (i < ISA_COUNT && strcmp(isas[i].name, name))
        i++;
    if (i == ISA_COUNT)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "unknown instruction set %s%s; known are scalar, avx2, "
                       "avx512",
                       name, isa ? "" : " in QG_ISA");
    if (!isas[i].built)
        return qg_fail(QG_ERROR_UNSUPPORTED, "this build has no %s code", name);
    if (!processor_has(i))
        return qg_fail(QG_ERROR_UNSUPPORTED, "this processor lacks %s", name);
    install(i);
    return QG_OK;
}
