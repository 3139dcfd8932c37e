// See figure_draw.h.
#include <figure_draw.h>

#include <figure_select.h>
#include <plot_write.h>
#include <qg_clock.h>
#include <qg_data_dir.h>
#include <qg_plan_build.h>
#include <qg_results.h>
#include <qg_version.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// "F3", "qsnr_scale" as F03_qsnr_scale: names sort as numbers.
static void stem_of(const qg_figure *figure, char *stem, size_t size) {
    snprintf(stem, size, "F%02d_%s", atoi(figure->id + 1), figure->name);
}

// The figure lacks data: why, and the command that measures it.
static void lacking(const qg_figure *figure, const qg_figure_request *request, const char *why,
                    qg_figure_state *state) {
    char plan[3072], name[128], out[80];
    state->outcome = QG_FIGURE_LACKS_DATA;
    snprintf(state->note, sizeof state->note, "%s", why);
    if (!figure->plan)
        return;
    snprintf(name, sizeof name, "experiments/plans/%s", figure->plan);
    if (qg_data_file(name, plan, sizeof plan) != QG_OK)
        snprintf(plan, sizeof plan, "%s", name);
    snprintf(out, sizeof out, "%s.h5", figure->name);
    snprintf(state->command, sizeof state->command, "%.512s --plan", request->sweep);
    if (!qg_shell_append(state->command, sizeof state->command, plan) ||
        !qg_shell_append(state->command, sizeof state->command, "--out") ||
        !qg_shell_append(state->command, sizeof state->command, out))
        state->command[0] = '\0';
}

// A name in a comment, which ends with its line.
static void put_name(FILE *stream, const char *name) {
    for (; *name; name++)
        fputc((unsigned char)*name < ' ' ? '?' : *name, stream);
}

// Comment lines: the files and what is in them.
static char *source_text(const qg_figure_request *request) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    fprintf(stream, "# quantgauge %s\n", QG_VERSION);
    for (int i = 0; i < request->file_count; i++) {
        const qg_table *table = request->input.tables[i];
        const char *commit = qg_table_runs(table) ? qg_table_run_value(table, 0, "commit") : NULL;
        fputs("# source: ", stream);
        put_name(stream, base_name(request->files[i]));
        fprintf(stream, ", content %016" PRIx64 ", commit ", request->digests[i]);
        put_name(stream, commit ? commit : "unknown");
        fputc('\n', stream);
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static qg_status write_files(const qg_figure *figure, const qg_figure_request *request,
                             const qg_plot *plot, const char *stem, qg_figure_times *times) {
    char *source = source_text(request);
    if (!source)
        return qg_fail(QG_ERROR_MEMORY, "no memory for %s", stem);
    qg_plot_files files = {.folder = request->folder,
                           .stem = stem,
                           .title = figure->title,
                           .source = source,
                           .width = figure->width,
                           .height = figure->width * figure->ratio,
                           .svg = request->svg,
                           .png = request->png,
                           .pdf = request->pdf};
    qg_status status = qg_plot_write_data(plot, &files);
    if (status == QG_OK)
        status = qg_plot_write_script(plot, &files);
    double start = qg_clock();
    if (status == QG_OK)
        status = qg_plot_draw(&files);
    times->draw = qg_clock() - start;
    free(source);
    return status;
}

// times: NULL to write nothing.
static qg_status build_and_write(const qg_figure *figure, const qg_figure_request *request,
                                 const qg_figure_rows *rows, qg_figure_state *state,
                                 qg_figure_times *times) {
    qg_plot plot;
    qg_plot_open(&plot);
    qg_status status = figure->build(rows, &plot);
    if (status == QG_ERROR_DATA) {
        lacking(figure, request, qg_detail(), state);
        status = QG_OK;
    } else if (status == QG_OK) {
        snprintf(state->note, sizeof state->note, "%s", plot.note);
        if (times)
            status = write_files(figure, request, &plot, state->stem, times);
    }
    qg_plot_close(&plot);
    return status;
}

static qg_status take(const qg_figure *figure, const qg_figure_request *request,
                      qg_figure_state *state, qg_figure_times *times) {
    qg_figure_rows rows;
    *state = (qg_figure_state){.figure = figure};
    stem_of(figure, state->stem, sizeof state->stem);
    qg_status status = qg_figure_select(&request->input, figure->where, &rows);
    if (status == QG_OK && figure->where && rows.count == 0)
        lacking(figure, request,
                request->file_count ? "the files hold none of its rows"
                                    : "no result file was given",
                state);
    else if (status == QG_OK)
        status = build_and_write(figure, request, &rows, state, times);
    qg_figure_rows_free(&rows);
    if (status != QG_OK) {
        state->outcome = QG_FIGURE_FAILED;
        snprintf(state->note, sizeof state->note, "%s", qg_detail());
    }
    return status;
}

qg_status qg_figure_draw(const qg_figure *figure, const qg_figure_request *request,
                         qg_figure_state *state, qg_figure_times *times) {
    double start = qg_clock();
    *times = (qg_figure_times){0, 0};
    qg_status status = take(figure, request, state, times);
    times->build = qg_clock() - start - times->draw;
    return status;
}

qg_status qg_figure_check(const qg_figure *figure, const qg_figure_request *request,
                          qg_figure_state *state) {
    return take(figure, request, state, NULL);
}
