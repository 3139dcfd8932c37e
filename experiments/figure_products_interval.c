// F11: the error that an FP8 accumulator adds, against the interval of its promotion.
#include <figure_list.h>
#include <figure_products.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { K = 4096, LAWS = 2 }; // K: also in the figure's `where`

static const char *const LAW[LAWS] = {"normal", "uniform:1:abs"};
static const char *const ADDED[LAWS] = {"accumulator, mean zero", "accumulator, positive"};
static const char *const OWN[LAWS] = {"operands, mean zero", "operands, positive"};

static double constant(const void *value, double x) {
    (void)x;
    return *(const double *)value;
}

static qg_status add_law(qg_plot *plot, const qg_figure_rows *rows, int law,
                         qg_product_facts *facts) {
    qg_product_pick pick = {.unit = "hopper_wgmma+promote:*",
                            .format = "e4m3",
                            .layout = "per_tensor",
                            .rule = "amax",
                            .rounding = "rne",
                            .data = LAW[law],
                            .reference = "quantized"};
    qg_product_series series = {.mark = QG_PLOT_JOINED,
                                .label = ADDED[law],
                                .look = LAW[law],
                                .column = QG_COLUMN_METRIC_REL_FROBENIUS,
                                .x = qg_product_interval};
    qg_operand_error operand;
    qg_density density;
    int before = facts->series;
    qg_status status = qg_product_series_add(plot, rows, &pick, &series, facts);
    if (status != QG_OK || facts->series == before ||
        !qg_product_operand(&pick, &operand, &density))
        return status;
    double mean = strstr(LAW[law], ":abs") ? qg_theory_coherence(density) : 0;
    double error = sqrt(qg_theory_product_noise(operand, operand, mean, mean, K));
    return qg_product_line_add(plot, QG_PLOT_THEORY, 0, OWN[law], LAW[law], facts->x_least,
                               facts->x_most, constant, &error);
}

qg_status qg_build_promotion(const qg_figure_rows *rows, qg_plot *plot) {
    qg_product_facts facts = {0};
    char text[160];
    qg_status status = QG_OK;
    plot->x =
        (qg_plot_axis){"elements of K between promotions", QG_PLOT_LOG2, NAN, NAN, NAN, NULL, 0};
    plot->y = (qg_plot_axis){"relative Frobenius error", QG_PLOT_LOG10, 1e-5, 4, NAN, NULL, 0};
    plot->key = QG_PLOT_KEY_LEFT_TOP;
    for (int law = 0; law < LAWS && status == QG_OK; law++)
        status = add_law(plot, rows, law, &facts);
    if (status == QG_OK && !(facts.x_most > facts.x_least))
        status = qg_fail(QG_ERROR_DATA, "needs hopper_wgmma+promote:N at two intervals at least");
    qg_product_facts_print(&facts, text, sizeof text);
    snprintf(plot->note, sizeof plot->note,
             "E4M3, one scale, K = 4096, normal data (mean zero) and uniform data on [0, 1) "
             "(positive), %s.",
             text);
    return status;
}
