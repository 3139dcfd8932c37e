// Which axes the operations of a section have: an option that none of them has is a mistake. See
// plan_internal.h.
#include <plan_internal.h>

bool qg_kind_has(qg_op_kind kind, qg_axis axis) {
    switch (axis) {
    case QG_AXIS_OP:
    case QG_AXIS_FORMAT: return true;
    case QG_AXIS_BACKEND: return kind != QG_OP_GRID;
    case QG_AXIS_LAYOUT: return kind != QG_OP_RECORDING;
    case QG_AXIS_INPUT_TYPE:
    case QG_AXIS_M:
    case QG_AXIS_K: return kind != QG_OP_RECORDING && kind != QG_OP_MODEL;
    case QG_AXIS_SM_COUNT: return kind == QG_OP_GRID;
    case QG_AXIS_FORMAT_B:
    case QG_AXIS_UNIT:
    case QG_AXIS_OUT_TYPE: return kind == QG_OP_PRODUCT || kind == QG_OP_MODEL;
    case QG_AXIS_HAS_BIAS:
    case QG_AXIS_N: return kind == QG_OP_PRODUCT;
    default: return kind != QG_OP_RECORDING && kind != QG_OP_GRID;
    }
}

static bool section_has(const qg_expanded *e, qg_axis axis) {
    for (int64_t i = 0; i < e->ops.count; i++)
        if (qg_kind_has(qg_op_listed((size_t)e->ops.values[i])->kind, axis))
            return true;
    return false;
}

static qg_status refuse(const qg_option *option, qg_axis axis) {
    char ops[160] = "";
    size_t length = 0;
    for (size_t i = 0; qg_op_listed(i) && length < sizeof ops; i++)
        if (qg_kind_has(qg_op_listed(i)->kind, axis))
            length += (size_t)snprintf(ops + length, sizeof ops - length, "%s%s",
                                       length ? " or " : " (--ops ", qg_op_listed(i)->name);
    return qg_fail(QG_ERROR_ARGUMENT, "%s: no operation of the sweep has %s%s%s", option->origin,
                   qg_axis_describe(axis)->option, ops, length ? ")" : "");
}

qg_status qg_check_section_axes(qg_plan *plan, const qg_view *view, const qg_expanded *expanded) {
    for (int i = 0; i < QG_AXIS_COUNT; i++) {
        const qg_option *option = &view->section->axis[i];
        if (section_has(expanded, (qg_axis)i))
            plan->command_used[i] = true;
        else if (option->items.count)
            return refuse(option, (qg_axis)i);
    }
    return QG_OK;
}

qg_status qg_check_command_axes(const qg_plan *plan, const qg_section *command) {
    for (int i = 0; i < QG_AXIS_COUNT; i++)
        if (command->axis[i].items.count && !plan->command_used[i])
            return refuse(&command->axis[i], (qg_axis)i);
    return QG_OK;
}
