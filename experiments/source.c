// Inputs of cases: a law or a real tensor, rounded to the input type. See qg_source.h.
//
// Large tensors are generated on several threads: rows do not depend on one another.
#include <qg_source.h>

#include <qg_init.h>
#include <qg_size.h>

#include <inttypes.h>

enum { PARALLEL_ELEMENTS = 65536 };

static void generate_law(const qg_law *law, uint64_t seed, int operand, int64_t rows, int64_t k,
                         float *x) {
    int64_t slab = k >= PARALLEL_ELEMENTS ? 1 : (PARALLEL_ELEMENTS - 1) / k + 1; // rows
    int64_t slabs = (rows - 1) / slab + 1;
#pragma omp parallel for schedule(dynamic) if (slabs > 1)
    for (int64_t s = 0; s < slabs; s++) {
        qg_fp_state saved = qg_fp_enter();
        int64_t first = s * slab;
        qg_law_generate(law, seed, operand, k, first, rows - first < slab ? rows - first : slab,
                        x + first * k);
        qg_fp_leave(saved);
    }
}

static qg_status generate_normal(uint64_t seed, int operand, int64_t rows, int64_t k, float *x) {
    qg_law *normal;
    qg_status status = qg_law_parse("normal", &normal);
    if (status != QG_OK)
        return status;
    generate_law(normal, seed, operand, rows, k, x);
    qg_law_free(normal);
    return QG_OK;
}

static qg_status read_tensor(const qg_source *source, int64_t rows, int64_t k, float *x) {
    if (rows != source->m || k != source->k)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "%s is %" PRId64 " x %" PRId64 ", not %" PRId64 " x %" PRId64,
                       source->tensor, source->m, source->k, rows, k);
    return qg_tensor_file_read(source->file, source->tensor_index, x);
}

qg_status qg_source_generate(const qg_source *source, uint64_t seed, int operand,
                             qg_format input_type, int64_t rows, int64_t k, float *x) {
    int64_t count;
    if (rows < 1 || k < 1 || !qg_size_multiply(rows, k, &count))
        return qg_fail(QG_ERROR_ARGUMENT, "an input of %" PRId64 " x %" PRId64 " is none", rows, k);
    qg_status status = QG_OK;
    if (source->law)
        generate_law(source->law, seed, operand, rows, k, x);
    else if (operand == 0)
        status = read_tensor(source, rows, k, x);
    else
        status = generate_normal(seed, operand, rows, k, x);
    return status == QG_OK ? qg_input_round(input_type, count, x) : status;
}
