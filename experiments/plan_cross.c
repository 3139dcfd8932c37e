// Crossing the values of a section: every case as a record, without those that --where and
// --exclude leave out. What does not fit the limit is refused before it takes memory. See
// plan_internal.h.
#include <plan_internal.h>

#include <qg_backend_list.h>
#include <qg_size.h>

#include <inttypes.h>

// Sizes beyond this leave no room for the bytes of their elements.
static const int64_t MOST_ELEMENTS = INT64_MAX / 64;

static bool is_selected(const qg_plan *plan, const qg_expanded *e, const qg_record *record) {
    qg_case c;
    if (e->where.count == 0 && e->exclude.count == 0)
        return true;
    qg_record_case(plan, record, &c);
    c.id = qg_case_identity(&c);
    return (e->where.count == 0 || qg_expressions_any(&e->where, qg_axis_cell, &c)) &&
           !qg_expressions_any(&e->exclude, qg_axis_cell, &c);
}

static qg_status add_record(qg_plan *plan, const qg_expanded *e, const qg_record *record) {
    plan->considered++;
    if (!is_selected(plan, e, record))
        return QG_OK;
    qg_status status =
        qg_grow(&plan->records, plan->record_count, &plan->record_capacity, sizeof *plan->records);
    if (status)
        return status;
    plan->records[plan->record_count] = *record;
    plan->records[plan->record_count++].place = plan->sources[record->source]->place;
    return QG_OK;
}

// --------------------------------------------------------------------------------------- crossing

static qg_status check_elements(const char *rows, int64_t a, const char *columns, int64_t b) {
    int64_t elements;
    if (qg_size_multiply(a, b, &elements) && elements <= MOST_ELEMENTS)
        return QG_OK;
    return qg_fail(QG_ERROR_OVERFLOW, "%s %" PRId64 " times %s %" PRId64 " is too many elements",
                   rows, a, columns, b);
}

static bool is_emulator(int32_t backend) {
    return qg_backend_is_emulator(qg_backend_named((size_t)backend));
}

static qg_status cross_variants(qg_plan *plan, const qg_expanded *e, qg_record record) {
    qg_status status = QG_OK;
    bool is_timing = qg_op_listed(record.op)->is_timing;
    record.product = QG_NO_PRODUCT;
    for (int64_t v = 0; v < e->choices.count; v++)
        for (int64_t b = 0; b < e->backends.count && !status; b++) {
            bool emulator = is_emulator(e->backends.values[b]);
            if (emulator && is_timing && e->has_others)
                continue;
            record.variant = e->choices.items[v].variant;
            record.backend = (uint8_t)e->backends.values[b];
            // By what was asked for, not by what --where leaves of it: a case alone compares, too.
            record.against_emulator = !emulator && e->has_emulator && !is_timing;
            status = add_record(plan, e, &record);
        }
    return status;
}

// A product on the backends that have its unit.
static qg_status cross_unit(qg_plan *plan, const qg_expanded *e, int32_t product,
                            qg_record record) {
    const qg_product *p = qg_plan_product(plan, product);
    qg_status status = QG_OK;
    record.product = product;
    record.variant = p->a;
    for (int64_t b = 0; b < e->backends.count && !status; b++) {
        if (!qg_unit_runs_on(&p->matrix_unit, e->backends.values[b]))
            continue;
        record.backend = (uint8_t)e->backends.values[b];
        status = add_record(plan, e, &record);
    }
    return status;
}

static qg_status cross_units(qg_plan *plan, const qg_expanded *e, qg_record record) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < e->crossed.count && !status; i++)
        status = cross_unit(plan, e, e->crossed.values[i], record);
    return status;
}

static qg_status cross_products(qg_plan *plan, const qg_expanded *e, qg_record record) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < e->n.count && !status; i++) {
        record.n = (int64_t)e->n.values[i];
        status = check_elements("n", record.n, "k", record.k);
        if (!status)
            status = check_elements("m", record.m, "n", record.n);
        if (!status)
            status = cross_units(plan, e, record);
    }
    return status;
}

static qg_status cross_ops(qg_plan *plan, const qg_expanded *e, qg_record record) {
    qg_status status = QG_OK;
    for (int64_t o = 0; o < e->ops.count && !status; o++) {
        record.op = (uint8_t)e->ops.values[o];
        switch (qg_op_listed(record.op)->kind) {
        case QG_OP_TENSOR: status = cross_variants(plan, e, record); break;
        case QG_OP_PRODUCT: status = cross_products(plan, e, record); break;
        default: break;
        }
    }
    return status;
}

static qg_status cross_inputs(qg_plan *plan, const qg_expanded *e, qg_record record) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < e->inputs.count; i++)
        for (int64_t s = 0; s < e->seeds.count && !status; s++) {
            record.input = (uint8_t)e->inputs.values[i];
            record.seed = e->seeds.values[s];
            status = cross_ops(plan, e, record);
        }
    return status;
}

