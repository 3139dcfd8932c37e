// The plan: sections united, each case once, in an order that keeps equal inputs together.
//
// Records (a few indices) are crossed, filtered, sorted and made unique; only then do cases take
// memory and identities. See qg_plan.h and qg_plan_build.h.
#include <plan_internal.h>

#include <qg_backend_list.h>
#include <qg_size.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// Sizes beyond this leave no room for the bytes of their elements.
static const int64_t MOST_ELEMENTS = INT64_MAX / 64;

int64_t qg_plan_count(const qg_plan *plan) { return plan->count; }
const qg_case *qg_plan_case(const qg_plan *plan, int64_t order) { return &plan->cases[order]; }
const char *qg_plan_text(const qg_plan *plan) { return plan->text; }
int64_t qg_plan_considered(const qg_plan *plan) { return plan->considered; }

void qg_plan_free(qg_plan *plan) {
    if (!plan)
        return;
    for (int64_t i = 0; i < plan->listed_count; i++)
        free(plan->listed[i]);
    for (int64_t i = 0; i < plan->source_count; i++) {
        qg_law_free(plan->sources[i]->law);
        free(plan->sources[i]);
    }
    for (int64_t i = 0; i < plan->file_count; i++)
        qg_tensor_file_close(plan->files[i].file);
    free(plan->listed);
    qg_kept_free(&plan->variants);
    qg_kept_free(&plan->products);
    free(plan->sources);
    free(plan->files);
    free(plan->records);
    free(plan->cases);
    free(plan->text);
    qg_word_pool_free(plan->pool);
    free(plan);
}

// -------------------------------------------------------------------------------- listed values

qg_status qg_plan_list_value(qg_plan *plan, qg_axis axis, const char *value, const char *origin,
                             qg_listed **out) {
    for (int64_t i = 0; i < plan->listed_count; i++)
        if (plan->listed[i]->axis == axis && strcmp(plan->listed[i]->value, value) == 0) {
            *out = plan->listed[i];
            return QG_OK;
        }
    qg_status status =
        qg_grow(&plan->listed, plan->listed_count, &plan->listed_capacity, sizeof *plan->listed);
    if (status)
        return status;
    qg_listed *listed = calloc(1, sizeof *listed);
    if (!listed)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    plan->listed[plan->listed_count++] = listed;
    listed->axis = axis;
    listed->fits = axis == QG_AXIS_DATA && strncmp(value, "tensors:", 8) != 0;
    status = qg_word_pool_keep(plan->pool, value, &listed->value);
    if (!status)
        status = qg_word_pool_keep(plan->pool, origin, &listed->origin);
    *out = listed;
    return status;
}

// A value that fits nothing is a mistake; of several, the most telling is named.
static qg_status check_listed(const qg_plan *plan) {
    static const qg_axis order[] = {QG_AXIS_UNIT,   QG_AXIS_FORMAT_B,   QG_AXIS_OUT_TYPE,
                                    QG_AXIS_LAYOUT, QG_AXIS_SCALE_RULE, QG_AXIS_ROUNDING,
                                    QG_AXIS_FORMAT, QG_AXIS_DATA};
    for (size_t a = 0; a < sizeof order / sizeof order[0]; a++)
        for (int64_t i = 0; i < plan->listed_count; i++) {
            const qg_listed *listed = plan->listed[i];
            if (listed->axis == order[a] && !listed->fits)
                return qg_fail(QG_ERROR_ARGUMENT, "%s: '%.100s' fits nothing in the sweep: %s",
                               listed->origin, listed->value,
                               listed->reason ? listed->reason : "no case has it");
        }
    return QG_OK;
}

// ----------------------------------------------------------------------------------------- cases

static void add_operand_b(const qg_plan *plan, const qg_product *p, qg_case *out) {
    const qg_variant *b = qg_plan_variant(plan, p->b);
    out->recipe_b = &b->recipe;
    out->format_b = b->format;
    out->layout_b = b->layout;
    out->scale_rule_b = b->scale_rule;
    out->unit = p->unit;
    out->matrix_unit = &p->matrix_unit;
    out->out_type = p->out_type;
    out->bias = p->bias != 0;
    if (!out->skip)
        out->skip = p->skip;
}

