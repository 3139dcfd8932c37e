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

static void scalar_run(const qg_fused_problem *problem, int64_t row, int64_t column,
                       int64_t count) {
    qg_unit_product p = *(const qg_unit_product *)problem->context;
    // acc's rows are n apart, of which one is written.
    p.acc += row * p.n + column;
    p.m = 1, p.n = count, p.threads = 1;
    p.a.codes += row * p.a.stride, p.b.codes += column * p.b.stride;
    if (p.a.scales)
        p.a.scales += row * p.a.scale_stride, p.b.scales += column * p.b.scale_stride;
    int64_t intervals = p.promote ? (p.k + p.promote - 1) / p.promote : 0;
    if (p.row_factors)
        p.row_factors += row * intervals, p.column_factors += column * intervals;
    (void)qg_unit_panel_scalar(&p); // it fails only for rows that no kernel supports
}

static qg_fused_operand operand_of(const qg_unit_matrix *x) {
    return (qg_fused_operand){x->format, x->codes, x->stride, x->scales, x->scale_stride};
}

static const int models[] = {QG_MODEL_T, QG_MODEL_ST, QG_MODEL_GST, QG_MODEL_PAIRS};
enum { MODELS = sizeof models / sizeof models[0] };

static bool has_kernels(int model) {
    for (int i = 0; i < MODELS; i++)
        if (models[i] == model)
            return true;
    return false;
}

static qg_status panel(const qg_unit_product *p, qg_isa isa) {
    const qg_unit_row *row = p->row;
    if (!has_kernels(row->model) || (row->rho != QG_RHO_RZ_FP32 && row->rho != QG_RHO_RZ_E8M13))
        return qg_fail(QG_ERROR_UNSUPPORTED, "no SIMD kernel for this row");
    qg_fused_problem problem = {.m = p->m, .n = p->n, .k = p->k, .d = p->acc};
    problem.a = operand_of(&p->a), problem.b = operand_of(&p->b);
    problem.length = row->length, problem.bits = row->fraction, problem.floor = row->floor;
    problem.result = row->rho == QG_RHO_RZ_E8M13 ? QG_FUSED_RZ_E8M13 : QG_FUSED_RZ_FP32;
    problem.group = row->model == QG_MODEL_GST ? 16 : 0;
    problem.pairs = row->model == QG_MODEL_PAIRS;
    problem.promote = p->promote;
    problem.row_scale = p->row_factors, problem.column_scale = p->column_factors;
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

qg_status qg_unit_panel_avx2(const qg_unit_product *product) { return panel(product, QG_ISA_AVX2); }

qg_status qg_unit_panel_avx512(const qg_unit_product *product) {
    qg_status status = panel(product, QG_ISA_AVX512);
    return status == QG_ERROR_UNSUPPORTED ? panel(product, QG_ISA_AVX2) : status;
}

// ----------------------------------------------------------------------------------- installation

// Instructions beyond its set that a single kernel needs are its own matter: without them the next
// best kernel runs.
static const struct {
    qg_unit_panel panel;
    bool built;
} isas[QG_ISA_COUNT] = {
    [QG_ISA_SCALAR] = {NULL,                 true},
#ifdef QG_HAVE_AVX2
    [QG_ISA_AVX2] = {qg_unit_panel_avx2,   true},
#endif
#ifdef QG_HAVE_AVX512
    [QG_ISA_AVX512] = {qg_unit_panel_avx512, true},
#endif
};

static qg_isa installed = QG_ISA_SCALAR;

static void install(qg_isa isa) {
    for (int i = 0; i < MODELS; i++)
        qg_unit_variant_set(models[i], isas[isa].panel ? qg_isa_name(isa) : NULL, isas[isa].panel);
    installed = isa;
}

const char *qg_unit_isa(void) { return qg_isa_name(installed); }

static qg_isa best_isa(void) {
    int isa = QG_ISA_COUNT - 1;
    while (isa > QG_ISA_SCALAR && !(isas[isa].built && qg_cpu_has((qg_isa)isa)))
        isa--;
    return (qg_isa)isa;
}

qg_status qg_unit_use_isa(const char *isa) {
    const char *name = isa ? isa : getenv("QG_ISA");
    if (!name || (!isa && !*name)) {
        install(best_isa());
        return QG_OK;
    }
    const char *origin = isa ? "" : "QG_ISA: ";
    int i = qg_isa_find(name);
    if (i < 0)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "%sunknown instruction set '%.40s'; known are scalar, avx2, avx512", origin,
                       name);
    if (!isas[i].built)
        return qg_fail(QG_ERROR_UNSUPPORTED, "%sthis build has no %s code", origin, name);
    if (!qg_cpu_has((qg_isa)i))
        return qg_fail(QG_ERROR_UNSUPPORTED, "%sthis processor lacks %s", origin, name);
    install((qg_isa)i);
    return QG_OK;
}
