// A case and its result as a row of the table. See qg_result_row.h.
//
// Knows which field belongs to which column, and nothing else.
#include <qg_result_row.h>
#include <row_writer.h>

#include <qg_format_name.h>
#include <qg_kernel_choice.h>

static void set_format(row_writer *w, qg_column column, qg_format format) {
    char name[QG_NAME_SIZE];
    qg_format_name(format, name);
    set_text(w, column, name);
}

static void set_axes(row_writer *w, const qg_case *c) {
    set_u64(w, QG_COLUMN_CASE_ID, c->id);
    set_text(w, QG_COLUMN_OP, c->op->name);
    set_text(w, QG_COLUMN_FORMAT, c->format);
    set_text(w, QG_COLUMN_LAYOUT, c->layout);
    set_text(w, QG_COLUMN_SCALE_RULE, c->scale_rule);
    set_text(w, QG_COLUMN_SCALE_FORMAT, c->scale_format);
    set_text(w, QG_COLUMN_ROUNDING, c->rounding);
    set_text(w, QG_COLUMN_FORMAT_B, c->format_b);
    set_text(w, QG_COLUMN_LAYOUT_B, c->layout_b);
    set_text(w, QG_COLUMN_SCALE_RULE_B, c->scale_rule_b);
    set_text(w, QG_COLUMN_UNIT, c->unit);
    set_text(w, QG_COLUMN_BACKEND, c->backend);
    set_text(w, QG_COLUMN_DATA, c->data);
    set_text(w, QG_COLUMN_TENSOR, c->tensor);
    set_i64(w, QG_COLUMN_M, c->m);
    set_i64(w, QG_COLUMN_N, c->n);
    set_i64(w, QG_COLUMN_K, c->k);
    set_i64(w, QG_COLUMN_SM_COUNT, c->sm_count);
    if (c->source && !c->source->recording) {
        set_format(w, QG_COLUMN_INPUT_TYPE, c->input_type);
        set_u64(w, QG_COLUMN_SEED, c->seed); // 0 where there are no data
    }
    if (c->unit && c->unit[0]) {
        set_format(w, QG_COLUMN_OUT_TYPE, c->out_type);
        if (w->status == QG_OK)
            w->status = qg_table_set_u8(w->table, w->row, QG_COLUMN_HAS_BIAS, c->bias);
    }
}

static void set_counts(row_writer *w, const qg_counts *counts) {
    set_i64(w, QG_COLUMN_COUNT_N, counts->n);
    set_i64(w, QG_COLUMN_COUNT_NAN, counts->nan);
    set_i64(w, QG_COLUMN_COUNT_INF, counts->inf);
    set_i64(w, QG_COLUMN_COUNT_SATURATED, counts->saturated);
    set_i64(w, QG_COLUMN_COUNT_CLIPPED, counts->clipped);
    set_i64(w, QG_COLUMN_COUNT_UNDERFLOWED, counts->underflowed);
    set_i64(w, QG_COLUMN_COUNT_SUBNORMAL, counts->subnormal);
    set_i64(w, QG_COLUMN_COUNT_EXACT, counts->exact);
    set_i64(w, QG_COLUMN_COUNT_BLOCKS, counts->blocks);
    set_i64(w, QG_COLUMN_COUNT_ZERO_BLOCKS, counts->zero_blocks);
    set_i64(w, QG_COLUMN_COUNT_NAN_SCALES, counts->nan_scales);
}

static void set_comparison(row_writer *w, const qg_comparison *compared) {
    if (compared->has_sums && w->status == QG_OK)
        w->status = qg_table_set_sums(w->table, w->row, &compared->sums);
    set_f64(w, QG_COLUMN_SPEARMAN, compared->spearman);
    set_f64(w, QG_COLUMN_BACKWARD_ERROR, compared->backward_error);
}

