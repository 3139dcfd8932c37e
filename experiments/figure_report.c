// The report of a set of figures, as Markdown and as one page of HTML that needs no other file.
// Both are written from the same blocks: a heading, a paragraph, a picture, a table.
#include <figure_report.h>

#include <plot_write.h>
#include <qg_results.h>
#include <qg_version.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct page {
    FILE *stream;
    bool html;
    const qg_figure_report *report;
} page;

// ------------------------------------------------------------------------------------------ blocks

// Of HTML: text and quoted attributes.
static const char *entity_of(char c) {
    switch (c) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    default: return NULL;
    }
}

// Texts come from result files too: nothing in them is markup.
static void put_escaped(const page *p, const char *text) {
    static const char MARKUP[] = "\\`*_[]|#~";
    for (; *text; text++) {
        const char *entity = entity_of(*text);
        bool is_entity = entity && (p->html || *text == '<' || *text == '&');
        if (is_entity)
            fputs(entity, p->stream);
        else if (!p->html && strchr(MARKUP, *text))
            fprintf(p->stream, "\\%c", *text);
        else
            fputc((unsigned char)*text < ' ' ? ' ' : *text, p->stream);
    }
}

static void put_heading(const page *p, const char *id, const char *text) {
    if (p->html)
        fprintf(p->stream, "<h2 id=\"%s\">", id);
    else
        fputs("## ", p->stream);
    put_escaped(p, text);
    fputs(p->html ? "</h2>\n" : "\n\n", p->stream);
}

static void put_paragraph(const page *p, const char *text) {
    fputs(p->html ? "<p>" : "", p->stream);
    put_escaped(p, text);
    fputs(p->html ? "</p>\n" : "\n\n", p->stream);
}

// Preformatted: what is typed into a shell.
static void put_command(const page *p, const char *text) {
    fputs(p->html ? "<pre><code>" : "    ", p->stream);
    if (p->html)
        put_escaped(p, text);
    else
        for (; *text; text++)
            fputc((unsigned char)*text < ' ' ? ' ' : *text, p->stream);
    fputs(p->html ? "</code></pre>\n" : "\n\n", p->stream);
}

// A row of cells; `head`: of the heading.
static void put_row(const page *p, bool head, int count, const char *const *cells) {
    const char *cell = head ? "th" : "td";
    fputs(p->html ? "<tr>" : "|", p->stream);
    for (int i = 0; i < count; i++) {
        if (p->html)
            fprintf(p->stream, "<%s>", cell);
        else
            fputc(' ', p->stream);
        put_escaped(p, cells[i]);
        if (p->html)
            fprintf(p->stream, "</%s>", cell);
        else
            fputs(" |", p->stream);
    }
    fputs(p->html ? "</tr>\n" : "\n", p->stream);
    if (head && !p->html) {
        for (int i = 0; i < count; i++)
            fputs("|---", p->stream);
        fputs("|\n", p->stream);
    }
}

// Wide tables scroll on a narrow screen, the page does not.
static void begin_table(const page *p) {
    if (p->html)
        fputs("<div class=\"wide\"><table>\n", p->stream);
}

static void end_table(const page *p) { fputs(p->html ? "</table></div>\n" : "\n", p->stream); }

// ---------------------------------------------------------------------------------------- pictures

static const char *ending_of(const qg_figure_report *r) { return r->svg ? "svg" : "png"; }

static void put_base64(FILE *stream, const unsigned char *bytes, size_t size) {
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        size_t rest = size - i;
        unsigned word = (unsigned)bytes[i] << 16 | (rest > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                        (rest > 2 ? bytes[i + 2] : 0);
        for (size_t j = 0; j < 4; j++)
            fputc(j <= rest ? DIGITS[word >> (18 - 6 * j) & 63] : '=', stream);
    }
}

static qg_status read_all(const char *path, unsigned char **out, size_t *size) {
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = NULL;
    long length = -1;
    if (file && fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0)
        bytes = malloc((size_t)length + 1);
    bool done = bytes && fseek(file, 0, SEEK_SET) == 0 &&
                fread(bytes, 1, (size_t)length, file) == (size_t)length;
    int why = errno;
    if (file)
        fclose(file);
    if (!done) {
        free(bytes);
        return qg_fail(QG_ERROR_IO, "%s: %s", path, strerror(why));
    }
    *out = bytes;
    *size = (size_t)length;
    return QG_OK;
}

