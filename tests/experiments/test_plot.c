// Plots: data and script as gnuplot reads them, texts of foreign origin, one look per format, where
// the key lies, means over seeds.
#include <figure_select.h>
#include <plot_layout.h>
#include <plot_look.h>
#include <plot_style.h>
#include <plot_write.h>
#include <run_suite.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static void make_folder(void) {
    strcpy(folder, "/tmp/test_plot.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static char *read_file(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file, "%s", path);
    char *text = calloc(1 << 20, 1);
    ck_assert_uint_lt(fread(text, 1, 1 << 20, file), 1 << 20);
    fclose(file);
    return text;
}

static bool exists(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static int64_t add(qg_plot *plot, qg_plot_mark mark, const char *label, const char *format,
                   const char *rule) {
    int64_t series;
    ck_assert_int_eq(qg_plot_add(plot, mark, 0, label, format, rule, &series), QG_OK);
    return series;
}

static void add_point(qg_plot *plot, int64_t series, double x, double y) {
    qg_plot_point point = {x, y, NAN, NAN, NAN};
    ck_assert_int_eq(qg_plot_point_add(plot, series, point), QG_OK);
}

static qg_plot_files files_of(const char *stem) {
    return (qg_plot_files){.folder = folder,
                           .stem = stem,
                           .title = "a title",
                           .source = "# source: x.h5\n",
                           .width = 3.3,
                           .height = 2.2,
                           .svg = true};
}

static void write_both(const qg_plot *plot, const qg_plot_files *files) {
    ck_assert_int_eq(qg_plot_write_data(plot, files), QG_OK);
    ck_assert_int_eq(qg_plot_write_script(plot, files), QG_OK);
}

START_TEST(data_are_blocks) {
    qg_plot plot;
    qg_plot_open(&plot);
    int64_t first = add(&plot, QG_PLOT_THEORY, "line", "e4m3", "");
    add(&plot, QG_PLOT_MEASURED, "nothing", "e5m2", "");
    int64_t last = add(&plot, QG_PLOT_MEASURED, "points", "e2m1", "");
    add_point(&plot, first, 1, 2);
    add_point(&plot, first, 3, 0.25);
    ck_assert_int_eq(qg_plot_point_add(&plot, last, (qg_plot_point){5, 6, 5.5, 6.5, NAN}), QG_OK);
    make_folder();
    qg_plot_files files = files_of("blocks");
    write_both(&plot, &files);
    char *data = read_file("blocks.tsv");
    ck_assert_str_eq(data, "# blocks: a title\n# source: x.h5\n# x: \n# y: \n"
                           "#panel\tseries\tmark\tx\ty\tlow\thigh\tz\n"
                           "\tline\ttheory\t1\t2\tNaN\tNaN\tNaN\n"
                           "\tline\ttheory\t3\t0.25\tNaN\tNaN\tNaN\n"
                           "\n\n"
                           "\tpoints\tmeasured\t5\t6\t5.5\t6.5\tNaN\n");
    // The series without points has no block: the one after it is the second.
    char *script = read_file("blocks.gp");
    ck_assert_ptr_nonnull(strstr(script, "DATA index 1 using 4:5 with points"));
    ck_assert_ptr_nonnull(strstr(script, "DATA index 1 using 4:6:(0):($7 - $6) with vectors"));
    ck_assert_ptr_null(strstr(script, "index 2"));
    free(data);
    free(script);
    remove_folder();
    qg_plot_close(&plot);
}
END_TEST

static const char HOSTILE[] = "#it's \"q\" `touch pwned` $(touch pwned) %s @x \\ {a_b}^c \t\n<b>&";

// Rows of eight fields, whatever the texts hold. The data is cut into lines.
static void check_fields(char *data) {
    for (char *rest = data, *line; (line = strsep(&rest, "\n"));) {
        int tabs = 0;
        for (const char *c = line; *c; c++)
            tabs += *c == '\t';
        ck_assert_msg(!*line || *line == '#' || tabs == 7, "%d tabs: %s", tabs, line);
    }
}

// gnuplot runs it, draws it as it stands, and executes nothing of it.
START_TEST(texts_are_texts) {
    static const char *const names[] = {HOSTILE, "50 % `touch pwned`"};
    qg_plot plot;
    qg_plot_open(&plot);
    int64_t series = add(&plot, QG_PLOT_MEASURED, HOSTILE, "", "");
    int64_t line = add(&plot, QG_PLOT_VERTICAL, HOSTILE, "", "");
    int64_t slope = add(&plot, QG_PLOT_SLOPE, HOSTILE, "", "");
    add_point(&plot, series, 0, 2);
    add_point(&plot, series, 1, 3);
    add_point(&plot, line, 0.5, 0);
    add_point(&plot, slope, 0, 2);
    add_point(&plot, slope, 1, 3);
    snprintf(plot.x.label, sizeof plot.x.label, "%s", HOSTILE);
    snprintf(plot.y.label, sizeof plot.y.label, "%s", HOSTILE);
    snprintf(plot.panel_title[0], sizeof plot.panel_title[0], "%s", HOSTILE);
    plot.x.names = names;
    plot.x.name_count = 2;
    plot.key = QG_PLOT_KEY_BELOW;
    make_folder();
    qg_plot_files files = files_of("hostile");
    write_both(&plot, &files);
    ck_assert_msg(qg_plot_draw(&files) == QG_OK, "%s", qg_detail());
    ck_assert(!exists("pwned"));
    ck_assert(!exists("hostile.svg.part"));
    char *picture = read_file("hostile.svg");
    const char *drawn = "it's &quot;q&quot; `touch pwned` $(touch pwned) %s @x \\ {a_b}^c";
    const char *plain = "it's \"q\" `touch pwned` $(touch pwned) %s @x \\ {a_b}^c";
    int count = 0;
    for (const char *at = picture; (at = strstr(at, "`touch pwned` $(touch")) != NULL; at++)
        count++;
    ck_assert_int_ge(count, 7); // key, two direct labels, two axes, title, tic
    ck_assert(strstr(picture, drawn) || strstr(picture, plain));
    ck_assert_ptr_nonnull(strstr(picture, "50 % `touch pwned`"));
    free(picture);
    char *data = read_file("hostile.tsv");
    ck_assert_ptr_nonnull(strstr(data, "\n #it's 'q' `touch"));
    check_fields(data);
    free(data);
    remove_folder();
    qg_plot_close(&plot);
}
END_TEST

START_TEST(a_format_has_one_colour) {
    static const char *const names[] = {"e4m3", "e5m2",  "e2m1",         "e3m2",   "e2m3",
                                        "int8", "nvfp4", "nvfp4_4over6", "nvint4", "int4",
                                        "int6", "e3m4",  "bf16",         "fp16"};
    enum { COUNT = sizeof names / sizeof names[0] };
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < i; j++) {
            ck_assert_ptr_nonnull(qg_plot_colour_of(names[i]));
            ck_assert_str_ne(qg_plot_colour_of(names[i]), qg_plot_colour_of(names[j]));
        }
    ck_assert_str_eq(qg_plot_colour_of("mxfp8"), qg_plot_colour_of("e4m3"));
    ck_assert_str_eq(qg_plot_colour_of("mxfp4"), qg_plot_colour_of("e2m1"));
    ck_assert_str_eq(qg_plot_colour_of("mxint8"), qg_plot_colour_of("int8"));
    ck_assert_ptr_null(qg_plot_colour_of("hopper_wgmma"));
    ck_assert_ptr_null(qg_plot_colour_of(""));
    ck_assert_str_ne(qg_plot_dash_of("floor"), qg_plot_dash_of("rceil"));
    ck_assert_str_ne(qg_plot_dash_of("even"), qg_plot_dash_of("rceil"));
}
END_TEST

