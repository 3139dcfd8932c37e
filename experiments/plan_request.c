// Requests: the options of a sweep by section, as typed. See qg_plan_build.h.
#include <plan_internal.h>

#include <near_words.h>

#include <stdlib.h>
#include <string.h>

qg_status qg_fail_at(const char *origin, qg_status status) {
    char detail[512];
    snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_fail(status, "%s: %s", origin, detail);
}

qg_status qg_grow(void *array, int64_t count, int64_t *capacity, size_t size) {
    void *grown;
    memcpy(&grown, array, sizeof grown);
    if (count < *capacity)
        return QG_OK;
    int64_t wanted = *capacity ? 2 * *capacity : 16;
    grown = realloc(grown, (size_t)wanted * size);
    if (!grown)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return QG_OK;
}

// ----------------------------------------------------------------------------------------- levels

static const qg_level LEVELS[] = {
    {"smoke",   "1,17,64",     "16",  "120,128,1024",       0,       0        },
    {"default", "16,128,1168", "64",  "128,1000,4096,5120", 0,       0        },
    {"paper",   "1:4096:*2",   "256", "32:65536:*2",        1 << 24, 1ll << 31},
};

enum { LEVEL_COUNT = sizeof LEVELS / sizeof LEVELS[0] };

const qg_level *qg_level_listed(size_t i) { return i < LEVEL_COUNT ? &LEVELS[i] : NULL; }

qg_status qg_level_find(const char *name, const qg_level **out) {
    for (size_t i = 0; i < LEVEL_COUNT; i++)
        if (strcmp(LEVELS[i].name, name) == 0) {
            *out = &LEVELS[i];
            return QG_OK;
        }
    return qg_fail(QG_ERROR_ARGUMENT, "unknown level '%.40s'; known: smoke, default, paper", name);
}

// --------------------------------------------------------------------------------------- sections

static void free_section(qg_section *section) {
    for (int axis = 0; axis < QG_AXIS_COUNT; axis++) {
        qg_list_free(&section->axis[axis].items);
        free(section->axis[axis].origin);
    }
    qg_list_free(&section->level.items);
    free(section->level.origin);
    qg_expressions_free(&section->where);
    qg_expressions_free(&section->exclude);
    free(section->origin);
}

qg_status qg_plan_request_create(qg_plan_request **out) {
    *out = calloc(1, sizeof **out);
    return *out ? QG_OK : qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
}

void qg_plan_request_free(qg_plan_request *request) {
    if (!request)
        return;
    free_section(&request->command);
    for (int64_t i = 0; i < request->count; i++)
        free_section(&request->sections[i]);
    free(request->sections);
    free(request);
}

qg_status qg_request_add_section(qg_plan_request *request, const char *origin, qg_section **out) {
    qg_section *grown =
        realloc(request->sections, (size_t)(request->count + 1) * sizeof *request->sections);
    if (!grown)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    request->sections = grown;
    grown[request->count] = (qg_section){.origin = strdup(origin)};
    if (!grown[request->count].origin)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    *out = &grown[request->count++];
    return QG_OK;
}

// ---------------------------------------------------------------------------------------- options

static const char *option_name(size_t i) {
    static const char *const others[] = {"level", "where", "exclude"};
    for (int axis = 0; axis < QG_AXIS_COUNT; axis++)
        if (qg_axis_describe((qg_axis)axis)->option && i-- == 0)
            return qg_axis_describe((qg_axis)axis)->option;
    return i < sizeof others / sizeof others[0] ? others[i] : NULL;
}

static qg_status unknown_option(const char *option) {
    char near[200];
    if (qg_near_words(option, option_name, near, sizeof near))
        return qg_fail(QG_ERROR_ARGUMENT, "'%.40s' is no option of a plan; the nearest %s %s",
                       option, strstr(near, ", ") ? "are" : "is", near);
    return qg_fail(QG_ERROR_ARGUMENT, "'%.40s' is no option of a plan; --help lists the options",
                   option);
}

static qg_status keep_origin(qg_option *option, const char *origin) {
    if (option->origin)
        return QG_OK;
    option->origin = strdup(origin);
    return option->origin ? QG_OK : qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
}

static qg_status set_level(qg_section *section, const char *value, const char *origin) {
    const qg_level *level;
    qg_status status = qg_level_find(value, &level);
    if (status)
        return status;
    qg_list_free(&section->level.items);
    status = keep_origin(&section->level, origin);
    return status ? status : qg_list_add(&section->level.items, value);
}

// A column of results is no column of a plan.
static qg_status add_expression(qg_expressions *expressions, const char *value) {
    qg_status status = qg_expressions_add(expressions, value, qg_axis_columns);
    return qg_near_hint(status, "--list-names lists the columns of a plan");
}

static qg_status set_option(qg_section *section, const char *option, const char *value,
                            const char *origin) {
    if (strcmp(option, "level") == 0)
        return set_level(section, value, origin);
    if (strcmp(option, "where") == 0)
        return add_expression(&section->where, value);
    if (strcmp(option, "exclude") == 0)
        return add_expression(&section->exclude, value);
    int axis = qg_axis_of_option(option);
    if (axis < 0)
        return unknown_option(option);
    qg_status status = keep_origin(&section->axis[axis], origin);
    return status ? status : qg_list_split(value, &section->axis[axis].items);
}

qg_status qg_section_set(qg_section *section, const char *option, const char *value,
                         const char *origin) {
    qg_status status = set_option(section, option, value, origin);
    return status ? qg_fail_at(origin, status) : QG_OK;
}

qg_status qg_plan_request_set(qg_plan_request *request, const char *option, const char *value) {
    char origin[64];
    snprintf(origin, sizeof origin, "--%.40s", option);
    return qg_section_set(&request->command, option, value, origin);
}

const qg_option *qg_view_option(const qg_view *view, qg_axis axis) {
    const qg_option *option = &view->command->axis[axis];
    return option->items.count ? option : &view->section->axis[axis];
}
