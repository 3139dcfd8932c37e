// Lever and routes of a sweep. See group_route.h.
//
// The file is read once; the rows in use stay until another recipe or input type takes their place.
// The device is asked for in the worker alone: its context would not survive a fork.
#include <group_route.h>

#include <message.h>
#include <qg_cuda.h>
#include <qg_format_name.h>
#include <route_file.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

int group_lever_choose(const char *option) {
    qg_kernel_lever lever;
    qg_status status =
        option ? qg_kernel_lever_parse(option, &lever) : qg_kernel_lever_of_environment(&lever);
    if (status) {
        qg_message_error("%s%s", option ? "--group-kernel: " : "", qg_detail());
        return qg_message_exit_code(status);
    }
    qg_cuda_use_lever(lever);
    return 0;
}

typedef struct state {
    bool read;
    char gpu[ROUTE_GPU_SIZE];
    route_list list;
    char recipe[ROUTE_RECIPE_SIZE], input[QG_NAME_SIZE]; // whose rows are in use
    qg_route_row *rows;
    qg_route route;
} state;

static qg_status read_file(state *s) {
    char path[PATH_MAX];
    const qg_cuda_device *device = NULL;
    if (!qg_cuda_open(&device, NULL, NULL) || !device)
        return QG_OK; // the case says so
    snprintf(s->gpu, sizeof s->gpu, "%.*s", ROUTE_GPU_SIZE - 1, device->name);
    qg_status status = route_file_path(s->gpu, path, sizeof path);
    return status ? status : route_file_read(path, &s->list);
}

static qg_status use_rows(state *s, const char *recipe, const char *input) {
    qg_route_row *rows;
    size_t count;
    qg_status status = route_pick(&s->list, s->gpu, recipe, input, &rows, &count);
    if (status)
        return status;
    free(s->rows);
    s->rows = rows;
    s->route = (qg_route){rows, count};
    snprintf(s->recipe, sizeof s->recipe, "%s", recipe);
    snprintf(s->input, sizeof s->input, "%s", input);
    qg_cuda_use_route(count ? &s->route : NULL);
    return QG_OK;
}

qg_status group_route_use(const qg_case *c) {
    static state s;
    char recipe[ROUTE_RECIPE_SIZE], input[QG_NAME_SIZE];
    if (strcmp(c->backend, "cuda") != 0)
        return QG_OK;
    if (!s.read) { // again after a failure: each case says why
        qg_status status = read_file(&s);
        if (status)
            return status;
        s.read = true;
    }
    if (s.list.count == 0)
        return QG_OK;
    qg_format_name(c->input_type, input);
    route_recipe(c->format, c->layout, c->scale_rule, c->rounding, recipe);
    if (s.rows && strcmp(recipe, s.recipe) == 0 && strcmp(input, s.input) == 0)
        return QG_OK;
    return use_rows(&s, recipe, input);
}