START_TEST(looks_follow_the_series) {
    qg_plot plot;
    qg_plot_open(&plot);
    int64_t free_one = add(&plot, QG_PLOT_MEASURED, "a unit", "", "");
    int64_t e4m3 = add(&plot, QG_PLOT_MEASURED, "E4M3", "e4m3", "rceil");
    int64_t theory = add(&plot, QG_PLOT_THEORY, "", "e4m3", "rceil");
    int64_t free_two = add(&plot, QG_PLOT_THEORY, "another", "", "");
    int64_t again = add(&plot, QG_PLOT_MEASURED, "a unit", "", "");
    int64_t bound = add(&plot, QG_PLOT_BOUND, "bound", "e4m3", "");
    qg_plot_look one = qg_plot_look_of(&plot, free_one), two = qg_plot_look_of(&plot, free_two);
    ck_assert_str_eq(qg_plot_look_of(&plot, e4m3).colour, qg_plot_colour_of("e4m3"));
    ck_assert_str_eq(qg_plot_look_of(&plot, theory).colour, qg_plot_colour_of("e4m3"));
    ck_assert_str_eq(qg_plot_look_of(&plot, theory).dash, qg_plot_dash_of("rceil"));
    ck_assert_str_ne(one.colour, qg_plot_colour_of("e4m3"));
    ck_assert_str_ne(one.colour, two.colour);
    ck_assert_str_eq(qg_plot_look_of(&plot, again).colour, one.colour);
    ck_assert_int_eq(qg_plot_look_of(&plot, again).shape, one.shape);
    ck_assert_int_ne(qg_plot_look_of(&plot, e4m3).shape, one.shape);
    ck_assert_str_ne(qg_plot_look_of(&plot, bound).colour, qg_plot_colour_of("e4m3"));
    ck_assert_str_ne(qg_plot_look_of(&plot, bound).dash, "1");
    qg_plot_close(&plot);
}
END_TEST

