// A plot as a gnuplot script. Everything that is drawn stands in it: the script and the TSV beside it
// redraw the pictures without this program.
//
// Texts stand in single quotes, in which gnuplot expands nothing (double quotes run what is between
// backquotes), and are drawn without markup; only tics that this file makes use markup.
#include <plot_layout.h>
#include <plot_look.h>
#include <plot_write.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PNG_DPI = 300, POINTS_PER_INCH = 72 };

static const char FONT[] = "DejaVu Sans,8";

// A plot being written.
typedef struct script {
    FILE *stream;
    const qg_plot *plot;
    qg_plot_layout layout;
} script;

static void put_quoted(FILE *stream, const char *text) {
    fputc('\'', stream);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', stream);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, stream);
    }
    fputc('\'', stream);
}

// Names of tics pass through printf.
static void put_tic_name(FILE *stream, const char *text) {
    char doubled[2 * QG_PLOT_LABEL];
    size_t length = 0;
    for (; *text && length + 3 < sizeof doubled; text++) {
        doubled[length++] = *text;
        if (*text == '%')
            doubled[length++] = '%';
    }
    doubled[length] = '\0';
    put_quoted(stream, doubled);
}

// Places on the picture, from points to shares of it.
static double across(const script *s, double x) { return x / s->layout.width; }
static double up(const script *s, double y) { return y / s->layout.height; }

// ----------------------------------------------------------------------------------------- series

// A column of numbers; zeros of a log axis go to its marker.
static void put_column(const script *s, const qg_plot_axis *axis, const qg_plot_view *view,
                       int column) {
    if (axis->scale != QG_PLOT_LINEAR && !isnan(view->exact_at))
        fprintf(s->stream, "($%d > 0 ? $%d : %.10g)", column, column, view->exact_at);
    else
        fprintf(s->stream, "%d", column);
}

static void put_x(const script *s) {
    put_column(s, &s->plot->x, &s->layout.x, 4);
    fputc(':', s->stream);
}

static void put_y(const script *s, int column) { put_column(s, &s->plot->y, &s->layout.y, column); }

static bool has_bars(const qg_plot_series *s) {
    for (int64_t i = 0; i < s->count; i++)
        if (s->points[i].high > s->points[i].low)
            return true;
    return false;
}

static void begin_item(const script *s, int64_t series, bool *first) {
    int64_t block = 0; // of the data, which hold no empty series
    for (int64_t i = 0; i < series; i++)
        block += s->plot->series[i].count > 0;
    fprintf(s->stream, "%s DATA index %lld using ", *first ? "" : ", \\\n   ", (long long)block);
    *first = false;
}

static void begin_entry(const script *s, bool *first) {
    fprintf(s->stream, "%s keyentry", *first ? "" : ", \\\n   ");
    *first = false;
}

static const char *line_width(const qg_plot_series *s) {
    switch (s->mark) {
    case QG_PLOT_SLOPE: return "0.7";
    case QG_PLOT_JOINED: return "0.9";
    case QG_PLOT_RUG: return "1.0";
    case QG_PLOT_BOUND: return "1.0";
    default: return s->label[0] ? "1.3" : "1.0";
    }
}

static void put_lines(const script *s, int64_t series, bool *first) {
    qg_plot_look look = qg_plot_look_of(s->plot, series);
    begin_item(s, series, first);
    put_x(s);
    put_y(s, 5);
    fprintf(s->stream, " with lines lw %s lc rgb '%s' dt %s notitle",
            line_width(&s->plot->series[series]), look.colour, look.dash);
}