void qg_record_case(const qg_plan *plan, const qg_record *record, qg_case *out) {
    const qg_variant *v = qg_plan_variant(plan, record->variant);
    const qg_plan_source *s = plan->sources[record->source];
    const qg_op *op = qg_op_listed(record->op);
    bool has_backend = qg_kind_has(op->kind, QG_AXIS_BACKEND);
    *out = (qg_case){
        .op = op,
        .recipe = &v->recipe,
        .format = v->format,
        .layout = v->layout,
        .scale_rule = v->scale_rule,
        .scale_format = v->scale_format,
        .rounding = v->rounding,
        .format_b = "",
        .layout_b = "",
        .scale_rule_b = "",
        .unit = "",
        .backend = has_backend ? qg_backend_named(record->backend) : "",
        .data = s->source.data,
        .tensor = s->source.tensor,
        .source = &s->source,
        .input_type = qg_input_format(record->input),
        .out_type = QG_FORMAT_FP32,
        .m = record->m,
        .n = record->n,
        .k = record->k,
        .sm_count = record->sm_count,
        .seed = record->seed,
        // Vectors that cannot be read are no impossible combination: their case runs, and FAILS.
        .skip = s->skipped && !s->source.recording ? s->skipped : v->skip,
        .against_emulator = record->against_emulator,
    };
    if (record->product != QG_NO_PRODUCT)
        add_operand_b(plan, qg_plan_product(plan, record->product), out);
    if (!out->skip && has_backend)
        out->unavailable = qg_backend_unavailable(out->backend);
}

static bool selected(const qg_plan *plan, const qg_expanded *e, const qg_record *record) {
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
    if (!selected(plan, e, record))
        return QG_OK;
    qg_status status =
        qg_grow(&plan->records, plan->record_count, &plan->record_capacity, sizeof *plan->records);
    if (!status)
        plan->records[plan->record_count++] = *record;
    return status;
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

static qg_status cross_units(qg_plan *plan, const qg_expanded *e, qg_record record) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < e->crossed.count; i++) {
        const qg_product *p = qg_plan_product(plan, e->crossed.values[i]);
        record.product = e->crossed.values[i];
        record.variant = p->a;
        for (int64_t b = 0; b < e->backends.count && !status; b++) {
            if (!qg_unit_runs_on(&p->matrix_unit, e->backends.values[b]))
                continue;
            record.backend = (uint8_t)e->backends.values[b];
            status = add_record(plan, e, &record);
        }
    }
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

// The first operation that has data.
static uint8_t first_op(const qg_expanded *e) {
    int64_t i = 0;
    while (!qg_kind_has(qg_op_listed((size_t)e->ops.values[i])->kind, QG_AXIS_DATA))
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

static qg_status cross(qg_plan *plan, const qg_expanded *e) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < e->sources.count && !status; i++) {
        const qg_plan_source *s = plan->sources[e->sources.values[i]];
        qg_record record = {.source = e->sources.values[i], .m = s->source.m, .k = s->source.k};
        status = s->source.law ? cross_sizes(plan, e, record)
                 : s->skipped  ? cross_unreadable(plan, e, record)
                               : cross_inputs(plan, e, record);
    }
    if (!status)
        status = cross_grids(plan, e);
    return status ? status : cross_recordings(plan, e);
}

// Products with the backends that have their units.
static int64_t product_count(const qg_plan *plan, const qg_expanded *e) {
    int64_t count = 0;
    for (int64_t i = 0; i < e->crossed.count; i++) {
        const qg_product *p = qg_plan_product(plan, e->crossed.values[i]);
        for (int64_t b = 0; b < e->backends.count; b++)
            count += qg_unit_runs_on(&p->matrix_unit, e->backends.values[b]);
    }
    return count;
}