START_TEST(nothing_lies_on_another) {
    for (int entries = 0; entries <= 12; entries++)
        for (int panels = 1; panels <= 6; panels += 5) {
            qg_plot plot;
            qg_plot_layout l;
            qg_plot_open(&plot);
            for (int i = 0; i < entries; i++) {
                char label[32];
                snprintf(label, sizeof label, "a label %d", i);
                add_point(&plot, add(&plot, QG_PLOT_MEASURED, label, "", ""), i, i);
            }
            strcpy(plot.x.label, "x");
            strcpy(plot.y.label, "y");
            plot.panels = panels;
            plot.columns = panels > 1 ? 3 : 1;
            plot.key = QG_PLOT_KEY_BELOW;
            qg_plot_lay_out(&plot, 504, 300, &l);
            int rows = entries ? (entries + l.key_columns - 1) / l.key_columns : 0;
            ck_assert_int_eq(l.entries, entries);
            ck_assert_double_ge(l.xlabel_y - 5, rows ? l.key_y + 9.5 * rows : 0);
            for (int i = 0; i < panels; i++) {
                const qg_plot_box *b = &l.panel[i];
                ck_assert_double_gt(b->right - b->left, 60);
                ck_assert_double_gt(b->top - b->bottom, 40);
                ck_assert_double_gt(b->bottom, l.xlabel_y + 5 + 7);
                ck_assert_double_le(b->right, 504);
                ck_assert(b->top <= 300 && b->left >= 20);
                for (int j = 0; j < i; j++)
                    ck_assert(l.panel[j].right < b->left || l.panel[j].bottom > b->top ||
                              b->right < l.panel[j].left);
            }
            qg_plot_close(&plot);
        }
}
END_TEST

START_TEST(zeros_have_their_place) {
    qg_plot plot;
    qg_plot_layout l;
    qg_plot_open(&plot);
    plot.y.scale = QG_PLOT_LOG10;
    int64_t series = add(&plot, QG_PLOT_MEASURED, "s", "", "");
    add_point(&plot, series, 1, 1e-3);
    qg_plot_lay_out(&plot, 240, 160, &l);
    ck_assert(isnan(l.y.exact_at));
    add_point(&plot, series, 2, 0);
    qg_plot_lay_out(&plot, 240, 160, &l);
    ck_assert(l.y.exact_at > l.y.from && l.y.exact_at < 1e-3);
    make_folder();
    qg_plot_files files = files_of("zeros");
    write_both(&plot, &files);
    char *script = read_file("zeros.gp");
    ck_assert_ptr_nonnull(strstr(script, "($5 > 0 ? $5 : "));
    ck_assert_ptr_nonnull(strstr(script, "\"exact\""));
    free(script);
    remove_folder();
    qg_plot_close(&plot);
}
END_TEST

// ------------------------------------------------------------------------------------------- means

static void add_row(qg_table *table, uint64_t id, const char *format, uint64_t seed, double value) {
    int64_t row;
    ck_assert_int_eq(qg_table_append(table, &row), QG_OK);
    qg_table_set_u64(table, row, QG_COLUMN_CASE_ID, id);
    qg_table_set_text(table, row, QG_COLUMN_FORMAT, format);
    qg_table_set_text(table, row, QG_COLUMN_STATUS, "RAN");
    qg_table_set_u64(table, row, QG_COLUMN_SEED, seed);
    qg_table_set_f64(table, row, QG_COLUMN_METRIC_QSNR_DB, value);
}

