// A plot as files: the data as TSV, a gnuplot script that draws them, the pictures.
#ifndef PLOT_WRITE_H
#define PLOT_WRITE_H

#include <plot.h>
#include <stddef.h>

// What surrounds the data of a plot in its files.
typedef struct qg_plot_files {
    const char *folder;
    const char *stem;     // "F03_qsnr_scale"
    const char *title;    // of the TSV's comment
    const char *source;   // lines of the TSV's comment: where the data come from; may be ""
    double width, height; // inches
    bool svg, png, pdf;   // which pictures
} qg_plot_files;

// FOLDER/STEM.tsv, each series a block of its own. QG_ERROR_IO.
qg_status qg_plot_write_data(const qg_plot *plot, const qg_plot_files *files);
// FOLDER/STEM.gp, which draws every chosen picture from the TSV beside it. QG_ERROR_IO.
qg_status qg_plot_write_script(const qg_plot *plot, const qg_plot_files *files);
// Runs gnuplot on the script and makes the PDF's date a constant. QG_ERROR_IO: gnuplot is not there
// or failed, with its first line.
qg_status qg_plot_draw(const qg_plot_files *files);

// FOLDER/STEMENDING as a whole. QG_ERROR_IO.
qg_status qg_plot_replace_file(const char *folder, const char *stem, const char *ending,
                               const char *text, size_t size);

#endif
