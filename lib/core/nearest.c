// Edit distance (optimal string alignment) over short words. See qg_nearest.h.
#include <qg_nearest.h>

#include <string.h>

enum { LONGEST = 63 };

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// Three rows of the table of distances between prefixes: the last two and the one being filled.
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            int differ = lower(a[i - 1]) != lower(b[j - 1]);
            row[j] = smaller(last[j - 1] + (size_t)differ, 1 + smaller(last[j], row[j - 1]));
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = smaller(row[j], before[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *qg_nearest(const char *word, const char *(*listed)(size_t)) {
    size_t length = strlen(word);
    if (length > LONGEST)
        return NULL;
    const char *nearest = NULL;
    size_t limit = length < 6 ? 1 : length / 3;
    for (size_t i = 0; listed(i); i++) {
        size_t listed_length = strlen(listed(i));
        if (listed_length > LONGEST)
            continue;
        size_t edits = distance(word, length, listed(i), listed_length);
        if (edits <= limit) {
            nearest = listed(i);
            if (edits == 0)
                return nearest;
            limit = edits - 1;
        }
    }
    return nearest;
}
