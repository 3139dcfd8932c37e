// The builders behind the rows of figure_table.c, by file.
#ifndef FIGURE_LIST_H
#define FIGURE_LIST_H

#include <figure.h>

// figure_formats.c: from the tables of formats, no rows.
qg_status qg_build_values(const qg_figure_rows *rows, qg_plot *plot);   // F1
qg_status qg_build_envelope(const qg_figure_rows *rows, qg_plot *plot); // F2

// figure_quantize_*.c: the error of quantization.
qg_status qg_build_qsnr_scale(const qg_figure_rows *rows, qg_plot *plot);   // F3
qg_status qg_build_qsnr_bits(const qg_figure_rows *rows, qg_plot *plot);    // F4
qg_status qg_build_scale_rules(const qg_figure_rows *rows, qg_plot *plot);  // F5
qg_status qg_build_block_size(const qg_figure_rows *rows, qg_plot *plot);   // F6
qg_status qg_build_crest_factor(const qg_figure_rows *rows, qg_plot *plot); // F7
qg_status qg_build_narrow_data(const qg_figure_rows *rows, qg_plot *plot);  // F8
qg_status qg_build_shares(const qg_figure_rows *rows, qg_plot *plot);       // F14

// figure_elements.c
qg_status qg_build_sizes(const qg_figure_rows *rows, qg_plot *plot);        // F12
qg_status qg_build_distribution(const qg_figure_rows *rows, qg_plot *plot); // F13

// figure_backends.c
qg_status qg_build_agreement(const qg_figure_rows *rows, qg_plot *plot);  // F15
qg_status qg_build_throughput(const qg_figure_rows *rows, qg_plot *plot); // F17

// figure_products_k.c and figure_products_interval.c: rows of gemm.
qg_status qg_build_error_k(const qg_figure_rows *rows, qg_plot *plot);      // F9
qg_status qg_build_bias_k(const qg_figure_rows *rows, qg_plot *plot);       // F10
qg_status qg_build_promotion(const qg_figure_rows *rows, qg_plot *plot);    // F11
qg_status qg_build_stochastic_k(const qg_figure_rows *rows, qg_plot *plot); // F16

#endif
