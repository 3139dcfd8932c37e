// Aligned tables. See text_grid.h. Widths count UTF-8 characters.
#include <text_grid.h>

#include <number.h>

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { GAP = 2, NARROWEST = 6 };

static int characters(const char *text) {
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

// Texts from foreign files may hold control characters.
static void clean(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

static void read_cell(const qg_text_grid *grid, int64_t row, int column, char text[QG_CELL_SIZE]) {
    text[0] = 0;
    if (row < 0)
        snprintf(text, QG_CELL_SIZE, "%s", grid->title[column]);
    else
        grid->cell(grid->context, row, column, text);
    clean(text);
}

static void measure(const qg_text_grid *grid, int widths[QG_GRID_COLUMNS]) {
    char text[QG_CELL_SIZE];
    for (int column = 0; column < grid->columns; column++)
        widths[column] = 0;
    for (int64_t row = -1; row < grid->rows; row++)
        for (int column = 0; column < grid->columns; column++) {
            read_cell(grid, row, column, text);
            int width = characters(text);
            if (width > widths[column])
                widths[column] = width;
        }
}

static int total(const qg_text_grid *grid, const int widths[QG_GRID_COLUMNS]) {
    int sum = grid->columns > 0 ? GAP * (grid->columns - 1) : 0;
    for (int column = 0; column < grid->columns; column++)
        sum += widths[column];
    return sum;
}

int qg_text_grid_width(const qg_text_grid *grid) {
    int widths[QG_GRID_COLUMNS];
    measure(grid, widths);
    return total(grid, widths);
}

// Takes from the widest column of texts until the whole fits.
static void narrow(const qg_text_grid *grid, bool whole_too, int widths[QG_GRID_COLUMNS]) {
    for (int excess = grid->width ? total(grid, widths) - grid->width : 0; excess > 0; excess--) {
        int widest = -1;
        for (int column = 0; column < grid->columns; column++)
            if (!grid->right[column] && !grid->kept[column] &&
                (whole_too || !grid->whole[column]) &&
                (widest < 0 || widths[column] > widths[widest]))
                widest = column;
        if (widest < 0 || widths[widest] <= NARROWEST)
            return;
        widths[widest]--;
    }
}

// Where the character of that number begins.
static char *character(char *text, int number) {
    for (int before = 0; *text; text++)
        if (((unsigned char)*text & 0xC0) != 0x80 && before++ == number)
            break;
    return text;
}

static void cut(char *text, int width, bool middle) {
    int length = characters(text), tail = middle ? (width - 1) * 2 / 3 : 0;
    if (length <= width)
        return;
    char *end = character(text, length - tail), *to = character(text, width - 1 - tail);
    *to = '~';
    memmove(to + 1, end, strlen(end) + 1);
}

static void print_row(const qg_text_grid *grid, int64_t row, const int widths[QG_GRID_COLUMNS],
                      FILE *stream) {
    char text[QG_CELL_SIZE];
    int owed = 0; // spaces, printed once something follows them
    for (int column = 0; column < grid->columns; column++) {
        read_cell(grid, row, column, text);
        cut(text, widths[column], grid->middle[column]);
        int space = widths[column] - characters(text);
        owed += (column ? GAP : 0) + (grid->right[column] ? space : 0);
        if (text[0])
            fprintf(stream, "%*s%s", owed, "", text);
        owed = (text[0] ? 0 : owed) + (grid->right[column] ? 0 : space);
    }
    fputc('\n', stream);
}

void qg_text_grid_print(const qg_text_grid *grid, FILE *stream) {
    int widths[QG_GRID_COLUMNS];
    measure(grid, widths);
    narrow(grid, false, widths);
    narrow(grid, true, widths);
    for (int64_t row = -1; row < grid->rows; row++)
        print_row(grid, row, widths, stream);
}

static void print_markdown_row(const qg_text_grid *grid, int64_t row, FILE *stream) {
    char text[QG_CELL_SIZE];
    fputc('|', stream);
    for (int column = 0; column < grid->columns; column++) {
        read_cell(grid, row, column, text);
        fputc(' ', stream);
        for (const char *c = text; *c; c++)
            fprintf(stream, "%s%c", *c == '|' ? "\\" : "", *c);
        fputs(" |", stream);
    }
    fputc('\n', stream);
}

void qg_text_grid_markdown(const qg_text_grid *grid, FILE *stream) {
    print_markdown_row(grid, -1, stream);
    fputc('|', stream);
    for (int column = 0; column < grid->columns; column++)
        fputs(grid->right[column] ? "---:|" : "---|", stream);
    fputc('\n', stream);
    for (int64_t row = 0; row < grid->rows; row++)
        print_markdown_row(grid, row, stream);
}

int qg_terminal_width(FILE *stream, int standard) {
    enum { NARROW = 20 };
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int64_t number;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col >= NARROW)
        return size.ws_col;
    if (columns && qg_number_i64(columns, &number) && number >= NARROW && number < 10000)
        return (int)number;
    return standard;
}
