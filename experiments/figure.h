// Figures: one row of a table each (figure_table.c), from the rows of result files to a picture.
//
// A figure's builder selects rows and fills a plot: panels, axes, series of points. The plot alone is
// written as TSV and drawn by gnuplot (plot_write.h): builders know nothing of either. Theory comes
// from lib/measure and is a line; measurements are points with their uncertainty; bounds are dashed
// and grey.
#ifndef FIGURE_H
#define FIGURE_H

#include <plot.h>
#include <qg_table.h>
#include <stddef.h>
#include <table_cell.h>

// The rows of all result files at hand.
typedef struct qg_figure_input {
    const qg_table *const *tables; // (count)
    int count;
} qg_figure_input;

// Selected rows: (count) pairs of table and row.
typedef qg_table_row qg_figure_row;
typedef struct qg_figure_rows {
    const qg_figure_row *items;
    int64_t count;
} qg_figure_rows;

typedef struct qg_figure {
    const char *id;      // "F3"
    const char *name;    // "qsnr_scale": of its files, F03_qsnr_scale.tsv
    const char *title;   // of the report
    const char *caption; // what is seen, n, seeds and law named
    const char *where;   // which rows it reads (an expression of expression.h); NULL: none
    const char *plan;    // file of experiments/plans that measures them: "F3.plan"; NULL: none
    double width;        // inches: 3.3 or 7.0
    double ratio;        // height / width
    // `rows`: those of `where`, at least one unless where is NULL. QG_ERROR_DATA with what is missing
    // if they are not enough: the figure is then listed as lacking data.
    qg_status (*build)(const qg_figure_rows *rows, qg_plot *plot);
} qg_figure;

// The i-th figure, NULL past the end.
const qg_figure *qg_figure_listed(int i);

// Cells of a selected row.
const char *qg_figure_text(const qg_figure_row *row, qg_column column);
double qg_figure_number(const qg_figure_row *row, qg_column column); // of any numeric column

// The mean of `column` over the rows that agree in everything but the seed, with the half-width of
// its 95 % interval (Student's t over the seeds; 0 for one seed): one entry per group, in the order
// of first appearance; *representative is a row of the group. Caller frees *out.
typedef struct qg_figure_mean {
    const qg_figure_row *representative;
    double mean, half_width;
    int64_t seeds;
} qg_figure_mean;
qg_status qg_figure_means(const qg_figure_rows *rows, qg_column column, qg_figure_mean **out,
                          int64_t *count);

// How figures print a format or recipe: "MXFP8", "NVFP4 4/6".
void qg_figure_label(const char *format, char *text, size_t size);
// What a caption says of the rows: data laws, seeds, sizes, elements of a case.
void qg_figure_note(const qg_figure_rows *rows, char *text, size_t size);

#endif
