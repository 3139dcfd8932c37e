// What the figures of quantization error share: which rows make a point, what theory says of one.
#ifndef FIGURE_QUANTIZE_H
#define FIGURE_QUANTIZE_H

#include <figure.h>
#include <gate_operand.h>

// The points that rows of op `error` make: means over the seeds, of binary32 data rounded to nearest
// even. Of groups that differ in size or backend alone the one of most elements is kept, of equal
// ones the first. Caller frees *out.
qg_status qg_figure_quantized(const qg_figure_rows *rows, qg_column column, qg_figure_mean **out,
                              int64_t *count);

// The point of a recipe and a law; NULL if there is none. NULL for layout, rule or data: any.
const qg_figure_mean *qg_figure_find(const qg_figure_mean *means, int64_t count, const char *format,
                                     const char *layout, const char *rule, const char *data);

// Appends a mean at x, shifted by `above`, with its interval.
qg_status qg_figure_add(qg_plot *plot, int64_t series, double x, double above,
                        const qg_figure_mean *mean);
// Appends a point of a line.
qg_status qg_figure_add_line(qg_plot *plot, int64_t series, double x, double y);

// "LAW, N values a point (SEEDS seeds)" into the plot's note.
void qg_figure_quantized_note(qg_plot *plot, const qg_figure_mean *means, int64_t count,
                              const char *law);

// QG_ERROR_DATA: the figure lacks `what`.
qg_status qg_figure_lacks(const char *what);

// Standard deviation of a law, its density through *density.
double qg_figure_sigma(const char *law, qg_density *density);

// The noise of a row's recipe on its law, by integration over blocks of the row's layout: false where
// theory has no answer (no density, a rule that needs the elements).
bool qg_figure_theory(const qg_figure_row *row, qg_noise *out);
// The same of blocks of g values of that standard deviation, in a tensor of that largest magnitude.
bool qg_figure_block_theory(const qg_gate_operand *operand, qg_density density, double sigma,
                            int64_t g, double tensor_amax, qg_noise *out);

#endif
