// Products of a section: each choice of operand a with operand b, unit, output type and bias, as
// what can run or as a reason to skip it. Those of models are a list of their own: they have no
// bias, and a graph refuses what a single product takes. See plan_internal.h.
#include <plan_internal.h>

#include <near_words.h>
#include <qg_backend_list.h>

#include <fnmatch.h>
#include <string.h>

static const char DEFAULT[] = "default";

const qg_product *qg_plan_product(const qg_plan *plan, int32_t index) {
    return plan->products.items[index];
}

qg_status qg_keep_product(qg_plan *plan, const qg_product *product, int32_t *index) {
    return qg_kept_add(&plan->products, product, sizeof *product, offsetof(qg_product, matrix_unit),
                       index);
}

bool qg_unit_runs_on(const qg_unit *unit, int32_t backend) {
    const char *name = qg_backend_named((size_t)backend);
    return qg_backend_is_emulator(name) != (unit->id == QG_UNIT_NATIVE) &&
           qg_backend_multiplies(name);
}

// ------------------------------------------------------------------------------------------ units

static qg_status push_unit(const qg_unit_item *item, qg_unit_list *list) {
    for (int64_t i = 0; i < list->count; i++)
        if (list->items[i].kind == item->kind && list->items[i].text == item->text) {
            if (!list->items[i].listed)
                list->items[i].listed = item->listed;
            return QG_OK;
        }
    qg_status status = qg_grow(&list->items, list->count, &list->capacity, sizeof *list->items);
    if (!status)
        list->items[list->count++] = *item;
    return status;
}

static bool matches_blocked(const char *glob) {
    const char *name = qg_unit_listed(QG_UNIT_FP32_BLOCKED);
    return fnmatch(glob, name, 0) == 0 || fnmatch(glob, "fp32_blocked:32", 0) == 0;
}

// A glob passes over units that need a number (fp32_blocked:N).
static qg_status check_unit_glob(const char *glob) {
    qg_unit unit;
    for (size_t i = 0; qg_unit_listed(i); i++)
        if (fnmatch(glob, qg_unit_listed(i), 0) == 0 &&
            qg_unit_parse(qg_unit_listed(i), &unit) == QG_OK)
            return QG_OK;
    if (matches_blocked(glob))
        return qg_fail(QG_ERROR_ARGUMENT,
                       "no unit matches '%.60s': fp32_blocked needs its :N, as in fp32_blocked:32",
                       glob);
    return qg_fail(QG_ERROR_ARGUMENT, "no unit matches '%.60s'; --list-names lists all", glob);
}

// The detail of qg_unit_parse, with the units that an unknown one resembles.
static qg_status refuse_unit(const char *word, qg_status status) {
    char base[QG_UNIT_NAME_SIZE];
    bool unknown = strncmp(qg_detail(), "unknown unit", strlen("unknown unit")) == 0;
    if (unknown && !strstr(qg_detail(), "nearest")) {
        snprintf(base, sizeof base, "%.*s", (int)strcspn(word, ":+"), word);
        status = qg_near_unknown("unit", base, qg_unit_listed);
    }
    return qg_near_hint(status, "--list-names lists all");
}

static qg_status parse_unit(const char *word, qg_unit *unit, char name[QG_UNIT_NAME_SIZE]) {
    qg_status status = qg_unit_parse(word, unit);
    if (status)
        return refuse_unit(word, status);
    qg_unit_name(unit, name);
    return QG_OK;
}

static qg_status add_unit_item(qg_plan *plan, const char *word, const char *origin,
                               qg_unit_list *list) {
    char name[QG_UNIT_NAME_SIZE];
    qg_unit_item item = {.kind = QG_UNITS_NAMED};
    qg_status status = QG_OK;
    if (strcmp(word, DEFAULT) == 0)
        item.kind = QG_UNITS_DEFAULT;
    else if (qg_list_is_glob(word))
        item.kind = QG_UNITS_GLOB;
    if (item.kind == QG_UNITS_GLOB)
        status = check_unit_glob(word);
    else if (item.kind == QG_UNITS_NAMED)
        status = parse_unit(word, &item.unit, name);
    if (!status)
        status =
            qg_word_pool_keep(plan->pool, item.kind == QG_UNITS_NAMED ? name : word, &item.text);
    if (!status && item.kind == QG_UNITS_NAMED)
        status = qg_plan_list_value(plan, QG_AXIS_UNIT, item.text, origin, &item.listed);
    return status ? status : push_unit(&item, list);
}

qg_status qg_expand_units(qg_plan *plan, const qg_view *view, qg_expanded *expanded) {
    const qg_option *option = qg_view_option(view, QG_AXIS_UNIT);
    qg_status status = QG_OK;
    if (option->items.count == 0)
        return add_unit_item(plan, DEFAULT, NULL, &expanded->units);
    for (int64_t i = 0; i < option->items.count && !status; i++)
        status = add_unit_item(plan, option->items.items[i], option->origin, &expanded->units);
    return status ? qg_fail_at(option->origin, status) : QG_OK;
}

