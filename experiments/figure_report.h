// report.md and index.html: figures, captions, tables, environment.
#ifndef FIGURE_REPORT_H
#define FIGURE_REPORT_H

#include <figure.h>
#include <published.h>

typedef enum qg_figure_outcome {
    QG_FIGURE_DRAWN,      // `note`: what the caption says of the data
    QG_FIGURE_LACKS_DATA, // `note`: what is missing
    QG_FIGURE_FAILED      // `note`: why
} qg_figure_outcome;

typedef struct qg_figure_state {
    const qg_figure *figure;
    qg_figure_outcome outcome;
    char stem[64];
    char note[512];
    char command[4096]; // what would measure the data; "": nothing does
} qg_figure_state;

typedef struct qg_figure_report {
    const char *folder;
    const char *const *files; // result files (file_count)
    const uint64_t *digests;  // of their content
    int file_count;
    const qg_figure_input *input;
    const qg_figure_state *states; // (state_count)
    int state_count;
    const qg_published_result *published; // (published_count)
    int published_count;
    bool svg, png; // pictures that exist
} qg_figure_report;

// FOLDER/report.md and FOLDER/index.html, each as a whole. QG_ERROR_IO, QG_ERROR_MEMORY.
qg_status qg_figure_report_write(const qg_figure_report *report);

#endif