// Cases of one input: of every operation.
static bool count_per_input(const qg_plan *plan, const qg_expanded *e, int64_t *count) {
    int64_t tensors, products;
    bool fits = qg_size_multiply(e->choices.count, e->backends.count, &tensors) &&
                qg_size_multiply(product_count(plan, e), e->n.count, &products);
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

// Counts before crossing: what does not fit the limit is refused without taking memory.
static qg_status check_count(const qg_plan *plan, const qg_expanded *e) {
    int64_t laws = 0, inputs = 0, total = 0, grids = 0;
    for (int64_t i = 0; i < e->sources.count; i++)
        laws += plan->sources[e->sources.values[i]]->source.law != NULL;
    bool fits = qg_size_multiply(e->m.count, e->k.count, &inputs) &&
                qg_size_multiply(inputs, laws, &inputs) &&
                qg_size_add(inputs, e->sources.count - laws, &inputs) &&
                qg_size_multiply(inputs, e->inputs.count, &inputs) &&
                qg_size_multiply(inputs, e->seeds.count, &inputs) &&
                count_per_input(plan, e, &total) && qg_size_multiply(total, inputs, &total) &&
                count_grids(e, &grids) && qg_size_add(total, grids, &total) &&
                qg_size_add(total, e->recorded.count, &total);
    if (!fits || total > QG_PLAN_MOST - plan->considered)
        return qg_fail(QG_ERROR_ARGUMENT, "the sweep has more than %d cases", QG_PLAN_MOST);
    return QG_OK;
}

// ------------------------------------------------------------------------------- order, identity

#define COMPARE(field)                                                                             \
    if (a->field != b->field)                                                                      \
    return a->field < b->field ? -1 : 1

// Grids of equal k come together: what is enumerated depends on nothing else of the shape.
static int by_grid(const qg_record *a, const qg_record *b) {
    COMPARE(k);
    COMPARE(input);
    COMPARE(variant);
    COMPARE(m);
    COMPARE(sm_count);
    COMPARE(op);
    return 0;
}

static bool is_grid(const qg_record *record) {
    return qg_op_listed(record->op)->kind == QG_OP_GRID;
}

static int by_place(const void *left, const void *right) {
    const qg_record *a = left, *b = right;
    COMPARE(source);
    if (is_grid(a) && is_grid(b))
        return by_grid(a, b);
    COMPARE(m);
    COMPARE(k);
    COMPARE(input);
    COMPARE(seed);
    COMPARE(op);
    COMPARE(n);
    COMPARE(variant);
    COMPARE(product);
    COMPARE(backend);
    return 0;
}

static void sort_records(qg_plan *plan) {
    int64_t kept = 0;
    if (plan->record_count == 0)
        return;
    qsort(plan->records, (size_t)plan->record_count, sizeof *plan->records, by_place);
    for (int64_t i = 0; i < plan->record_count; i++) {
        if (i == 0 || by_place(&plan->records[i], &plan->records[kept - 1]) != 0)
            plan->records[kept++] = plan->records[i];
        // Of equal cases of two sections one may have the emulator beside it.
        plan->records[kept - 1].against_emulator |= plan->records[i].against_emulator;
    }
    plan->record_count = kept;
}

static int by_id(const void *left, const void *right) {
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

bool qg_ids_collide(uint64_t *ids, int64_t count, uint64_t *collision) {
    qsort(ids, (size_t)count, sizeof *ids, by_id);
    for (int64_t i = 1; i < count; i++)
        if (ids[i] == ids[i - 1]) {
            *collision = ids[i];
            return true;
        }
    return false;
}

static qg_status check_ids(const qg_plan *plan) {
    uint64_t *ids = malloc(((size_t)plan->count + 1) * sizeof *ids), collision = 0;
    if (!ids)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    for (int64_t i = 0; i < plan->count; i++)
        ids[i] = plan->cases[i].id;
    bool collide = qg_ids_collide(ids, plan->count, &collision);
    free(ids);
    if (collide)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "two different cases share the id %016" PRIx64 "; exclude one of them",
                       collision);
    return QG_OK;
}

// Where the parts of +split:N begin depends on k.
static qg_status check_split(const qg_plan *plan, qg_case *c) {
    if (c->skip || c->op->kind != QG_OP_PRODUCT || !c->matrix_unit || c->matrix_unit->split == 0 ||
        qg_unit_takes(c->matrix_unit, c->recipe, c->recipe_b, c->k, c->out_type) == QG_OK)
        return QG_OK;
    c->unavailable = NULL;
    return qg_word_pool_keep(plan->pool, qg_detail(), &c->skip);
}

// A unit that was written out and that no k of the sweep suits fits nothing: check_listed, which does
// not know k, cannot find that.
static qg_status check_split_unit(const qg_plan *plan, const qg_listed *listed) {
    const char *reason = NULL;
    for (int64_t i = 0; i < plan->count; i++) {
        const qg_case *c = &plan->cases[i];
        if (c->unit != listed->value)
            continue;
        if (!c->skip)
            return QG_OK;
        reason = reason ? reason : c->skip;
    }
    return reason ? qg_fail(QG_ERROR_ARGUMENT, "%s: '%.100s' fits nothing in the sweep: %s",
                            listed->origin, listed->value, reason)
                  : QG_OK;
}

static qg_status check_split_units(const qg_plan *plan) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < plan->listed_count && !status; i++)
        if (plan->listed[i]->axis == QG_AXIS_UNIT && strstr(plan->listed[i]->value, "+split:"))
            status = check_split_unit(plan, plan->listed[i]);
    return status;
}