// A line from the lower to the upper bound; `shift` of x, of bars.
static void put_interval(const script *s, int64_t series, double shift, const char *colour,
                         bool *first) {
    if (!has_bars(&s->plot->series[series]))
        return;
    begin_item(s, series, first);
    if (shift == 0)
        put_x(s);
    else
        fprintf(s->stream, "($4 + %.6g):", shift);
    const qg_plot_view *y = &s->layout.y;
    bool is_log = s->plot->y.scale != QG_PLOT_LINEAR;
    if (is_log)
        fprintf(s->stream, "($6 > %.10g ? $6 : %.10g):(0):($7 - ($6 > %.10g ? $6 : %.10g))",
                y->from, y->from, y->from, y->from);
    else
        fputs("6:(0):($7 - $6)", s->stream);
    fprintf(s->stream, " with vectors nohead lw 0.8 lc rgb '%s' notitle", colour);
}

static void put_points(const script *s, int64_t series, bool *first) {
    const qg_plot_series *d = &s->plot->series[series];
    qg_plot_look look = qg_plot_look_of(s->plot, series);
    put_interval(s, series, 0, look.colour, first);
    if (d->mark == QG_PLOT_JOINED)
        put_lines(s, series, first);
    begin_item(s, series, first);
    put_x(s);
    put_y(s, 5);
    fprintf(s->stream, " with points pt %d ps 0.45 lw 0.8 lc rgb '%s' notitle", look.shape,
            look.colour);
}

// Bars of several series stand side by side at one x.
static void put_bars(const script *s, int64_t series, bool *first) {
    const qg_plot_series *all = s->plot->series;
    int count = 0, before = 0;
    for (int64_t i = 0; i < s->plot->count; i++) {
        bool is_beside = all[i].mark == QG_PLOT_BAR && all[i].panel == all[series].panel;
        count += is_beside;
        before += is_beside && i < series;
    }
    double width = 0.8 / (count > 0 ? count : 1), shift = (before - (count - 1) / 2.0) * width;
    const char *colour = qg_plot_look_of(s->plot, series).colour;
    begin_item(s, series, first);
    fprintf(s->stream, "($4 + %.6g):5:(%.6g) with boxes fs solid 0.85 noborder lc rgb '%s' notitle",
            shift, 0.92 * width, colour);
    put_interval(s, series, shift, "#333333", first);
}

static void put_other(const script *s, int64_t series, bool *first) {
    qg_plot_look look = qg_plot_look_of(s->plot, series);
    begin_item(s, series, first);
    switch (s->plot->series[series].mark) {
    case QG_PLOT_RUG:
        fprintf(s->stream, "4:5:(0):(0.6) with vectors nohead lw 0.4 lc rgb '%s' notitle",
                look.colour);
        break;
    case QG_PLOT_CELL:
        fputs("4:5:(0.5):(0.5):8 with boxxyerror fs solid 1 border lc rgb '#ffffff' lw 0.5 fc "
              "palette notitle",
              s->stream);
        break;
    default: // vertical: from the bottom to the top of the graph
        fprintf(s->stream,
                "4:(%.10g):(0):(%.10g) with vectors nohead lw 0.9 lc rgb '%s' dt %s notitle",
                s->layout.y.from, s->layout.y.to - s->layout.y.from, look.colour, look.dash);
        break;
    }
}

static void put_entry(const script *s, const qg_plot_entry *entry, bool *first) {
    const qg_plot_series *d = &s->plot->series[entry->series];
    qg_plot_look look = qg_plot_look_of(s->plot, entry->series);
    begin_entry(s, first);
    if (d->mark == QG_PLOT_BAR)
        fprintf(s->stream, " with boxes fs solid 0.85 noborder lc rgb '%s'", look.colour);
    else if (!entry->has_points)
        fprintf(s->stream, " with lines lw %s lc rgb '%s' dt %s", line_width(d), look.colour,
                look.dash);
    else
        fprintf(s->stream, " with %s pt %d ps 0.45 lw 0.9 lc rgb '%s' dt %s",
                entry->has_line ? "linespoints" : "points", look.shape, look.colour, look.dash);
    fputs(" title ", s->stream);
    put_quoted(s->stream, d->label);
}

