// What the figures of products share: points of a series from the rows of gemm, and the error of an
// operand by theory.
#ifndef FIGURE_PRODUCTS_H
#define FIGURE_PRODUCTS_H

#include <figure.h>
#include <qg_product_theory.h>

// Which rows make a series: both operands of one format (hence one
// layout and rule). NULL: any; a '*' at the
// end: all that begin so.
typedef struct qg_product_pick {
    const char *unit, *format, *layout, *rule, *rounding, *data, *reference;
} qg_product_pick;

// One point of a series: the mean over the seeds of the largest products (m n) at one x.
typedef struct qg_product_point {
    double x, mean, half_width;
    int64_t m, n, seeds;
} qg_product_point;

// x of a row: of most figures its k.
typedef double (*qg_product_x)(const qg_figure_row *row);
double qg_product_k(const qg_figure_row *row);
double qg_product_interval(const qg_figure_row *row); // N of "+promote:N"; NaN without one

// Ascending in x. (*count) points, none if no row fits. Caller frees *out.
qg_status qg_product_points(const qg_figure_rows *rows, const qg_product_pick *pick,
                            qg_column column, qg_product_x x, qg_product_point **out,
                            int64_t *count);

// What a caption says of the points: sizes and seeds of all that were added to it.
typedef struct qg_product_facts {
    int64_t m_least, m_most, n_least, n_most, seeds_least, seeds_most;
    double x_least, x_most;
    int series;
} qg_product_facts;
void qg_product_facts_add(qg_product_facts *facts, const qg_product_point *points, int64_t count);
// "64 x 64 outputs, 5 seeds": into text of (size) bytes.
void qg_product_facts_print(const qg_product_facts *facts, char *text, size_t size);

// Points of one pick as a series: |mean|, with the 95 % interval over the seeds; where that holds
// 0, only its upper half. Adds nothing where no row fits.
typedef struct qg_product_series {
    qg_plot_mark mark;
    int panel;
    const char *label, *look; // look: whose colour
    qg_column column, per;    // per: divided by the mean of this column; 0: by nothing
    qg_product_x x;
    bool most_seeds; // only the points that have as many seeds as any
} qg_product_series;
qg_status qg_product_series_add(qg_plot *plot, const qg_figure_rows *rows,
                                const qg_product_pick *pick, const qg_product_series *series,
                                qg_product_facts *facts);

// A line of y(context, x) in factors of 2^(1/4) from x = from to `to`.
qg_status qg_product_line_add(qg_plot *plot, qg_plot_mark mark, int panel, const char *label,
                              const char *look, double from, double to,
                              double (*y)(const void *context, double x), const void *context);

// The error of an operand "mxfp8", "group:32", "rceil" on a law, rounded to nearest, by
// integration; stochastic: of twice the noise and without bias (even density across a step).
// ":abs" of the law changes nothing. False where theory has no answer.
bool qg_product_operand(const qg_product_pick *pick, qg_operand_error *out, qg_density *density);

#endif
