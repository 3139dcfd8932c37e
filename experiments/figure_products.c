// Rows of products as points, theory as lines. See figure_products.h.
#include <figure_products.h>

#include <gate_operand.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------------------- rows

static bool fits(const char *text, const char *wanted) {
    if (!wanted)
        return true;
    size_t length = strlen(wanted);
    if (length > 0 && wanted[length - 1] == '*')
        return strncmp(text, wanted, length - 1) == 0;
    return strcmp(text, wanted) == 0;
}

static bool is_picked(const qg_figure_row *row, const qg_product_pick *pick) {
    return fits(qg_figure_text(row, QG_COLUMN_UNIT), pick->unit) &&
           fits(qg_figure_text(row, QG_COLUMN_FORMAT), pick->format) &&
           fits(qg_figure_text(row, QG_COLUMN_FORMAT_B), pick->format) &&
           fits(qg_figure_text(row, QG_COLUMN_LAYOUT), pick->layout) &&
           fits(qg_figure_text(row, QG_COLUMN_SCALE_RULE), pick->rule) &&
           fits(qg_figure_text(row, QG_COLUMN_ROUNDING), pick->rounding) &&
           fits(qg_figure_text(row, QG_COLUMN_DATA), pick->data) &&
           fits(qg_figure_text(row, QG_COLUMN_REFERENCE), pick->reference);
}

double qg_product_k(const qg_figure_row *row) { return qg_figure_number(row, QG_COLUMN_K); }

double qg_product_interval(const qg_figure_row *row) {
    const char *text = strstr(qg_figure_text(row, QG_COLUMN_UNIT), "+promote:");
    return text ? atof(text + strlen("+promote:")) : NAN;
}

static int by_x_and_size(const void *a, const void *b) {
    const qg_product_point *p = a, *q = b;
    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    return (p->m * p->n < q->m * q->n) - (p->m * p->n > q->m * q->n);
}

// One point per x: the one of the most outputs.
static int64_t keep_largest(qg_product_point *points, int64_t count) {
    int64_t kept = 0;
    qsort(points, (size_t)count, sizeof *points, by_x_and_size);
    for (int64_t i = 0; i < count; i++)
        if (kept == 0 || points[kept - 1].x != points[i].x)
            points[kept++] = points[i];
    return kept;
}

static qg_status means_of(const qg_figure_rows *rows, qg_column column, qg_product_x x,
                          qg_product_point **out, int64_t *count) {
    qg_figure_mean *means;
    int64_t mean_count;
    qg_status status = qg_figure_means(rows, column, &means, &mean_count);
    if (status != QG_OK)
        return status;
    qg_product_point *points = malloc((size_t)(mean_count + 1) * sizeof *points);
    int64_t filled = 0;
    for (int64_t i = 0; points && i < mean_count; i++) {
        const qg_figure_row *row = means[i].representative;
        double at = x(row);
        if (isnan(at) || isnan(means[i].mean))
            continue;
        points[filled++] = (qg_product_point){.x = at,
                                              .mean = means[i].mean,
                                              .half_width = means[i].half_width,
                                              .m = qg_table_i64(row->table, row->row, QG_COLUMN_M),
                                              .n = qg_table_i64(row->table, row->row, QG_COLUMN_N),
                                              .seeds = means[i].seeds};
    }
    free(means);
    if (!points)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the points of a figure");
    *out = points;
    *count = keep_largest(points, filled);
    return QG_OK;
}

static int by_case(const void *a, const void *b) {
    const qg_figure_row *p = a, *q = b;
    uint64_t x = qg_table_u64(p->table, p->row, QG_COLUMN_CASE_ID);
    uint64_t y = qg_table_u64(q->table, q->row, QG_COLUMN_CASE_ID);
    return (x > y) - (x < y);
}

// A case that several files hold counts once.
static int64_t drop_repeated(qg_figure_row *items, int64_t count) {
    int64_t kept = 0;
    qsort(items, (size_t)count, sizeof *items, by_case);
    for (int64_t i = 0; i < count; i++)
        if (kept == 0 || by_case(&items[kept - 1], &items[i]) != 0)
            items[kept++] = items[i];
    return kept;
}