static void put_series(const script *s, int64_t series, bool *first) {
    switch (s->plot->series[series].mark) {
    case QG_PLOT_THEORY:
    case QG_PLOT_BOUND:
    case QG_PLOT_SLOPE: put_lines(s, series, first); break;
    case QG_PLOT_MEASURED:
    case QG_PLOT_JOINED: put_points(s, series, first); break;
    case QG_PLOT_BAR: put_bars(s, series, first); break;
    default: put_other(s, series, first); break;
    }
}

static bool is_key_inside(qg_plot_key key) {
    return key != QG_PLOT_KEY_NONE && key < QG_PLOT_KEY_BELOW;
}

// Grey lines first, so that they lie below; points last.
static int depth(const qg_plot_series *s) {
    if (s->mark == QG_PLOT_BOUND || s->mark == QG_PLOT_SLOPE || s->mark == QG_PLOT_VERTICAL)
        return 0;
    return qg_plot_mark_has_points(s->mark) ? 2 : 1;
}

static void put_plot_command(const script *s, int panel) {
    bool first = true;
    fputs("plot", s->stream);
    for (int layer = 0; layer < 3; layer++)
        for (int64_t i = 0; i < s->plot->count; i++) {
            const qg_plot_series *d = &s->plot->series[i];
            if (d->panel == panel && d->count > 0 && depth(d) == layer)
                put_series(s, i, &first);
        }
    for (int i = 0; panel == 0 && is_key_inside(s->plot->key) && i < s->layout.entries; i++)
        put_entry(s, &s->layout.entry[i], &first);
    fputs(first ? " NaN notitle\n" : "\n", s->stream);
}

// ------------------------------------------------------------------------------------------- tics

static void put_tic(FILE *stream, bool *first, const char *label, double at, bool is_minor) {
    fputs(*first ? "" : ", ", stream);
    *first = false;
    fprintf(stream, "\"%s\" %.10g%s", label, at, is_minor ? " 1" : "");
}

// Powers of the base between the bounds: labelled as many as there is room for and none at the
// marker of zeros, the others short.
static void put_powers(FILE *stream, const qg_plot_view *v, int base, int room, bool *first) {
    int low = (int)ceil(log(v->from) / log(base) - 1e-9);
    int high = (int)floor(log(v->to) / log(base) + 1e-9), step = 1;
    double clear = 0.8 * log(v->to / v->from) / room; // of the marker's label
    while ((high - low) / step + 1 > room)
        step += step < 6 ? 1 : 2;
    for (int e = low; e <= high; e++) {
        char label[32];
        double at = pow(base, e);
        bool is_near = !isnan(v->exact_at) && log(at / v->exact_at) < clear;
        bool is_minor = e % step != 0 || is_near;
        snprintf(label, sizeof label, "%d^{%d}", base, e);
        if (!is_near || at > 1.05 * v->exact_at)
            put_tic(stream, first, is_minor ? "" : label, at, is_minor);
    }
}

// Axes of less than two decades: 1, 2, 5 and their tens in digits.
static void put_digits(FILE *stream, const qg_plot_view *v, bool *first) {
    for (int e = (int)floor(log10(v->from)); e <= (int)floor(log10(v->to)); e++)
        for (int digit = 1; digit < 10; digit++) {
            char label[32];
            double at = digit * pow(10, e);
            bool is_minor = digit != 1 && digit != 2 && digit != 5;
            snprintf(label, sizeof label, "%g", at);
            if (at >= v->from * (1 - 1e-9) && at <= v->to * (1 + 1e-9))
                put_tic(stream, first, is_minor ? "" : label, at, is_minor);
        }
}

static void put_log_tics(const script *s, char axis, const qg_plot_axis *a, const qg_plot_view *v,
                         int room) {
    bool first = true;
    int base = a->scale == QG_PLOT_LOG2 ? 2 : 10;
    fprintf(s->stream, "set logscale %c %d\nset %ctics (", axis, base, axis);
    if (!isnan(v->exact_at))
        put_tic(s->stream, &first, "exact", v->exact_at, false);
    if (base == 10 && v->to / v->from < 50)
        put_digits(s->stream, v, &first);
    else
        put_powers(s->stream, v, base, room, &first);
    fputs(") enhanced\n", s->stream);
}