static qg_figure_rows select_from(const qg_table *a, const qg_table *b, const char *where) {
    const qg_table *tables[] = {a, b};
    qg_figure_input input = {tables, b ? 2 : 1};
    qg_figure_rows rows;
    ck_assert_int_eq(qg_figure_select(&input, where, &rows), QG_OK);
    return rows;
}

// Student's 97.5 % quantiles from tables of the distribution.
START_TEST(means_have_student_intervals) {
    static const struct {
        int n;
        double quantile;
    } CASES[] = {
        {2,  12.7062},
        {5,  2.7764 },
        {17, 2.1199 },
        {18, 2.1098 },
        {31, 2.0423 },
        {61, 2.0003 }
    };
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        qg_table *table;
        int n = CASES[c].n;
        double sum = 0, squares = 0;
        ck_assert_int_eq(qg_table_create(&table), QG_OK);
        for (int i = 0; i < n; i++) {
            double value = 30 + sin(i);
            add_row(table, (uint64_t)(2 * i + 1), "e4m3", (uint64_t)i, value);
            add_row(table, (uint64_t)(2 * i + 2), "e5m2", (uint64_t)i, 7);
            sum += value;
        }
        for (int i = 0; i < n; i++)
            squares += pow(30 + sin(i) - sum / n, 2);
        qg_figure_rows rows = select_from(table, NULL, "seed>=0");
        qg_figure_mean *means;
        int64_t count;
        ck_assert_int_eq(qg_figure_means(&rows, QG_COLUMN_METRIC_QSNR_DB, &means, &count), QG_OK);
        ck_assert_int_eq(count, 2);
        ck_assert_str_eq(qg_figure_text(means[0].representative, QG_COLUMN_FORMAT), "e4m3");
        ck_assert_int_eq(means[0].seeds, n);
        ck_assert_double_eq_tol(means[0].mean, sum / n, 1e-12);
        double error = sqrt(squares / (n - 1) / n);
        ck_assert_double_eq_tol(means[0].half_width, CASES[c].quantile * error, 1e-3 * error);
        ck_assert_double_eq_tol(means[1].mean, 7, 1e-12);
        ck_assert_double_eq_tol(means[1].half_width, 0, 1e-9);
        free(means);
        qg_figure_rows_free(&rows);
        qg_table_free(table);
    }
}
END_TEST

START_TEST(a_case_counts_once) {
    qg_table *a, *b;
    ck_assert_int_eq(qg_table_create(&a), QG_OK);
    ck_assert_int_eq(qg_table_create(&b), QG_OK);
    add_row(a, 1, "e4m3", 1, 30);
    add_row(a, 2, "e4m3", 2, 31);
    add_row(b, 2, "e4m3", 2, 31);
    add_row(b, 3, "e4m3", 3, 32);
    qg_figure_rows rows = select_from(a, b, "format=e4m3");
    ck_assert_int_eq(rows.count, 3);
    ck_assert_double_eq(qg_figure_number(&rows.items[2], QG_COLUMN_METRIC_QSNR_DB), 32);
    ck_assert_ptr_eq(rows.items[1].table, a);
    qg_figure_rows_free(&rows);
    // What did not run says nothing.
    qg_table_set_text(a, 0, QG_COLUMN_STATUS, "CRASHED");
    rows = select_from(a, NULL, "format=e4m3");
    ck_assert_int_eq(rows.count, 1);
    qg_figure_rows_free(&rows);
    qg_table_free(a);
    qg_table_free(b);
}
END_TEST

START_TEST(labels_of_formats) {
    char text[32];
    qg_figure_label("mxfp8_e5m2", text, sizeof text);
    ck_assert_str_eq(text, "MXFP8 E5M2");
    qg_figure_label("nvfp4_4over6", text, sizeof text);
    ck_assert_str_eq(text, "NVFP4 4/6");
    qg_figure_label("nvfp4_4over6", text, 8);
    ck_assert_str_eq(text, "NVFP4 4");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {data_are_blocks,
                                  texts_are_texts,
                                  a_format_has_one_colour,
                                  looks_follow_the_series,
                                  nothing_lies_on_another,
                                  zeros_have_their_place,
                                  means_have_student_intervals,
                                  a_case_counts_once,
                                  labels_of_formats};
    return RUN_SUITE("plot", tests);
}