static qg_status make_cases(qg_plan *plan) {
    qg_status status = QG_OK;
    sort_records(plan);
    plan->cases = malloc(((size_t)plan->record_count + 1) * sizeof *plan->cases);
    if (!plan->cases)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    for (int64_t i = 0; i < plan->record_count && !status; i++) {
        qg_case *c = &plan->cases[i];
        qg_record_case(plan, &plan->records[i], c);
        c->order = i;
        c->id = qg_case_identity(c);
        status = check_split(plan, c);
    }
    plan->count = plan->record_count;
    free(plan->records);
    plan->records = NULL;
    plan->record_count = plan->record_capacity = 0;
    return status ? status : check_ids(plan);
}

// --------------------------------------------------------------------------------------- building

static qg_status add_section(qg_plan *plan, const qg_view *view, FILE *text, int *number) {
    qg_expanded e = {0};
    qg_status status = qg_expand(plan, view, &e);
    if (!status)
        status = check_count(plan, &e);
    if (!status)
        status = cross(plan, &e);
    if (!status)
        qg_text_section(text, plan, &e, number);
    qg_expanded_free(&e);
    return status;
}

static qg_status add_sections(qg_plan *plan, const qg_plan_request *request, FILE *text) {
    qg_status status = QG_OK;
    int number = 0;
    if (!request->has_files) {
        qg_view view = {&request->command, &request->command};
        status = add_section(plan, &view, text, &number);
    }
    for (int64_t i = 0; i < request->count && !status; i++) {
        qg_view view = {&request->sections[i], &request->command};
        status = add_section(plan, &view, text, &number);
    }
    if (!status)
        status = qg_check_command_axes(plan, &request->command);
    return status ? status : check_listed(plan);
}

static qg_status write_plan_text(qg_plan *plan, const char *sections) {
    size_t size;
    FILE *stream = open_memstream(&plan->text, &size);
    if (!stream)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan's text");
    qg_text_tensors(stream, plan);
    fputs(sections, stream);
    return fclose(stream) == 0 ? QG_OK
                               : qg_fail(QG_ERROR_MEMORY, "out of memory for the plan's text");
}

static qg_status build(qg_plan *plan, const qg_plan_request *request) {
    char *sections = NULL;
    size_t size;
    FILE *stream = open_memstream(&sections, &size);
    if (!stream)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan's text");
    qg_status status = add_sections(plan, request, stream);
    if (fclose(stream) != 0 && !status)
        status = qg_fail(QG_ERROR_MEMORY, "out of memory for the plan's text");
    if (!status)
        status = write_plan_text(plan, sections);
    free(sections);
    if (!status)
        status = make_cases(plan);
    return status ? status : check_split_units(plan);
}

qg_status qg_plan_build(const qg_plan_request *request, qg_plan **out) {
    *out = NULL;
    qg_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    qg_status status = qg_word_pool_create(&plan->pool);
    if (!status)
        status = build(plan, request);
    if (status) {
        char detail[512];
        snprintf(detail, sizeof detail, "%s", qg_detail());
        qg_plan_free(plan);
        return qg_fail(status, "%s", detail);
    }
    *out = plan;
    return QG_OK;
}

// ------------------------------------------------------------------------------------------ costs

int64_t qg_case_bytes(const qg_case *c) {
    enum { FIXED = 4 << 20 };
    int64_t bytes;
    if (c->skip || c->unavailable)
        return 0;
    return qg_size_add(c->op->bytes(c), FIXED, &bytes) ? bytes : INT64_MAX;
}

double qg_case_cost(const qg_case *c) {
    static const double FIXED = 3000; // what a case takes beside its elements
    if (c->skip || c->unavailable)
        return 0;
    return FIXED + c->op->cost(c);
}
