// See plot_look.h.
#include <plot_look.h>

#include <plot_layout.h>
#include <plot_style.h>

#include <string.h>

static const char GREY[] = "#8c8c8c";

static bool is_grey(qg_plot_mark mark) {
    return mark == QG_PLOT_BOUND || mark == QG_PLOT_SLOPE || mark == QG_PLOT_VERTICAL;
}

static bool is_taken(const qg_plot *plot, const char *colour) {
    for (int64_t i = 0; i < plot->count; i++) {
        const char *own = qg_plot_colour_of(plot->series[i].format);
        if (own && strcmp(own, colour) == 0)
            return true;
    }
    return false;
}

static const char *free_colour(const qg_plot *plot, int which) {
    for (int i = 0, free = 0; i < QG_PLOT_COLOURS; i++)
        if (!is_taken(plot, qg_plot_colour_at(i)) && free++ == which)
            return qg_plot_colour_at(i);
    return qg_plot_colour_at(which);
}

static const char *key_of(const qg_plot_series *s) { return s->format[0] ? s->format : s->label; }

// How many keys without a colour of their own come before this series' key.
static int colour_index(const qg_plot *plot, int64_t series) {
    int index = 0;
    for (int64_t i = 0; i < plot->count; i++) {
        const qg_plot_series *s = &plot->series[i];
        if (strcmp(key_of(s), key_of(&plot->series[series])) == 0)
            return index;
        bool counts = !is_grey(s->mark) && !qg_plot_colour_of(s->format);
        for (int64_t j = 0; counts && j < i; j++)
            counts = strcmp(key_of(&plot->series[j]), key_of(s)) != 0;
        index += counts;
    }
    return index;
}

static bool same_shape(const qg_plot_series *a, const qg_plot_series *b) {
    return strcmp(a->label, b->label) == 0 && strcmp(a->format, b->format) == 0 &&
           strcmp(a->rule, b->rule) == 0;
}

static int shape_index(const qg_plot *plot, int64_t series) {
    int index = 0;
    for (int64_t i = 0; i < series; i++) {
        const qg_plot_series *s = &plot->series[i];
        if (!qg_plot_mark_has_points(s->mark))
            continue;
        if (same_shape(s, &plot->series[series]))
            return shape_index(plot, i);
        bool first = true;
        for (int64_t j = 0; first && j < i; j++)
            first =
                !qg_plot_mark_has_points(plot->series[j].mark) || !same_shape(&plot->series[j], s);
        index += first;
    }
    return index;
}

qg_plot_look qg_plot_look_of(const qg_plot *plot, int64_t series) {
    const qg_plot_series *s = &plot->series[series];
    qg_plot_look look = {GREY, "(4,3)", qg_plot_shape_at(shape_index(plot, series))};
    if (s->mark == QG_PLOT_SLOPE)
        look.dash = "1";
    if (s->mark == QG_PLOT_VERTICAL) {
        look.dash = "(1,2)";
        look.colour = qg_plot_colour_of(s->format) ? qg_plot_colour_of(s->format) : GREY;
    }
    if (is_grey(s->mark))
        return look;
    look.dash = qg_plot_dash_of(s->rule);
    look.colour = qg_plot_colour_of(s->format);
    if (!look.colour)
        look.colour = free_colour(plot, colour_index(plot, series));
    return look;
}
