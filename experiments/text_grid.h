// Aligned tables on a terminal, and the same as Markdown. Cells come from a function, so that
// tables of any length take no memory.
#ifndef TEXT_GRID_H
#define TEXT_GRID_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { QG_CELL_SIZE = 1024, QG_GRID_COLUMNS = 256 };

typedef struct qg_text_grid {
    int columns;
    int64_t rows;
    const char *title[QG_GRID_COLUMNS];
    bool right[QG_GRID_COLUMNS];  // aligned to the right: numbers
    bool middle[QG_GRID_COLUMNS]; // cut in the middle: the end tells texts apart, too
    bool whole[QG_GRID_COLUMNS];  // cut only when cutting the others is not enough
    bool kept[QG_GRID_COLUMNS];   // never cut
    void (*cell)(const void *context, int64_t row, int column, char text[QG_CELL_SIZE]);
    const void *context;
    int width; // of the whole, 0: any; longer texts of left-aligned columns are then cut with ~
} qg_text_grid;

void qg_text_grid_print(const qg_text_grid *grid, FILE *stream);
void qg_text_grid_markdown(const qg_text_grid *grid, FILE *stream);
// The width that the grid takes uncut.
int qg_text_grid_width(const qg_text_grid *grid);

// The columns of the terminal behind a stream: what it says, else COLUMNS, else `standard`.
int qg_terminal_width(FILE *stream, int standard);

#endif