static void put_named_tics(const script *s, char axis, const qg_plot_axis *a,
                           const qg_plot_view *v) {
    fprintf(s->stream, "set %ctics (", axis);
    for (int i = 0; i < a->name_count; i++) {
        fputs(i ? ", " : "", s->stream);
        put_tic_name(s->stream, a->names[i]);
        fprintf(s->stream, " %d", i);
    }
    fprintf(s->stream, ") noenhanced%s\n", v->turned ? " rotate by 35 right" : "");
}

// room: labels that fit along the axis.
static void put_axis(const script *s, char axis, const qg_plot_axis *a, const qg_plot_view *v,
                     int room) {
    fprintf(s->stream, "set %crange [%.10g:%.10g]\n", axis, v->from, v->to);
    if (a->name_count)
        put_named_tics(s, axis, a, v);
    else if (a->scale != QG_PLOT_LINEAR)
        put_log_tics(s, axis, a, v, room);
    else
        fprintf(s->stream, "set %ctics autofreq noenhanced\n", axis);
}

// ----------------------------------------------------------------------------------------- labels

static void put_label(const script *s, int tag, const char *text, double x, double y,
                      const char *more) {
    fprintf(s->stream, "set label %d ", tag);
    put_quoted(s->stream, text);
    fprintf(s->stream, " at screen %.5f, screen %.5f %s noenhanced\n", across(s, x), up(s, y),
            more);
}

// The labels of the axes stand once, in the middle of all panels.
static void put_axis_labels(const script *s) {
    const qg_plot_layout *l = &s->layout;
    const qg_plot_box *first = &l->panel[0], *last = &l->panel[s->plot->panels - 1];
    double right =
        l->panel[s->plot->panels < l->columns ? s->plot->panels - 1 : l->columns - 1].right;
    if (s->plot->x.label[0])
        put_label(s, 1, s->plot->x.label, (first->left + right) / 2, l->xlabel_y, "center");
    if (s->plot->y.label[0])
        put_label(s, 2, s->plot->y.label, 8, (first->top + last->bottom) / 2,
                  "center rotate by 90");
    if (l->has_cells)
        put_label(s, 3, s->plot->colour_label, l->width - 7, (first->top + last->bottom) / 2,
                  "center rotate by 90");
}

static void put_place(const script *s, const char *text, double x, double y, const char *how) {
    fputs("set label ", s->stream);
    put_quoted(s->stream, text);
    fprintf(s->stream, " at first %.10g, %s %.10g noenhanced font ',6.5' %s\n", x,
            how[0] == 'g' ? "graph" : "first", y, how + 1);
}

// Vertical lines and slopes are named where they are.
static void put_direct_labels(const script *s, int panel) {
    for (int64_t i = 0; i < s->plot->count; i++) {
        const qg_plot_series *d = &s->plot->series[i];
        if (d->panel != panel || !d->label[0] || d->count == 0)
            continue;
        if (d->mark == QG_PLOT_VERTICAL)
            put_place(s, d->label, d->points[0].x, 0.98,
                      "g right rotate by 90 offset -0.6,0 tc rgb '#555555'");
        int64_t last = d->count - 1;
        while (last > 0 &&
               (d->points[last].y > s->layout.y.to || d->points[last].x > s->layout.x.to))
            last--;
        if (d->mark == QG_PLOT_SLOPE)
            put_place(s, d->label, d->points[last].x, d->points[last].y,
                      "f right offset -0.3,0.4 tc rgb '#555555'");
    }
}

// --------------------------------------------------------------------------------------- the file