// --------------------------------------------------------------------------------------- products

// What products differ in by unit alone.
typedef struct pairing {
    qg_plan *plan;
    qg_expanded *expanded;
    const qg_choice *a;
    qg_listed *b_listed, *out_listed;
    const qg_recipe *recipe_a, *recipe_b;
    bool of_model;
    const char *skip;       // NULL, or why an operand is impossible
    const char *refusal;    // NULL, or why a model refuses an operand
    const char *refusal_b;  // NULL, or why it refuses b
    const char *graph_skip; // that, or why it refuses the output type
    qg_product product;     // but for unit and skip
    qg_index_list *crossed; // where its products go, from `first` on
    int64_t first;
} pairing;

// Impossible operands say nothing against a unit or an output type, an impossible a nothing
// against b.
static void note_product(const pairing *p, qg_listed *unit, const char *reason) {
    bool a_fails = qg_plan_variant(p->plan, p->product.a)->skip || p->refusal != p->refusal_b;
    bool operand_fails = p->skip || p->refusal, output_fails = p->graph_skip && !p->refusal;
    qg_note_choice(p->a, reason);
    qg_note_fit(p->b_listed, a_fails ? p->refusal_b : reason);
    qg_note_fit(p->out_listed, operand_fails ? NULL : reason);
    qg_note_fit(unit, operand_fails || output_fails ? NULL : reason);
}

static bool runs_somewhere(const pairing *p, const qg_unit *unit) {
    for (int64_t i = 0; i < p->expanded->backends.count; i++)
        if (qg_unit_runs_on(unit, p->expanded->backends.values[i]))
            return true;
    return false;
}

// The detail of qg_unit_takes, and the modifier that would help where it does not name one.
static qg_status keep_reason(const pairing *p, const qg_unit *unit, const char **reason) {
    char text[512], detail[400];
    qg_unit fitted = *unit;
    snprintf(detail, sizeof detail, "%s", qg_detail());
    snprintf(text, sizeof text, "%s", detail);
    fitted.promote = 0;
    qg_unit_fit(&fitted, p->recipe_a, p->recipe_b);
    if (fitted.promote &&
        qg_unit_takes(&fitted, p->recipe_a, p->recipe_b, 0, p->product.out_type) == QG_OK) {
        char advice[48];
        snprintf(advice, sizeof advice, "+promote:%lld", (long long)fitted.promote);
        const char *found = strstr(detail, advice);
        if (!found || (found[strlen(advice)] >= '0' && found[strlen(advice)] <= '9'))
            snprintf(text, sizeof text, "%s; %s would fit", detail, advice);
    }
    return qg_word_pool_keep(p->plan->pool, text, reason);
}

// The product of the backend itself is the backend's to refuse.
static qg_status find_skip(const pairing *p, const qg_unit *unit, const char **skip) {
    *skip = p->skip;
    if (*skip || unit->id == QG_UNIT_NATIVE ||
        qg_unit_takes(unit, p->recipe_a, p->recipe_b, 0, p->product.out_type) == QG_OK)
        return QG_OK;
    return keep_reason(p, unit, skip);
}

static qg_status add_product(pairing *p, const qg_unit *unit, const char *skip) {
    char name[QG_UNIT_NAME_SIZE];
    int32_t index;
    qg_index_list *crossed = p->crossed;
    p->product.matrix_unit = *unit;
    p->product.skip = skip;
    qg_unit_name(unit, name);
    qg_status status = qg_word_pool_keep(p->plan->pool, name, &p->product.unit);
    if (!status)
        status = qg_keep_product(p->plan, &p->product, &index);
    if (status)
        return status;
    if (p->of_model) // another section may have kept it
        ((qg_product *)p->plan->products.items[index])->graph_skip = p->graph_skip;
    for (int64_t i = p->first; i < crossed->count; i++)
        if (crossed->values[i] == index)
            return QG_OK;
    if (crossed->count >= QG_PLAN_MOST)
        return qg_fail(QG_ERROR_ARGUMENT, "the sweep has more than %d cases", QG_PLAN_MOST);
    return qg_index_append(crossed, index);
}

static qg_status no_backend(const pairing *p, const qg_unit_item *item) {
    char text[200];
    const char *reason;
    if (!item->listed)
        return QG_OK;
    snprintf(text, sizeof text,
             item->unit.id == QG_UNIT_NATIVE
                 ? "the emulator has no unit native: it is the product of other backends"
                 : "only backend emulator has it: the others have unit native alone");
    qg_status status = qg_word_pool_keep(p->plan->pool, text, &reason);
    qg_note_fit(item->listed, reason);
    return status;
}

// A unit as it was written out.
static qg_status add_named(pairing *p, const qg_unit_item *item) {
    const char *skip;
    if (!runs_somewhere(p, &item->unit))
        return no_backend(p, item);
    qg_status status = find_skip(p, &item->unit, &skip);
    if (status)
        return status;
    note_product(p, item->listed, skip ? skip : p->graph_skip);
    return add_product(p, &item->unit, skip);
}