static qg_status put_picture(const page *p, const qg_figure_state *s) {
    char path[4096];
    const char *ending = ending_of(p->report);
    if (!p->report->svg && !p->report->png)
        return QG_OK;
    if (!p->html) {
        fputs("![", p->stream);
        put_escaped(p, s->figure->title);
        fprintf(p->stream, "](%s.%s)\n\n", s->stem, ending);
        return QG_OK;
    }
    unsigned char *bytes = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s.%s", p->report->folder, s->stem, ending);
    qg_status status = read_all(path, &bytes, &size);
    if (status != QG_OK)
        return status;
    // Larger than in print: screens are read from farther away.
    fprintf(p->stream, "<img style=\"width:%.2fin\" alt=\"", 1.7 * s->figure->width);
    put_escaped(p, s->figure->title);
    fprintf(p->stream, "\" src=\"data:image/%s;base64,", p->report->svg ? "svg+xml" : "png");
    put_base64(p->stream, bytes, size);
    fputs("\">\n", p->stream);
    free(bytes);
    return QG_OK;
}

// ----------------------------------------------------------------------------------------- chapters

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Files without their folder: reports of equal data are equal.
static void put_sources(const page *p) {
    static const char *const HEAD[] = {"file", "rows", "content digest"};
    const qg_figure_report *r = p->report;
    if (r->file_count == 0) {
        put_paragraph(p,
                      "Drawn from the tables of quantgauge " QG_VERSION " alone: no result file.");
        return;
    }
    put_paragraph(p, "Drawn by quantgauge " QG_VERSION " from:");
    begin_table(p);
    put_row(p, true, 3, HEAD);
    for (int i = 0; i < r->file_count; i++) {
        char rows[32], text[32];
        snprintf(rows, sizeof rows, "%" PRId64, qg_table_rows(r->input->tables[i]));
        snprintf(text, sizeof text, "%016" PRIx64, r->digests[i]);
        const char *cells[] = {base_name(r->files[i]), rows, text};
        put_row(p, false, 3, cells);
    }
    end_table(p);
}

// What a run says of itself, in the order of the table.
static const char *const RUN_KEYS[] = {"version", "commit",  "compiler", "flags", "cpu",
                                       "isa",     "threads", "os",       "hdf5",  "gpu",
                                       "cuda",    "driver",  "cublaslt"};
enum { RUN_KEY_COUNT = sizeof RUN_KEYS / sizeof RUN_KEYS[0] };

typedef struct run {
    const qg_table *table;
    int64_t index;
} run;

static const char *value_of(const run *r, size_t key) {
    const char *value = qg_table_run_value(r->table, r->index, RUN_KEYS[key]);
    return value ? value : "";
}

static bool same_run(const run *a, const run *b) {
    for (size_t key = 0; key < RUN_KEY_COUNT; key++)
        if (strcmp(value_of(a, key), value_of(b, key)) != 0)
            return false;
    return true;
}

// Runs that differ in nothing named here stand once.
static int distinct_runs(const qg_figure_report *r, run *out, int room) {
    int count = 0;
    for (int i = 0; i < r->file_count; i++)
        for (int64_t index = 0; index < qg_table_runs(r->input->tables[i]); index++) {
            run one = {r->input->tables[i], index};
            int at = 0;
            while (at < count && !same_run(&out[at], &one))
                at++;
            if (at == count && count < room)
                out[count++] = one;
        }
    return count;
}

static void put_environment(const page *p) {
    enum { MOST_RUNS = 8 };
    run runs[MOST_RUNS];
    char names[MOST_RUNS][16];
    const char *cells[MOST_RUNS + 1] = {""};
    int count = distinct_runs(p->report, runs, MOST_RUNS);
    if (count == 0)
        return;
    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], count > 1 ? "run %d" : "run", i + 1);
        cells[i + 1] = names[i];
    }
    put_heading(p, "environment", "Environment");
    begin_table(p);
    put_row(p, true, count + 1, cells);
    for (size_t key = 0; key < RUN_KEY_COUNT; key++) {
        bool is_known = false;
        cells[0] = RUN_KEYS[key];
        for (int i = 0; i < count; i++) {
            cells[i + 1] = value_of(&runs[i], key);
            is_known |= cells[i + 1][0] != '\0';
        }
        if (is_known)
            put_row(p, false, count + 1, cells);
    }
    end_table(p);
}

static void title_of(const qg_figure_state *s, char *title, size_t size) {
    snprintf(title, size, "%s. %s", s->figure->id, s->figure->title);
}