static const char *key_command(qg_plot_key key) {
    switch (key) {
    case QG_PLOT_KEY_LEFT_TOP: return "left top Left reverse";
    case QG_PLOT_KEY_RIGHT_TOP: return "right top";
    case QG_PLOT_KEY_LEFT_BOTTOM: return "left bottom Left reverse";
    case QG_PLOT_KEY_RIGHT_BOTTOM: return "right bottom";
    default: return "off";
    }
}

// A key outside is a plot of its own, as wide as the picture: gnuplot folds a key to the width of
// the plot that it belongs to.
static void put_outer_key(const script *s) {
    const qg_plot_layout *l = &s->layout;
    bool first = false;
    fputs("unset label\nunset logscale\nunset border\nunset tics\nunset grid\nunset colorbox\n"
          "set lmargin at screen 0\nset rmargin at screen 1\n"
          "set bmargin at screen 0\nset tmargin at screen 1\n",
          s->stream);
    if (s->plot->key == QG_PLOT_KEY_BELOW)
        fprintf(s->stream,
                "set key on at screen %.5f, screen %.5f center bottom horizontal maxcols %d "
                "maxrows auto Left reverse\n",
                across(s, l->key_x), up(s, l->key_y), l->key_columns);
    else
        fprintf(s->stream,
                "set key on at screen %.5f, screen %.5f left top vertical maxrows %d Left "
                "reverse\n",
                across(s, l->key_x), up(s, l->key_y), l->entries);
    fputs("plot [0:1] [0:1] NaN notitle", s->stream);
    for (int i = 0; i < l->entries; i++)
        put_entry(s, &l->entry[i], &first);
    fputs("\n", s->stream);
}

static void put_colours(const script *s) {
    const qg_plot_box *b = &s->layout.colours;
    // Perceptually even, and told apart in grey: viridis at nine places.
    fputs("set palette defined (0 '#440154', 1 '#472c7a', 2 '#3b518b', 3 '#2c718e', 4 '#21908d', "
          "5 '#27ad81', 6 '#5cc863', 7 '#aadc32', 8 '#fde725')\n",
          s->stream);
    fprintf(s->stream,
            "set cbrange [%.10g:%.10g]\nset cbtics font ',7' scale 0.4 offset -0.6,0\n"
            "set colorbox user origin %.5f, %.5f size %.5f, %.5f noborder\n",
            s->layout.colour_from, s->layout.colour_to, across(s, b->left), up(s, b->bottom),
            across(s, b->right - b->left), up(s, b->top - b->bottom));
}

static void put_opening(const script *s, const qg_plot_files *files) {
    fprintf(s->stream,
            "# %s: %s\n# gnuplot %s.gp draws it again, from the data beside it.\n"
            "DATA = '%s.tsv'\nif (!exists('PART')) PART = ''\n"
            "set encoding utf8\n",
            files->stem, files->title, files->stem, files->stem);
}

static void put_settings(const script *s) {
    fprintf(s->stream,
            "set datafile separator \"\\t\"\nset datafile missing 'NaN'\n"
            "set border 3 lw 0.7 lc rgb '#333333'\n"
            "set tics out nomirror scale 0.5,0.25 font ',7'\n"
            "set xtics offset 0,0.35\nset ytics offset 0.55,0\n"
            "set grid lt 1 lw 0.4 lc rgb '#e0e0e0'\n"
            "set key font ',7' samplen 2.6 spacing 0.95 noenhanced %s%s\n",
            is_key_inside(s->plot->key) ? "on inside " : "", key_command(s->plot->key));
    if (s->layout.has_cells)
        put_colours(s);
}

// Tics are named at the outer edges alone; elsewhere the names are there, but transparent.
static void put_axes(const script *s, int panel) {
    static const char SHOWN[] = "333333", HIDDEN[] = "ffffffff";
    const qg_plot_box *b = &s->layout.panel[panel];
    bool is_lowest = panel + s->layout.columns >= s->plot->panels;
    bool is_leftmost = panel % s->layout.columns == 0;
    put_axis(s, 'x', &s->plot->x, &s->layout.x, (int)((b->right - b->left) / 21));
    put_axis(s, 'y', &s->plot->y, &s->layout.y, (int)((b->top - b->bottom) / 14));
    fprintf(s->stream, "set xtics textcolor rgb '#%s'\nset ytics textcolor rgb '#%s'\n",
            is_lowest ? SHOWN : HIDDEN, is_leftmost ? SHOWN : HIDDEN);
}

