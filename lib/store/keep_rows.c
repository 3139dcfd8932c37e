// Dropping rows of a table. See qg_table.h.
#include <table_internal.h>

#include <string.h>

// Moves the kept elements to the front.
static void compact(void *elements, size_t size, const bool *keep, int64_t rows) {
    char *to = elements;
    for (int64_t row = 0; elements && row < rows; row++)
        if (keep[row]) {
            memmove(to, (const char *)elements + (size_t)row * size, size);
            to += size;
        }
}

void qg_table_keep_rows(qg_table *table, const bool *keep) {
    int64_t kept = 0;
    for (int64_t row = 0; row < table->rows; row++)
        kept += keep[row];
    for (int i = 0; i < QG_COLUMN_COUNT; i++)
        compact(table->columns[i], qg_column_size(qg_column_describe((qg_column)i)->type), keep,
                table->rows);
    compact(table->order, sizeof *table->order, keep, table->rows);
    compact(table->histogram_of, sizeof *table->histogram_of, keep, table->rows);
    // Room beyond the capacity is filled with what is missing when it is taken again.
    table->rows = table->capacity = kept;
}
