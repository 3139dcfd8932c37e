// Plots in memory. See plot.h.
#include <plot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void qg_plot_open(qg_plot *plot) {
    *plot = (qg_plot){.panels = 1, .columns = 1};
    qg_plot_axis axis = {.from = NAN, .to = NAN, .exact_at = NAN};
    plot->x = plot->y = axis;
}

void qg_plot_close(qg_plot *plot) {
    for (int64_t i = 0; i < plot->count; i++)
        free(plot->series[i].points);
    free(plot->series);
    qg_plot_open(plot);
}

// Room for one more of `size` bytes; NULL without memory.
static void *grow(void *items, int64_t count, int64_t *room, size_t size) {
    if (count < *room)
        return items;
    int64_t wanted = *room ? 2 * *room : 16;
    void *larger = realloc(items, (size_t)wanted * size);
    if (larger)
        *room = wanted;
    return larger;
}

qg_status qg_plot_add(qg_plot *plot, qg_plot_mark mark, int panel, const char *label,
                      const char *format, const char *rule, int64_t *series) {
    qg_plot_series *items = grow(plot->series, plot->count, &plot->room, sizeof *plot->series);
    if (!items)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the series of a plot");
    plot->series = items;
    qg_plot_series *s = &items[plot->count];
    *s = (qg_plot_series){.mark = mark, .panel = panel};
    snprintf(s->label, sizeof s->label, "%s", label);
    snprintf(s->format, sizeof s->format, "%s", format);
    snprintf(s->rule, sizeof s->rule, "%s", rule);
    *series = plot->count++;
    return QG_OK;
}

qg_status qg_plot_point_add(qg_plot *plot, int64_t series, qg_plot_point point) {
    qg_plot_series *s = &plot->series[series];
    qg_plot_point *points = grow(s->points, s->count, &s->room, sizeof *s->points);
    if (!points)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the points of a plot");
    s->points = points;
    points[s->count++] = point;
    return QG_OK;
}
