// See figure_quantize.h.
#include <figure_quantize.h>

#include <qg_data.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------------- the points

static const char *text(const qg_figure_mean *m, qg_column column) {
    return qg_figure_text(m->representative, column);
}

static bool is_plain(const qg_figure_mean *m) {
    return strcmp(text(m, QG_COLUMN_ROUNDING), "rne") == 0 &&
           strcmp(text(m, QG_COLUMN_INPUT_TYPE), "fp32") == 0 && isfinite(m->mean);
}

static bool is_same(const qg_figure_mean *a, const qg_figure_mean *b) {
    static const qg_column AXES[] = {QG_COLUMN_FORMAT, QG_COLUMN_LAYOUT, QG_COLUMN_SCALE_RULE,
                                     QG_COLUMN_DATA};
    for (size_t i = 0; i < sizeof AXES / sizeof AXES[0]; i++)
        if (strcmp(text(a, AXES[i]), text(b, AXES[i])) != 0)
            return false;
    return true;
}

static double elements(const qg_figure_mean *m) {
    return (double)m->seeds * qg_figure_number(m->representative, QG_COLUMN_M) *
           qg_figure_number(m->representative, QG_COLUMN_K);
}

// Kept groups stand where their own rows do, whatever else there was.
static int by_appearance(const void *a, const void *b) {
    const qg_figure_row *x = ((const qg_figure_mean *)a)->representative;
    const qg_figure_row *y = ((const qg_figure_mean *)b)->representative;
    return (x > y) - (x < y);
}

qg_status qg_figure_quantized(const qg_figure_rows *rows, qg_column column, qg_figure_mean **out,
                              int64_t *count) {
    int64_t kept = 0, i, j, all;
    qg_status status = qg_figure_means(rows, column, out, &all);
    for (i = 0; status == QG_OK && i < all; i++) {
        qg_figure_mean m = (*out)[i];
        if (!is_plain(&m))
            continue;
        for (j = 0; j < kept && !is_same(&(*out)[j], &m);)
            j++;
        if (j == kept)
            (*out)[kept++] = m;
        else if (elements(&m) > elements(&(*out)[j]))
            (*out)[j] = m;
    }
    *count = kept;
    if (status == QG_OK)
        qsort(*out, (size_t)kept, sizeof **out, by_appearance);
    return status;
}

static bool fits(const qg_figure_mean *m, qg_column column, const char *wanted) {
    return !wanted || strcmp(text(m, column), wanted) == 0;
}

const qg_figure_mean *qg_figure_find(const qg_figure_mean *means, int64_t count, const char *format,
                                     const char *layout, const char *rule, const char *data) {
    for (int64_t i = 0; i < count; i++)
        if (fits(&means[i], QG_COLUMN_FORMAT, format) &&
            fits(&means[i], QG_COLUMN_LAYOUT, layout) &&
            fits(&means[i], QG_COLUMN_SCALE_RULE, rule) && fits(&means[i], QG_COLUMN_DATA, data))
            return &means[i];
    return NULL;
}

qg_status qg_figure_add(qg_plot *plot, int64_t series, double x, double above,
                        const qg_figure_mean *mean) {
    double y = mean->mean + above, half = mean->seeds > 1 ? mean->half_width : NAN;
    return qg_plot_point_add(plot, series, (qg_plot_point){x, y, y - half, y + half, NAN});
}

qg_status qg_figure_add_line(qg_plot *plot, int64_t series, double x, double y) {
    return qg_plot_point_add(plot, series, (qg_plot_point){x, y, NAN, NAN, NAN});
}

static void put_range(char *out, size_t size, double low, double high) {
    if (low == high)
        snprintf(out, size, "%.0f", low);
    else
        snprintf(out, size, "%.0f to %.0f", low, high);
}

void qg_figure_quantized_note(qg_plot *plot, const qg_figure_mean *means, int64_t count,
                              const char *law) {
    double few = INFINITY, many = 0, least = INFINITY, most = 0;
    char values[64], seeds[64];
    for (int64_t i = 0; i < count; i++) {
        few = fmin(few, elements(&means[i])), many = fmax(many, elements(&means[i]));
        least = fmin(least, (double)means[i].seeds), most = fmax(most, (double)means[i].seeds);
    }
    put_range(values, sizeof values, few, many);
    put_range(seeds, sizeof seeds, least, most);
    snprintf(plot->note, sizeof plot->note, "%s; n = %s values a point, %s seed%s", law, values,
             seeds, most > 1 ? "s, 95 % intervals over them" : "");
}

qg_status qg_figure_lacks(const char *what) {
    return qg_fail(QG_ERROR_DATA, "the files have no rows of %s", what);
}

// ----------------------------------------------------------------------------------------- theory

double qg_figure_sigma(const char *law, qg_density *density) {
    qg_law *parsed;
    double sigma = NAN;
    *density = QG_DENSITY_NONE;
    if (qg_law_parse(law, &parsed) == QG_OK) {
        *density = qg_law_density(parsed, &sigma);
        qg_law_free(parsed);
    }
    return sigma;
}

typedef struct scale_context {
    const qg_gate_operand *operand;
    double tensor_amax;
} scale_context;

static double scale_of(void *context, double amax) {
    const scale_context *c = context;
    return qg_gate_scale(c->operand, c->tensor_amax, amax);
}

bool qg_figure_block_theory(const qg_gate_operand *operand, qg_density density, double sigma,
                            int64_t g, double tensor_amax, qg_noise *out) {
    scale_context context = {operand, tensor_amax};
    qg_grid grid = {operand->values, operand->value_count};
    return operand->known && operand->value_count > 1 && density != QG_DENSITY_NONE &&
           operand->recipe.structure == QG_STRUCTURE_PLAIN && !isnan(scale_of(&context, 1)) &&
           qg_theory_block(density, sigma, grid, g, scale_of, &context, out) == QG_OK;
}

bool qg_figure_theory(const qg_figure_row *row, qg_noise *out) {
    qg_gate_operand operand = {0};
    qg_density density;
    qg_gate_block blocks[QG_GATE_BLOCKS];
    qg_gate_operand_find(qg_figure_text(row, QG_COLUMN_FORMAT),
                         qg_figure_text(row, QG_COLUMN_LAYOUT),
                         qg_figure_text(row, QG_COLUMN_SCALE_RULE),
                         qg_figure_text(row, QG_COLUMN_ROUNDING), &operand);
    if (!operand.known)
        return false;
    double sigma = qg_figure_sigma(qg_figure_text(row, QG_COLUMN_DATA), &density);
    qg_gate_blocks(&operand.recipe, (int64_t)qg_figure_number(row, QG_COLUMN_M),
                   (int64_t)qg_figure_number(row, QG_COLUMN_K), blocks);
    return qg_figure_block_theory(&operand, density, sigma, blocks[0].elements,
                                  qg_figure_number(row, QG_COLUMN_SUM_MAX_ABS_X), out);
}
