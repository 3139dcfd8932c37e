// The plan: sections united, each case once, in an order that keeps equal inputs together.
//
// Records (a few indices) are crossed and filtered (plan_cross.c), sorted and made unique; only
// then do cases take memory and identities. See qg_plan.h and qg_plan_build.h.
#include <plan_internal.h>

#include <qg_backend_list.h>
#include <qg_size.h>

#include <inttypes.h>
#include <model.h>
#include <stdlib.h>
#include <string.h>

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
    for (int64_t i = 0; i < plan->model_count; i++)
        model_free(plan->models[i].model);
    free(plan->listed);
    qg_kept_free(&plan->variants);
    qg_kept_free(&plan->products);
    free(plan->sources);
    free(plan->files);
    free(plan->models);
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
    if (!out->skip && out->op->kind == QG_OP_MODEL)
        out->skip = p->graph_skip;
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

// All nodes of one run of a model come together.
static int by_model_run(const qg_record *a, const qg_record *b) {
    COMPARE(seed);
    COMPARE(op);
    COMPARE(variant);
    COMPARE(product);
    COMPARE(backend);
    COMPARE(source);
    return 0;
}

static bool is_of_model(const qg_record *record) {
    return qg_op_listed(record->op)->kind == QG_OP_MODEL;
}

static bool same_model_run(const qg_record *a, const qg_record *b) {
    return a->op == b->op && a->place == b->place && a->seed == b->seed &&
           a->product == b->product && a->backend == b->backend;
}

static int by_place(const void *left, const void *right) {
    const qg_record *a = left, *b = right;
    COMPARE(place);
    if (is_grid(a) && is_grid(b))
        return by_grid(a, b);
    if (is_of_model(a) && is_of_model(b))
        return by_model_run(a, b);
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
static bool suits_split(const qg_case *c) {
    switch (c->op->kind) {
    case QG_OP_PRODUCT:
        return qg_unit_takes(c->matrix_unit, c->recipe, c->recipe_b, c->k, c->out_type) == QG_OK;
    case QG_OP_MODEL: return qg_model_takes_unit(c->source->model, c) == QG_OK;
    default: return true;
    }
}

static qg_status check_split(const qg_plan *plan, qg_case *c) {
    if (c->skip || !c->matrix_unit || c->matrix_unit->split == 0 || suits_split(c))
        return QG_OK;
    c->unavailable = NULL;
    return qg_word_pool_keep(plan->pool, qg_detail(), &c->skip);
}

// A unit that was written out and that no k of the sweep suits fits nothing: check_listed, which
// does not know k, cannot find that.
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

// The identity of a run: that of any of its cases without what the node brings.
static uint64_t run_identity(const qg_case *c) {
    qg_case run = *c;
    run.tensor = "";
    run.m = run.k = 0;
    return qg_case_identity(&run);
}

// Of each run of a model, whose cases follow one another: the first is charged with it, and they
// stay in one shard.
static void bind_runs(qg_plan *plan) {
    int64_t last;
    for (int64_t first = 0; first < plan->record_count; first = last) {
        last = first + 1;
        if (!is_of_model(&plan->records[first]))
            continue;
        while (last < plan->record_count &&
               same_model_run(&plan->records[first], &plan->records[last]))
            last++;
        uint64_t key = run_identity(&plan->cases[first]);
        for (int64_t i = first; i < last; i++) {
            plan->cases[i].is_served = i > first;
            plan->cases[i].shard_key = key;
        }
    }
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
        c->id = c->shard_key = qg_case_identity(c);
        status = check_split(plan, c);
    }
    if (!status)
        bind_runs(plan);
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
        status = qg_plan_cross(plan, &e);
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