// A unit of a glob or of the default: with the promotion that it needs, or left out.
static qg_status add_fitted(pairing *p, const char *name) {
    qg_unit unit;
    const char *skip;
    if (qg_unit_parse(name, &unit) != QG_OK || !runs_somewhere(p, &unit))
        return QG_OK;
    if (!p->skip)
        qg_unit_fit(&unit, p->recipe_a, p->recipe_b);
    qg_status status = find_skip(p, &unit, &skip);
    if (status)
        return status;
    note_product(p, NULL, skip ? skip : p->graph_skip);
    // Operands that are impossible are shown once or twice, not for every unit of the hardware.
    bool impossible = p->skip || p->graph_skip;
    bool shown = impossible ? qg_unit_is_software(unit.id) : !skip;
    return shown ? add_product(p, &unit, skip) : QG_OK;
}

static qg_status add_default(pairing *p) {
    qg_status status = add_fitted(p, "exact");
    if (!status)
        status = add_fitted(p, "fp32_sequential");
    for (int id = 0; id < QG_UNIT_COUNT && !status; id++)
        if (!qg_unit_is_software(id))
            status = add_fitted(p, qg_unit_listed((size_t)id));
    return status;
}

static qg_status add_matching(pairing *p, const char *glob) {
    qg_status status = QG_OK;
    for (size_t i = 0; qg_unit_listed(i) && !status; i++)
        if (fnmatch(glob, qg_unit_listed(i), 0) == 0)
            status = add_fitted(p, qg_unit_listed(i));
    return status;
}

static qg_status add_units(pairing *p) {
    qg_status status = QG_OK;
    p->first = p->crossed->count;
    for (int64_t i = 0; i < p->expanded->units.count && !status; i++) {
        const qg_unit_item *item = &p->expanded->units.items[i];
        status = item->kind == QG_UNITS_DEFAULT ? add_default(p)
                 : item->kind == QG_UNITS_GLOB  ? add_matching(p, item->text)
                                                : add_named(p, item);
    }
    return status;
}

// The unit varies fastest: consecutive cases share their quantized operands.
static qg_status cross_outputs(pairing *p, int32_t bias) {
    qg_status status = QG_OK;
    const qg_expanded *e = p->expanded;
    p->product.bias = bias;
    for (int64_t o = 0; o < e->out_types.count && !status; o++) {
        int32_t type = e->out_types.values[o];
        p->product.out_type = qg_input_format((size_t)type);
        p->out_listed = e->out_listed[type];
        p->graph_skip = p->refusal;
        if (p->of_model && !p->refusal)
            status = qg_model_refuses_output(p->plan, p->product.out_type, &p->graph_skip);
        if (!status)
            status = add_units(p);
    }
    return status;
}

static qg_status cross_products(pairing *p) {
    qg_expanded *e = p->expanded;
    qg_status status = QG_OK;
    p->crossed = &e->crossed;
    for (int64_t b = 0; b < e->bias.count && e->products && !status; b++)
        status = cross_outputs(p, (int32_t)e->bias.values[b]);
    if (status || !e->models)
        return status;
    p->of_model = true;
    p->crossed = &e->crossed_by_models;
    status = qg_model_refuses(p->plan, qg_plan_variant(p->plan, p->product.b), true, &p->refusal_b);
    if (!status)
        status =
            qg_model_refuses(p->plan, qg_plan_variant(p->plan, p->product.a), false, &p->refusal);
    p->refusal = p->refusal ? p->refusal : p->refusal_b;
    return status ? status : cross_outputs(p, 0);
}

static qg_status find_operands(pairing *p, const qg_plan_format *format_b) {
    int32_t b = p->a->variant;
    qg_status status = format_b ? qg_keep_variant_b(p->plan, p->a, format_b, &b) : QG_OK;
    if (status)
        return status;
    const qg_variant *va = qg_plan_variant(p->plan, p->a->variant);
    const qg_variant *vb = qg_plan_variant(p->plan, b);
    p->product = (qg_product){.a = p->a->variant, .b = b};
    p->recipe_a = &va->recipe;
    p->recipe_b = &vb->recipe;
    p->b_listed = format_b ? format_b->listed : NULL;
    p->skip = va->skip;
    if (va->skip || !vb->skip)
        return QG_OK;
    char text[512];
    snprintf(text, sizeof text, "operand b, %s: %s", vb->format, vb->skip);
    return qg_word_pool_keep(p->plan->pool, text, &p->skip);
}

qg_status qg_expand_products(qg_plan *plan, qg_expanded *expanded) {
    const qg_format_list *list = &expanded->formats_b;
    int64_t count = list->count ? list->count : 1;
    qg_status status = QG_OK;
    for (int64_t i = 0; i < expanded->choices.count; i++)
        for (int64_t j = 0; j < count && !status; j++) {
            pairing p = {.plan = plan, .expanded = expanded, .a = &expanded->choices.items[i]};
            status = find_operands(&p, list->count ? &list->items[j] : NULL);
            if (!status)
                status = cross_products(&p);
        }
    return status;
}