qg_status qg_product_points(const qg_figure_rows *rows, const qg_product_pick *pick,
                            qg_column column, qg_product_x x, qg_product_point **out,
                            int64_t *count) {
    qg_figure_row *items = malloc((size_t)(rows->count + 1) * sizeof *items);
    *out = NULL;
    *count = 0;
    if (!items)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the rows of a figure");
    qg_figure_rows picked = {items, 0};
    for (int64_t i = 0; i < rows->count; i++)
        if (is_picked(&rows->items[i], pick))
            items[picked.count++] = rows->items[i];
    picked.count = drop_repeated(items, picked.count);
    qg_status status = means_of(&picked, column, x, out, count);
    free(items);
    return status;
}

// ------------------------------------------------------------------------------------------ facts

static void widen(int64_t *least, int64_t *most, int64_t value, bool first) {
    *least = first || value < *least ? value : *least;
    *most = first || value > *most ? value : *most;
}

void qg_product_facts_add(qg_product_facts *f, const qg_product_point *points, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        bool first = f->series == 0 && i == 0;
        widen(&f->m_least, &f->m_most, points[i].m, first);
        widen(&f->n_least, &f->n_most, points[i].n, first);
        widen(&f->seeds_least, &f->seeds_most, points[i].seeds, first);
        f->x_least = first ? points[i].x : fmin(f->x_least, points[i].x);
        f->x_most = first ? points[i].x : fmax(f->x_most, points[i].x);
    }
    f->series += count > 0;
}

// "64", or "16 to 1168".
static void print_range(int64_t least, int64_t most, char text[64]) {
    if (least == most)
        snprintf(text, 64, "%" PRId64, least);
    else
        snprintf(text, 64, "%" PRId64 " to %" PRId64, least, most);
}

void qg_product_facts_print(const qg_product_facts *f, char *text, size_t size) {
    char m[64], n[64], seeds[64];
    print_range(f->m_least, f->m_most, m);
    print_range(f->n_least, f->n_most, n);
    print_range(f->seeds_least, f->seeds_most, seeds);
    snprintf(text, size, "%s x %s outputs, %s seed%s", m, n, seeds, f->seeds_most == 1 ? "" : "s");
}

// ------------------------------------------------------------------------------ series and lines

// Points of fewer seeds than the others (of another plan's rows) go.
static int64_t keep_most_seeds(qg_product_point *points, int64_t count) {
    int64_t most = 0, kept = 0;
    for (int64_t i = 0; i < count; i++)
        most = points[i].seeds > most ? points[i].seeds : most;
    for (int64_t i = 0; i < count; i++)
        if (points[i].seeds == most)
            points[kept++] = points[i];
    return kept;
}

static qg_status add_points(qg_plot *plot, const qg_product_series *s,
                            const qg_product_point *points, int64_t count) {
    int64_t series;
    qg_status status = qg_plot_add(plot, s->mark, s->panel, s->label, s->look, "", &series);
    for (int64_t i = 0; i < count && status == QG_OK; i++) {
        double y = fabs(points[i].mean), h = points[i].half_width;
        qg_plot_point p = {points[i].x, y, NAN, NAN, NAN};
        if (h > 0) {
            p.low = h < y ? y - h : y;
            p.high = y + h;
        }
        status = qg_plot_point_add(plot, series, p);
    }
    return status;
}

// Both columns have the same rows, hence the same points.
static qg_status divide(const qg_figure_rows *rows, const qg_product_pick *pick,
                        const qg_product_series *s, qg_product_point *points, int64_t count) {
    qg_product_point *by;
    int64_t by_count;
    qg_status status = qg_product_points(rows, pick, s->per, s->x, &by, &by_count);
    if (status == QG_OK && by_count != count)
        status = qg_fail(QG_ERROR_DATA, "a column is missing in some rows");
    for (int64_t i = 0; status == QG_OK && i < count; i++) {
        points[i].mean /= by[i].mean;
        points[i].half_width /= fabs(by[i].mean);
    }
    free(by);
    return status;
}