static void set_timing(row_writer *w, const qg_timing *t) {
    set_f64(w, QG_COLUMN_TIMING_MEDIAN_S, t->median_s);
    set_f64(w, QG_COLUMN_TIMING_MIN_S, t->min_s);
    set_f64(w, QG_COLUMN_TIMING_MAX_S, t->max_s);
    set_f64(w, QG_COLUMN_TIMING_MAD_S, t->mad_s);
    set_i64(w, QG_COLUMN_TIMING_SAMPLES, t->samples);
    set_i64(w, QG_COLUMN_TIMING_BYTES, t->bytes);
    if (t->median_s > 0)
        set_f64(w, QG_COLUMN_TIMING_GB_PER_S, 1e-9 * (double)t->bytes / t->median_s);
    set_f64(w, QG_COLUMN_TIMING_MEMCPY_RATIO, t->memcpy_ratio);
}

static void set_partition(row_writer *w, const qg_case_partition *p) {
    set_i64(w, QG_COLUMN_PARTITION_GROUPS, p->groups);
    set_i64(w, QG_COLUMN_PARTITION_GRID_X, p->grid_x);
    set_i64(w, QG_COLUMN_PARTITION_GRID_Y, p->grid_y);
    set_text(w, QG_COLUMN_PARTITION_KERNEL, qg_group_kernel_name(p->kernel));
    set_text(w, QG_COLUMN_PARTITION_REJECT, qg_kernel_reject_name((qg_kernel_reject)p->reject));
    set_i64(w, QG_COLUMN_PARTITION_COVERED_MIN, p->covered_min);
    set_i64(w, QG_COLUMN_PARTITION_COVERED_MAX, p->covered_max);
    set_i64(w, QG_COLUMN_PARTITION_INERT, p->inert);
    set_i64(w, QG_COLUMN_PARTITION_VIOLATIONS, p->violations);
}

static void set_result(row_writer *w, const qg_case_result *result) {
    set_text(w, QG_COLUMN_STATUS, qg_case_status_name((qg_case_status)result->status));
    set_text(w, QG_COLUMN_REASON, result->reason);
    set_text(w, QG_COLUMN_IMPL_USED, result->impl_used);
    set_u64(w, QG_COLUMN_INPUT_DIGEST, result->input_digest);
    set_u64(w, QG_COLUMN_OUTPUT_DIGEST, result->output_digest);
    set_f64(w, QG_COLUMN_SECONDS, result->seconds);
    if (result->has_counts)
        set_counts(w, &result->counts);
    if (result->has_timing)
        set_timing(w, &result->timing);
    if (result->has_partition)
        set_partition(w, &result->partition);
    set_i64(w, QG_COLUMN_COUNT_CODE_MISMATCHES, result->code_mismatches);
    set_i64(w, QG_COLUMN_COUNT_SCALE_MISMATCHES, result->scale_mismatches);
}

// The row of the op's reference of that index.
static qg_status add_row(qg_table *table, const qg_plan *plan, const qg_case *c,
                         const qg_case_result *result, int reference, int64_t run) {
    row_writer w = {.table = table};
    w.status = qg_table_append(table, &w.row);
    if (w.status != QG_OK)
        return w.status;
    qg_table_set_order(table, w.row, c->order);
    set_axes(&w, c);
    set_text(&w, QG_COLUMN_REFERENCE, c->op->references[reference]);
    char repro[4096];
    if (qg_plan_repro(plan, c, repro, sizeof repro))
        set_text(&w, QG_COLUMN_REPRO, repro);
    set_i64(&w, QG_COLUMN_RUN, run);
    set_result(&w, result);
    set_comparison(&w, &result->compared[reference]);
    return w.status;
}

qg_status qg_result_row_add(qg_table *table, const qg_plan *plan, const qg_case *c,
                            const qg_case_result *result, int64_t run) {
    qg_status status = QG_OK;
    for (int i = 0; i < qg_op_reference_count(c->op) && status == QG_OK; i++)
        status = add_row(table, plan, c, result, i, run);
    return status;
}
