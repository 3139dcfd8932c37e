// The kernel grids of a section: one variant per format and layout, whatever rules and roundings
// cross them, and the source of cases that have no data. See plan_internal.h.
//
// Layouts other than group:G are not in the plan beside operations that have them; in a section of
// grids alone they are SKIPPED.
#include <plan_internal.h>

static qg_status add_variant(qg_plan *plan, const qg_choice *choice, qg_expanded *e) {
    int32_t index;
    bool beside_others = e->tensors || e->products || e->models;
    if (choice->layout.layout.kind != QG_LAYOUT_GROUP && beside_others)
        return QG_OK;
    qg_status status = qg_keep_grid_variant(plan, choice, &index);
    if (status)
        return status;
    const char *skip = qg_plan_variant(plan, index)->skip;
    qg_note_fit(choice->format->listed, skip);
    qg_note_fit(choice->layout.listed, skip);
    return qg_index_add(&e->grid_variants, index);
}

qg_status qg_expand_grids(qg_plan *plan, qg_expanded *e) {
    qg_plan_source nothing = {.typed = ""};
    qg_status status = qg_word_pool_keep(plan->pool, "", &nothing.source.data);
    nothing.source.tensor = nothing.source.data;
    if (!status)
        status = qg_keep_source(plan, &nothing, &e->grid_source);
    for (int64_t i = 0; i < e->choices.count && !status; i++)
        status = add_variant(plan, &e->choices.items[i], e);
    return status;
}