static qg_status put_figure(const page *p, const qg_figure_state *s) {
    char title[160];
    title_of(s, title, sizeof title);
    put_heading(p, s->figure->id, title);
    qg_status status = put_picture(p, s);
    put_paragraph(p, s->figure->caption);
    if (s->note[0])
        put_paragraph(p, s->note);
    return status;
}

static void put_not_drawn(const page *p) {
    const qg_figure_report *r = p->report;
    bool first = true;
    for (int i = 0; i < r->state_count; i++) {
        char text[768], title[160];
        const qg_figure_state *s = &r->states[i];
        if (s->outcome == QG_FIGURE_DRAWN)
            continue;
        if (first)
            put_heading(p, "not_drawn", "Not drawn");
        first = false;
        title_of(s, title, sizeof title);
        snprintf(text, sizeof text, "%s: %s%s", title,
                 s->outcome == QG_FIGURE_FAILED ? "failed: " : "", s->note);
        put_paragraph(p, text);
        if (s->command[0])
            put_command(p, s->command);
    }
}

// Links to the figures, on one page.
static void put_contents(const page *p) {
    if (!p->html || p->report->state_count < 3)
        return;
    fputs("<p>", p->stream);
    for (int i = 0; i < p->report->state_count; i++) {
        const qg_figure_state *s = &p->report->states[i];
        if (s->outcome == QG_FIGURE_DRAWN)
            fprintf(p->stream, "<a href=\"#%s\">%s</a> ", s->figure->id, s->figure->id);
    }
    fputs("</p>\n", p->stream);
}

static void put_published(const page *p) {
    static const char *const HEAD[] = {"paper",      "item",    "paper's", "ours",
                                       "difference", "verdict", "why"};
    const qg_figure_report *r = p->report;
    if (r->published_count == 0)
        return;
    put_heading(p, "published", "Published results, and ours");
    begin_table(p);
    put_row(p, true, 7, HEAD);
    for (int i = 0; i < r->published_count; i++) {
        const qg_published_result *x = &r->published[i];
        const char *cells[] = {x->paper, x->item,       x->theirs,
                               x->ours,  x->difference, qg_published_verdict_name(x->verdict),
                               x->note};
        put_row(p, false, 7, cells);
    }
    end_table(p);
}

static const char STYLE[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>quantgauge figures</title>\n<style>\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 "
    "auto;padding:1rem;color:#222}\n"
    "img{max-width:100%;height:auto;display:block;margin:.5rem 0}\n"
    ".wide{overflow-x:auto}\ntable{border-collapse:collapse;font-size:.85rem}\n"
    "th,td{border-bottom:1px solid #ddd;padding:.25rem .6rem;text-align:left;vertical-align:top}\n"
    "pre{overflow-x:auto;background:#f4f4f4;padding:.5rem}\n"
    "h2{font-size:1.15rem;margin-top:2rem}\n</style></head><body>\n<h1>quantgauge figures</h1>\n";

// Chapters in the order of a reader's questions. Verdicts of gates belong between the published
// results and the environment.
static qg_status put_page(const page *p) {
    qg_status status = QG_OK;
    const qg_figure_report *r = p->report;
    fputs(p->html ? STYLE : "# quantgauge figures\n\n", p->stream);
    put_sources(p);
    put_contents(p);
    for (int i = 0; i < r->state_count && status == QG_OK; i++)
        if (r->states[i].outcome == QG_FIGURE_DRAWN)
            status = put_figure(p, &r->states[i]);
    put_not_drawn(p);
    put_published(p);
    put_environment(p);
    if (p->html)
        fputs("</body></html>\n", p->stream);
    return status;
}

static qg_status write_page(const qg_figure_report *report, bool html) {
    const char *stem = html ? "index" : "report", *ending = html ? ".html" : ".md";
    char *text = NULL;
    size_t size = 0;
    page p = {open_memstream(&text, &size), html, report};
    if (!p.stream)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the report");
    qg_status status = put_page(&p);
    if (fclose(p.stream) != 0 && status == QG_OK)
        status = qg_fail(QG_ERROR_MEMORY, "no memory for the report");
    if (status == QG_OK)
        status = qg_plot_replace_file(report->folder, stem, ending, text, size);
    free(text);
    return status;
}

qg_status qg_figure_report_write(const qg_figure_report *report) {
    qg_status status = write_page(report, false);
    return status == QG_OK ? write_page(report, true) : status;
}
