// See plot_layout.h. Widths of texts are estimates for a sans face; they err on the wide side.
#include <plot_layout.h>

#include <math.h>
#include <string.h>

static const double EDGE = 3;         // around everything
static const double LINE = 11;        // a line of 8 pt labels
static const double SMALL_LINE = 9.5; // a line of 7 pt tics and key
static const double SMALL_CHAR = 4.2; // a character of 7 pt
static const double KEY_SAMPLE = 25.5, KEY_CHAR = 4.55;

bool qg_plot_mark_has_line(qg_plot_mark mark) {
    return mark == QG_PLOT_THEORY || mark == QG_PLOT_JOINED || mark == QG_PLOT_BOUND ||
           mark == QG_PLOT_RUG;
}

bool qg_plot_mark_has_points(qg_plot_mark mark) {
    return mark == QG_PLOT_MEASURED || mark == QG_PLOT_JOINED;
}

// Bytes that begin a character of UTF-8.
static int characters(const char *text) {
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

static double small_width(const char *text) { return SMALL_CHAR * characters(text); }

// ------------------------------------------------------------------------------------------ bounds

typedef struct extent {
    double least, most;
    bool has_zero;
} extent;

static void take(extent *e, double value, bool is_log) {
    if (!isfinite(value))
        return;
    if (is_log && value <= 0) {
        e->has_zero = true;
        return;
    }
    e->least = isnan(e->least) || value < e->least ? value : e->least;
    e->most = isnan(e->most) || value > e->most ? value : e->most;
}

// Reference slopes and vertical lines do not widen the axes.
static extent extent_of(const qg_plot *plot, bool of_x) {
    extent e = {NAN, NAN, false};
    bool is_log = (of_x ? plot->x.scale : plot->y.scale) != QG_PLOT_LINEAR;
    for (int64_t i = 0; i < plot->count; i++) {
        const qg_plot_series *s = &plot->series[i];
        if (s->mark == QG_PLOT_SLOPE || s->mark == QG_PLOT_VERTICAL)
            continue;
        if (s->mark == QG_PLOT_BAR && !of_x && !is_log)
            take(&e, 0, false);
        for (int64_t j = 0; j < s->count; j++) {
            take(&e, of_x ? s->points[j].x : s->points[j].y, is_log);
            if (!of_x && s->mark != QG_PLOT_CELL && s->points[j].low > 0) {
                take(&e, s->points[j].low, is_log);
                take(&e, s->points[j].high, is_log);
            }
        }
    }
    return e;
}

static qg_plot_view view_of(const qg_plot *plot, const qg_plot_axis *axis, bool of_x) {
    extent e = extent_of(plot, of_x);
    qg_plot_view v = {axis->from, axis->to, axis->exact_at, false};
    bool is_log = axis->scale != QG_PLOT_LINEAR;
    double base = axis->scale == QG_PLOT_LOG2 ? 2 : 10;
    if (isnan(e.least)) {
        e.least = is_log ? 1 : 0;
        e.most = base;
    }
    if (axis->name_count > 0) {
        v.from = isnan(v.from) ? -0.6 : v.from;
        v.to = isnan(v.to) ? axis->name_count - 0.4 : v.to;
        return v;
    }
    if (is_log && e.has_zero && isnan(v.exact_at))
        v.exact_at = (isnan(v.from) ? e.least : v.from) / pow(base, 0.7);
    if (is_log && !isnan(v.exact_at) && !(v.from <= v.exact_at))
        v.from = v.exact_at / pow(base, 0.3);
    double pad = is_log ? pow(e.most / e.least, 0.04) : 0.04 * (e.most - e.least);
    if (e.most == e.least)
        pad = is_log ? sqrt(base) : 0.5;
    if (isnan(v.from))
        v.from = is_log ? e.least / pad : e.least == 0 ? 0 : e.least - pad;
    if (isnan(v.to))
        v.to = is_log ? e.most * pad : e.most + pad;
    return v;
}

static void find_colours(const qg_plot *plot, qg_plot_layout *l) {
    extent e = {NAN, NAN, false};
    for (int64_t i = 0; i < plot->count; i++)
        for (int64_t j = 0; plot->series[i].mark == QG_PLOT_CELL && j < plot->series[i].count; j++)
            take(&e, plot->series[i].points[j].z, false);
    l->has_cells = plot->colour_label[0] != '\0';
    l->colour_from = isnan(e.least) ? 0 : e.least;
    l->colour_to = isnan(e.most) || e.most == e.least ? l->colour_from + 1 : e.most;
}

// ------------------------------------------------------------------------------------------ key

static bool is_in_key(const qg_plot_series *s) {
    return s->label[0] && s->mark != QG_PLOT_CELL && s->mark != QG_PLOT_VERTICAL &&
           s->mark != QG_PLOT_SLOPE && s->count > 0;
}

static void find_entries(const qg_plot *plot, qg_plot_layout *l) {
    for (int64_t i = 0; i < plot->count; i++) {
        const qg_plot_series *s = &plot->series[i];
        int found = 0;
        if (!is_in_key(s))
            continue;
        while (found < l->entries && strcmp(plot->series[l->entry[found].series].label, s->label))
            found++;
        if (found == QG_PLOT_ENTRIES)
            return;
        if (found == l->entries)
            l->entry[l->entries++] = (qg_plot_entry){i, false, false};
        l->entry[found].has_line |= qg_plot_mark_has_line(s->mark);
        l->entry[found].has_points |= qg_plot_mark_has_points(s->mark);
    }
}

// What gnuplot reserves for an entry: it counts characters.
static double entry_width(const qg_plot *plot, const qg_plot_layout *l) {
    int longest = 0;
    for (int i = 0; i < l->entries; i++) {
        int length = characters(plot->series[l->entry[i].series].label);
        longest = length > longest ? length : longest;
    }
    return KEY_SAMPLE + KEY_CHAR * longest;
}

// Rows of a key below: as few as fit, and evenly filled.
static int key_rows(const qg_plot *plot, qg_plot_layout *l) {
    if (plot->key != QG_PLOT_KEY_BELOW || l->entries == 0)
        return 0;
    int most = (int)((l->width - 2 * EDGE) / entry_width(plot, l));
    most = most < 1 ? 1 : most > l->entries ? l->entries : most;
    int rows = (l->entries + most - 1) / most;
    l->key_columns = (l->entries + rows - 1) / rows;
    return rows;
}

// ---------------------------------------------------------------------------------------- panels

static double names_width(const qg_plot_axis *axis) {
    double widest = 0;
    for (int i = 0; i < axis->name_count; i++) {
        double width = small_width(axis->names[i]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

// The width of the y axis' tic labels.
static double tics_width(const qg_plot_axis *axis, const qg_plot_view *view) {
    double width = axis->scale == QG_PLOT_LINEAR ? 17 : 19;
    if (axis->name_count > 0)
        width = names_width(axis);
    if (!isnan(view->exact_at))
        width = fmax(width, small_width("exact"));
    return width;
}

static bool has_titles(const qg_plot *plot) {
    for (int i = 0; i < plot->panels; i++)
        if (plot->panel_title[i][0])
            return true;
    return false;
}

static void place_panels(const qg_plot *plot, qg_plot_layout *l, const qg_plot_box *area,
                         double title) {
    const double column_gap = 9, row_gap = 6;
    double width = (area->right - area->left - column_gap * (l->columns - 1)) / l->columns;
    double height = (area->top - area->bottom - row_gap * (l->rows - 1)) / l->rows - title;
    for (int i = 0; i < plot->panels; i++) {
        int column = i % l->columns, row = i / l->columns;
        qg_plot_box *b = &l->panel[i];
        b->left = area->left + column * (width + column_gap);
        b->right = b->left + width;
        b->top = area->top - title - row * (height + title + row_gap);
        b->bottom = b->top - height;
    }
}

void qg_plot_lay_out(const qg_plot *plot, double width, double height, qg_plot_layout *out) {
    qg_plot_layout l = {.width = width, .height = height, .key_columns = 1};
    l.x = view_of(plot, &plot->x, true);
    l.y = view_of(plot, &plot->y, false);
    l.columns = plot->columns > 0 ? plot->columns : 1;
    l.rows = (plot->panels + l.columns - 1) / l.columns;
    find_entries(plot, &l);
    find_colours(plot, &l);
    qg_plot_box area = {EDGE, width - EDGE - 6, EDGE, height - EDGE - 2};
    // Texts that do not fit are cut; they do not take the room of the panels.
    area.left += fmin(tics_width(&plot->y, &l.y), 0.45 * width) + 6 + (plot->y.label[0] ? LINE : 0);
    if (plot->key == QG_PLOT_KEY_BESIDE && l.entries > 0) {
        area.right = width - EDGE - entry_width(plot, &l);
        l.key_x = area.right + 3;
        l.key_y = area.top;
    }
    if (l.has_cells) {
        l.colours = (qg_plot_box){area.right - 32, area.right - 26, 0, 0};
        area.right -= 40;
    }
    int rows = key_rows(plot, &l);
    l.key_x = rows ? width / 2 : l.key_x;
    l.key_y = rows ? EDGE : l.key_y;
    area.bottom += rows ? rows * SMALL_LINE + 1 : 0;
    l.xlabel_y = area.bottom + LINE / 2;
    area.bottom += (plot->x.label[0] ? LINE : 0) + 3;
    double names = names_width(&plot->x), room = (area.right - area.left) / l.columns;
    l.x.turned = plot->x.name_count > 0 && (names + 4) * plot->x.name_count > room;
    area.bottom += l.x.turned ? fmin(0.6 * names + 5, height / 4) : SMALL_LINE;
    place_panels(plot, &l, &area, has_titles(plot) ? LINE : 0);
    l.colours.bottom = l.panel[plot->panels - 1].bottom;
    l.colours.top = l.panel[0].top;
    *out = l;
}