// The first operation that has tensors.
static uint8_t first_op(const qg_expanded *e) {
    int64_t i = 0;
    while (!qg_kind_has(qg_op_listed((size_t)e->ops.values[i])->kind, QG_AXIS_INPUT_TYPE) ||
           qg_op_listed((size_t)e->ops.values[i])->kind == QG_OP_GRID)
        i++;
    return (uint8_t)e->ops.values[i];
}

// A tensor that cannot be read is one case per format.
static qg_status cross_unreadable(qg_plan *plan, const qg_expanded *e, qg_record record) {
    qg_status status = QG_OK;
    record.op = first_op(e);
    record.product = QG_NO_PRODUCT;
    record.input = (uint8_t)e->inputs.values[0];
    record.backend = (uint8_t)e->backends.values[0];
    record.seed = e->seeds.values[0];
    for (int64_t f = 0; f < e->unreadable.count && !status; f++) {
        record.variant = e->unreadable.values[f];
        status = add_record(plan, e, &record);
    }
    return status;
}

static qg_status cross_sizes(qg_plan *plan, const qg_expanded *e, qg_record record) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < e->m.count && !status; i++)
        for (int64_t j = 0; j < e->k.count && !status; j++) {
            record.m = (int64_t)e->m.values[i];
            record.k = (int64_t)e->k.values[j];
            status = check_elements("m", record.m, "k", record.k);
            if (!status)
                status = cross_inputs(plan, e, record);
        }
    return status;
}

// The emulator runs recorded vectors; they have no data, sizes or seeds of their own.
static qg_status cross_recordings(qg_plan *plan, const qg_expanded *e) {
    qg_status status = QG_OK;
    for (int64_t o = 0; o < e->ops.count; o++)
        for (int64_t b = 0; b < e->backends.count; b++) {
            if (qg_op_listed((size_t)e->ops.values[o])->kind != QG_OP_RECORDING ||
                !is_emulator(e->backends.values[b]))
                continue;
            for (int64_t i = 0; i < e->recorded.count && !status; i++) {
                qg_record record = e->recorded.items[i];
                record.op = (uint8_t)e->ops.values[o];
                record.backend = (uint8_t)e->backends.values[b];
                status = add_record(plan, e, &record);
            }
        }
    return status;
}

static qg_status cross_grid(qg_plan *plan, const qg_expanded *e, qg_record record) {
    qg_status status = check_elements("m", record.m, "k", record.k);
    for (int64_t i = 0; i < e->inputs.count; i++)
        for (int64_t v = 0; v < e->grid_variants.count; v++)
            for (int64_t s = 0; s < e->sm_counts.count && !status; s++) {
                record.input = (uint8_t)e->inputs.values[i];
                record.variant = e->grid_variants.values[v];
                record.sm_count = (int64_t)e->sm_counts.values[s];
                status = add_record(plan, e, &record);
            }
    return status;
}

// Grids of kernels have sizes and no data; nobody performs them.
static qg_status cross_grids(qg_plan *plan, const qg_expanded *e) {
    qg_status status = QG_OK;
    qg_record record = {.source = e->grid_source, .product = QG_NO_PRODUCT};
    for (int64_t o = 0; o < e->ops.count; o++) {
        record.op = (uint8_t)e->ops.values[o];
        if (qg_op_listed(record.op)->kind != QG_OP_GRID)
            continue;
        for (int64_t i = 0; i < e->m.count; i++)
            for (int64_t j = 0; j < e->k.count && !status; j++) {
                record.m = (int64_t)e->m.values[i];
                record.k = (int64_t)e->k.values[j];
                status = cross_grid(plan, e, record);
            }
    }
    return status;
}

static bool is_skipped(const qg_plan *plan, int32_t product) {
    const qg_product *p = qg_plan_product(plan, product);
    return p->skip || p->graph_skip;
}

// What cannot run is one case, that of the last node: the model's output.
static qg_status cross_node(qg_plan *plan, const qg_expanded *e, const qg_plan_model *of,
                            qg_record record) {
    bool is_last = record.source == of->first + of->count - 1;
    qg_status status = QG_OK;
    for (int64_t i = 0; i < e->crossed_by_models.count && !status; i++) {
        int32_t product = e->crossed_by_models.values[i];
        if (is_last || !is_skipped(plan, product))
            status = cross_unit(plan, e, product, record);
    }
    return status;
}

static qg_status cross_model(qg_plan *plan, const qg_expanded *e, const qg_plan_model *of,
                             qg_record record) {
    qg_status status = QG_OK;
    for (int32_t i = of->first; i < of->first + of->count; i++)
        for (int64_t s = 0; s < e->seeds.count && !status; s++) {
            record.source = i;
            record.m = plan->sources[i]->source.m;
            record.k = plan->sources[i]->source.k;
            record.seed = e->seeds.values[s];
            status = cross_node(plan, e, of, record);
        }
    return status;
}