qg_status qg_product_series_add(qg_plot *plot, const qg_figure_rows *rows,
                                const qg_product_pick *pick, const qg_product_series *series,
                                qg_product_facts *facts) {
    qg_product_point *points;
    int64_t count;
    qg_status status = qg_product_points(rows, pick, series->column, series->x, &points, &count);
    if (status == QG_OK && series->per)
        status = divide(rows, pick, series, points, count);
    if (status == QG_OK && series->most_seeds)
        count = keep_most_seeds(points, count);
    if (status == QG_OK && count > 0) {
        qg_product_facts_add(facts, points, count);
        status = add_points(plot, series, points, count);
    }
    free(points);
    return status;
}

qg_status qg_product_line_add(qg_plot *plot, qg_plot_mark mark, int panel, const char *label,
                              const char *look, double from, double to,
                              double (*y)(const void *context, double x), const void *context) {
    int64_t series;
    qg_status status = qg_plot_add(plot, mark, panel, label, look, "", &series);
    int steps = (int)ceil(4 * log2(to / from));
    for (int i = 0; i <= steps && status == QG_OK; i++) {
        double x = i < steps ? from * exp2(0.25 * i) : to;
        status = qg_plot_point_add(plot, series, (qg_plot_point){x, y(context, x), NAN, NAN, NAN});
    }
    return status;
}

// ----------------------------------------------------------------------------------------- theory

typedef struct scale_context {
    const qg_gate_operand *operand;
    double tensor_amax;
} scale_context;

static double scale_of(void *context, double amax) {
    const scale_context *c = context;
    return qg_gate_scale(c->operand, c->tensor_amax, amax);
}

// The density of a law's magnitudes: that of the law without ":abs".
static qg_density density_of(const char *law_name, double *sigma) {
    char name[128];
    qg_law *law;
    snprintf(name, sizeof name, "%s", law_name);
    char *absolute = strstr(name, ":abs");
    if (absolute)
        memmove(absolute, absolute + 4, strlen(absolute + 4) + 1);
    if (qg_law_parse(name, &law) != QG_OK)
        return QG_DENSITY_NONE;
    qg_density density = qg_law_density(law, sigma);
    qg_law_free(law);
    return density;
}

// Per tensor and for the upper scale of two levels the largest magnitude of the tensor counts: 4.5
// sigma of some 10^5 normal elements, the end of a uniform law. It decides where the steps lie, and
// moves the noise of a float by 0.02 dB.
static double tensor_amax_of(qg_density density, double sigma) {
    switch (density) {
    case QG_DENSITY_UNIFORM: return sqrt(3) * sigma;
    case QG_DENSITY_LAPLACE: return 8.5 * sigma;
    default: return 4.5 * sigma;
    }
}

static bool integrate(const qg_gate_operand *operand, const char *layout, qg_density density,
                      double sigma, qg_noise *noise) {
    scale_context context = {operand, tensor_amax_of(density, sigma)};
    qg_grid grid = {operand->values, operand->value_count};
    double scale = qg_gate_scale(operand, context.tensor_amax, context.tensor_amax);
    long long g;
    if (isnan(scale))
        return false;
    if (strcmp(layout, "per_tensor") == 0)
        return qg_theory_tensor(density, sigma, grid, scale, noise) == QG_OK;
    return sscanf(layout, "group:%lld", &g) == 1 &&
           qg_theory_block(density, sigma, grid, g, scale_of, &context, noise) == QG_OK;
}

bool qg_product_operand(const qg_product_pick *pick, qg_operand_error *out, qg_density *density) {
    qg_gate_operand operand = {0};
    qg_noise noise;
    double sigma = 1;
    *density = density_of(pick->data, &sigma);
    qg_gate_operand_find(pick->format, pick->layout, pick->rule, "rne", &operand);
    bool known = operand.known && operand.value_count > 1 && *density != QG_DENSITY_NONE &&
                 integrate(&operand, pick->layout, *density, sigma, &noise);
    free(operand.key);
    if (!known)
        return false;
    *out = qg_theory_operand(*density, noise);
    if (pick->rounding && strncmp(pick->rounding, "stochastic", 10) == 0)
        *out = (qg_operand_error){2 * out->noise, 0, 0};
    return true;
}