static void put_panel(const script *s, int panel) {
    const qg_plot_box *b = &s->layout.panel[panel];
    fprintf(s->stream,
            "set lmargin at screen %.5f\nset rmargin at screen %.5f\n"
            "set bmargin at screen %.5f\nset tmargin at screen %.5f\n",
            across(s, b->left), across(s, b->right), up(s, b->bottom), up(s, b->top));
    if (panel > 0)
        fputs("unset label\nset key off\nunset colorbox\n", s->stream);
    if (panel == 0)
        put_axis_labels(s);
    if (s->plot->panel_title[panel][0])
        put_label(s, 4, s->plot->panel_title[panel], (b->left + b->right) / 2, b->top + 6,
                  "center font ',7.5'");
    put_direct_labels(s, panel);
    put_axes(s, panel);
    put_plot_command(s, panel);
}

static void put_picture(const script *s, const qg_plot_files *files, const char *ending,
                        const char *terminal) {
    bool outer = !is_key_inside(s->plot->key) && s->plot->key != QG_PLOT_KEY_NONE;
    bool several = s->plot->panels > 1 || (outer && s->layout.entries > 0);
    fprintf(s->stream, "\nreset\nset terminal %s\nset output '%s.%s'.PART\n", terminal, files->stem,
            ending);
    put_settings(s);
    if (several)
        fputs("set multiplot\n", s->stream);
    for (int panel = 0; panel < s->plot->panels; panel++)
        put_panel(s, panel);
    if (outer && s->layout.entries > 0)
        put_outer_key(s);
    if (several)
        fputs("unset multiplot\n", s->stream);
    fputs("unset output\n", s->stream);
}

static void put_script(const script *s, const qg_plot_files *files) {
    char terminal[256];
    double scale = (double)PNG_DPI / POINTS_PER_INCH, font_scale = PNG_DPI / 96.0; // pango's points
    put_opening(s, files);
    if (files->svg) {
        snprintf(terminal, sizeof terminal,
                 "svg size %.0f,%.0f font '%s' linewidth 1 background 'white'",
                 files->width * POINTS_PER_INCH, files->height * POINTS_PER_INCH, FONT);
        put_picture(s, files, "svg", terminal);
    }
    if (files->png) {
        snprintf(terminal, sizeof terminal,
                 "pngcairo size %.0f,%.0f font '%s' fontscale %.6g linewidth %.6g pointscale %.6g",
                 files->width * PNG_DPI, files->height * PNG_DPI, FONT, font_scale, scale, scale);
        put_picture(s, files, "png", terminal);
    }
    if (files->pdf) {
        snprintf(terminal, sizeof terminal,
                 "pdfcairo size %.4gin,%.4gin font '%s' fontscale 1 linewidth 1", files->width,
                 files->height, FONT);
        put_picture(s, files, "pdf", terminal);
    }
}

qg_status qg_plot_write_script(const qg_plot *plot, const qg_plot_files *files) {
    char *text = NULL;
    size_t size = 0;
    script s = {.stream = open_memstream(&text, &size), .plot = plot};
    if (!s.stream)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the script of %s", files->stem);
    qg_plot_lay_out(plot, files->width * POINTS_PER_INCH, files->height * POINTS_PER_INCH,
                    &s.layout);
    put_script(&s, files);
    bool failed = fclose(s.stream) != 0;
    qg_status status = failed
                           ? qg_fail(QG_ERROR_MEMORY, "no memory for the script of %s", files->stem)
                           : qg_plot_replace_file(files->folder, files->stem, ".gp", text, size);
    free(text);
    return status;
}