// A model brings the sizes of its nodes; it runs in fp32.
static qg_status cross_models(qg_plan *plan, const qg_expanded *e) {
    qg_status status = QG_OK;
    for (int64_t o = 0; o < e->ops.count; o++) {
        qg_record record = {.op = (uint8_t)e->ops.values[o]};
        if (qg_op_listed(record.op)->kind != QG_OP_MODEL)
            continue;
        for (int64_t i = 0; i < e->models_used.count && !status; i++)
            status = cross_model(plan, e, &plan->models[e->models_used.values[i]], record);
    }
    return status;
}

static qg_status cross_all(qg_plan *plan, const qg_expanded *e) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < e->sources.count && !status; i++) {
        const qg_plan_source *s = plan->sources[e->sources.values[i]];
        qg_record record = {.source = e->sources.values[i], .m = s->source.m, .k = s->source.k};
        status = s->source.law ? cross_sizes(plan, e, record)
                 : s->skipped  ? cross_unreadable(plan, e, record)
                               : cross_inputs(plan, e, record);
    }
    if (!status)
        status = cross_models(plan, e);
    if (!status)
        status = cross_grids(plan, e);
    return status ? status : cross_recordings(plan, e);
}

// Products with the backends that have their units.
static int64_t product_count(const qg_plan *plan, const qg_expanded *e,
                             const qg_index_list *crossed) {
    int64_t count = 0;
    for (int64_t i = 0; i < crossed->count; i++) {
        const qg_product *p = qg_plan_product(plan, crossed->values[i]);
        for (int64_t b = 0; b < e->backends.count; b++)
            count += qg_unit_runs_on(&p->matrix_unit, e->backends.values[b]);
    }
    return count;
}

// Cases of one input: of every operation.
static bool count_per_input(const qg_plan *plan, const qg_expanded *e, int64_t *count) {
    int64_t tensors, products;
    bool fits = qg_size_multiply(e->choices.count, e->backends.count, &tensors) &&
                qg_size_multiply(product_count(plan, e, &e->crossed), e->n.count, &products);
    *count = 0;
    for (int64_t o = 0; o < e->ops.count && fits; o++) {
        qg_op_kind kind = qg_op_listed((size_t)e->ops.values[o])->kind;
        fits = qg_size_add(*count,
                           kind == QG_OP_TENSOR    ? tensors
                           : kind == QG_OP_PRODUCT ? products
                                                   : 0,
                           count);
    }
    return fits;
}

static bool count_grids(const qg_expanded *e, int64_t *count) {
    *count = 0;
    return !e->grids || (qg_size_multiply(e->m.count, e->k.count, count) &&
                         qg_size_multiply(*count, e->inputs.count, count) &&
                         qg_size_multiply(*count, e->grid_variants.count, count) &&
                         qg_size_multiply(*count, e->sm_counts.count, count));
}

static bool count_models(const qg_plan *plan, const qg_expanded *e, int64_t *count) {
    int64_t nodes = 0;
    for (int64_t i = 0; i < e->models_used.count; i++)
        nodes += plan->models[e->models_used.values[i]].count;
    return qg_size_multiply(nodes, e->seeds.count, count) &&
           qg_size_multiply(*count, product_count(plan, e, &e->crossed_by_models), count);
}

// Counts before crossing: what does not fit the limit is refused without taking memory.
static qg_status check_count(const qg_plan *plan, const qg_expanded *e) {
    int64_t laws = 0, inputs = 0, total = 0, grids = 0, models = 0;
    for (int64_t i = 0; i < e->sources.count; i++)
        laws += plan->sources[e->sources.values[i]]->source.law != NULL;
    bool fits = qg_size_multiply(e->m.count, e->k.count, &inputs) &&
                qg_size_multiply(inputs, laws, &inputs) &&
                qg_size_add(inputs, e->sources.count - laws, &inputs) &&
                qg_size_multiply(inputs, e->inputs.count, &inputs) &&
                qg_size_multiply(inputs, e->seeds.count, &inputs) &&
                count_per_input(plan, e, &total) && qg_size_multiply(total, inputs, &total) &&
                count_grids(e, &grids) && qg_size_add(total, grids, &total) &&
                count_models(plan, e, &models) && qg_size_add(total, models, &total) &&
                qg_size_add(total, e->recorded.count, &total);
    if (!fits || total > QG_PLAN_MOST - plan->considered)
        return qg_fail(QG_ERROR_ARGUMENT, "the sweep has more than %d cases", QG_PLAN_MOST);
    return QG_OK;
}

qg_status qg_plan_cross(qg_plan *plan, const qg_expanded *e) {
    qg_status status = check_count(plan, e);
    return status ? status : cross_all(plan, e);
}
