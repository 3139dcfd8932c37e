// The data of a plot as TSV: one block per series, two empty lines between them, as gnuplot's
// `index` counts; series without points have none. Comment lines begin with #.
#include <plot_write.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const MARKS[] = {"theory", "measured", "joined",   "bound", "slope",
                                    "bar",    "rug",      "vertical", "cell"};

// Labels of foreign origin may hold what gnuplot takes for its own: quotes, and # at the start.
static void put_text(FILE *stream, const char *text) {
    if (*text == '#')
        fputc(' ', stream);
    for (; *text; text++)
        fputc(*text == '"' ? '\'' : (unsigned char)*text < ' ' ? ' ' : *text, stream);
}

static void put_comment(FILE *stream, const char *name, const char *text) {
    fprintf(stream, "# %s: ", name);
    put_text(stream, text);
    fputc('\n', stream);
}

static void put_number(FILE *stream, double value) {
    if (isnan(value))
        fputs("\tNaN", stream);
    else
        fprintf(stream, "\t%.10g", value);
}

static void put_series(FILE *stream, const qg_plot *plot, const qg_plot_series *s) {
    for (int64_t i = 0; i < s->count; i++) {
        const qg_plot_point *p = &s->points[i];
        put_text(stream, plot->panel_title[s->panel]);
        fputc('\t', stream);
        put_text(stream, s->label);
        fprintf(stream, "\t%s", MARKS[s->mark]);
        put_number(stream, p->x);
        put_number(stream, p->y);
        put_number(stream, p->low);
        put_number(stream, p->high);
        put_number(stream, p->z);
        fputc('\n', stream);
    }
}

static void put_all(FILE *stream, const qg_plot *plot, const qg_plot_files *files) {
    fprintf(stream, "# %s: %s\n", files->stem, files->title);
    fputs(files->source, stream);
    put_comment(stream, "x", plot->x.label);
    put_comment(stream, "y", plot->y.label);
    if (plot->colour_label[0])
        put_comment(stream, "z", plot->colour_label);
    fputs("#panel\tseries\tmark\tx\ty\tlow\thigh\tz\n", stream);
    bool first = true;
    for (int64_t i = 0; i < plot->count; i++) {
        if (plot->series[i].count == 0)
            continue; // would end the block before it, not make one of its own
        fputs(first ? "" : "\n\n", stream);
        put_series(stream, plot, &plot->series[i]);
        first = false;
    }
}

// Whole or not at all, as a reader sees it; not synced: what a crash of the machine takes, the same
// command draws again.
qg_status qg_plot_replace_file(const char *folder, const char *stem, const char *ending,
                               const char *text, size_t size) {
    char path[4096], part[4096 + sizeof ".part"];
    if (snprintf(path, sizeof path, "%s/%s%s", folder, stem, ending) >= (int)sizeof path)
        return qg_fail(QG_ERROR_IO, "%.200s...: the path is too long", folder);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "wb");
    if (!file)
        return qg_fail(QG_ERROR_IO, "%s: %s", path, strerror(errno));
    bool done = fwrite(text, 1, size, file) == size;
    done = fflush(file) == 0 && done;
    int why = errno;
    done = fclose(file) == 0 && done;
    if (done && rename(part, path) == 0)
        return QG_OK;
    why = done ? errno : why;
    unlink(part);
    return qg_fail(QG_ERROR_IO, "%s: cannot be written: %s", path, strerror(why));
}

qg_status qg_plot_write_data(const qg_plot *plot, const qg_plot_files *files) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the data of %s", files->stem);
    put_all(stream, plot, files);
    bool failed = fclose(stream) != 0;
    qg_status status = failed
                           ? qg_fail(QG_ERROR_MEMORY, "no memory for the data of %s", files->stem)
                           : qg_plot_replace_file(files->folder, files->stem, ".tsv", text, size);
    free(text);
    return status;
}
