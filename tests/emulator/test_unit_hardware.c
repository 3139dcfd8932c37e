// Every recorded dot product of datasets/vectors/hardware through the unit table: 22,000 outputs of
// NVIDIA matrix units, to the bit. Origin and licence: the README beside the vectors.
#include <require.h>
#include <run_suite.h>

#include <qg_format_name.h>
#include <qg_unit.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 32, LINE_SIZE = 512 };

typedef struct header {
    char unit[QG_UNIT_NAME_SIZE], a[32], b[32], c[32], d[32];
    int k;
} header;

static void read_key(header *h, const char *line) {
    sscanf(line, "# unit: %90s", h->unit);
    sscanf(line, "# a: %31s", h->a);
    sscanf(line, "# b: %31s", h->b);
    sscanf(line, "# c: %31s", h->c);
    sscanf(line, "# d: %31s", h->d);
    sscanf(line, "# k: %d", &h->k);
}

static qg_format format_of(const char *name) {
    qg_format format = 0;
    ck_assert_msg(qg_format_parse(name, &format) == QG_OK, "%s", qg_detail());
    return format;
}

static const qg_unit_row *row_of(const header *h) {
    qg_unit unit;
    ck_assert_msg(qg_unit_parse(h->unit, &unit) == QG_OK, "%s", qg_detail());
    ck_assert_str_eq(h->c, h->d);
    return qg_unit_row_find(unit.id, format_of(h->a), format_of(h->b), format_of(h->c),
                            QG_UNIT_NO_SCALE);
}

// `count` codes of `format` from *text, which ends at a space or the end of the line.
static void read_codes(const char **text, qg_format format, int count, uint64_t *codes) {
    qg_format_info info = qg_format_describe(format);
    int digits = 2 * qg_format_code_bytes(&info);
    for (int i = 0; i < count; i++, *text += digits) {
        char word[17] = {0};
        strncpy(word, *text, (size_t)digits);
        codes[i] = strtoull(word, NULL, 16);
    }
    ck_assert(**text == ' ' || **text == '\n');
    ++*text;
}

static bool line_agrees(const header *h, const qg_unit_row *row, const char *line, uint64_t *wanted,
                        uint64_t *got) {
    uint64_t a[LONGEST], b[LONGEST];
    qg_unit_dot_input in = {
        .a_format = format_of(h->a), .b_format = format_of(h->b), .k = h->k, .a = a, .b = b};
    read_codes(&line, in.a_format, h->k, a);
    read_codes(&line, in.b_format, h->k, b);
    read_codes(&line, row->accumulator, 1, &in.c);
    read_codes(&line, row->accumulator, 1, wanted);
    ck_assert_msg(qg_unit_dot(row, &in, got) == QG_OK, "%s", qg_detail());
    return *got == *wanted;
}

// The lines of a file; *mismatches: how many of them the model misses.
static int check_file(const char *path, int *mismatches) {
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    char line[LINE_SIZE];
    header h = {0};
    const qg_unit_row *row = NULL;
    int lines = 0;
    *mismatches = 0;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#') {
            read_key(&h, line);
            continue;
        }
        if (!row)
            row = row_of(&h);
        ck_assert_msg(row != NULL && h.k <= LONGEST, "%s: no row of the table", path);
        uint64_t wanted, got;
        lines++;
        if (!line_agrees(&h, row, line, &wanted, &got) && ++*mismatches == 1)
            fprintf(stderr, "%s line %d: %llx, not %llx\n", path, lines, (unsigned long long)got,
                    (unsigned long long)wanted);
    }
    fclose(file);
    return lines;
}

START_TEST(every_recorded_output) {
    char pattern[4096];
    const char *source = getenv("QG_SOURCE_DIR");
    ck_assert_msg(source != NULL, "QG_SOURCE_DIR is not set");
    snprintf(pattern, sizeof pattern, "%s/datasets/vectors/hardware/*.qgvec", source);
    glob_t files;
    ck_assert_int_eq(glob(pattern, 0, NULL, &files), 0);
    int lines = 0, missed = 0;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        int mismatches;
        lines += check_file(files.gl_pathv[i], &mismatches);
        missed += mismatches;
        if (mismatches > 0)
            fprintf(stderr, "%s: %d mismatches\n", files.gl_pathv[i], mismatches);
    }
    globfree(&files);
    ck_assert_int_eq(lines, 22000);
    ck_assert_int_eq(missed, 0);
}
END_TEST

int main(void) {
    const TTest *tests[] = {every_recorded_output};
    return RUN_SUITE("unit_hardware", tests);
}
