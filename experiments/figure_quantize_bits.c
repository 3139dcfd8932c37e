// QSNR against what an element costs, its share of the scales included.
#include <figure_list.h>
#include <figure_quantize.h>

#include <qg_closed_forms.h>

#include <qg_recipe_name.h>

#include <math.h>
#include <stdlib.h>

enum { MOST = 4 };

typedef struct family {
    const char *label, *colour; // colour: the format whose it is; a name without one: a free colour
    const char *rule;           // NULL: the recipe's own
    const char *recipes[MOST + 1];
} family;

static const family FAMILIES[] = {
    {"MX E4M3 E2M3 E2M1", "e4m3",         "rceil", {"mxfp8", "mxfp6_e2m3", "mxfp4"}},
    {"MX E5M2 E3M2",      "e5m2",         "rceil", {"mxfp8_e5m2", "mxfp6_e3m2"}    },
    {"MX INT8 INT6 INT4", "int8",         "rceil", {"mxint8", "mxint6", "mxint4"}  },
    {"MX9 MX6 MX4",       "shared shift", NULL,    {"mx9", "mx6", "mx4"}           },
    {"NVFP4",             "nvfp4",        NULL,    {"nvfp4"}                       },
    {"NVFP4 4/6",         "nvfp4_4over6", NULL,    {"nvfp4_4over6"}                },
    {"NVINT4",            "nvint4",       NULL,    {"nvint4"}                      },
};
enum { FAMILY_COUNT = sizeof FAMILIES / sizeof FAMILIES[0] };

// Bits of a code, and of scale and shifts over the elements that share them.
static double bits_of(const char *name) {
    qg_recipe recipe;
    if (qg_recipe_find(name, &recipe) != QG_OK)
        return NAN;
    double group = (double)recipe.layout.columns;
    double scale = qg_rule_scale_format(recipe.rule) == QG_FORMAT_FP32 ? 32 : 8;
    double shift = recipe.structure == QG_STRUCTURE_PAIR_SHIFT ? 0.5 : 0;
    return qg_format_describe(recipe.element).bits + scale / group + shift;
}

// Where theory follows the recipes; gnuplot does not count series without points.
static qg_status add_family_theory(qg_plot *plot, const qg_figure_mean *means, int64_t count,
                                   const family *f) {
    int64_t series = -1;
    qg_status status = QG_OK;
    for (int i = 0; f->recipes[i] && status == QG_OK; i++) {
        qg_noise noise;
        const qg_figure_mean *m = qg_figure_find(means, count, f->recipes[i], NULL, f->rule, NULL);
        if (!qg_figure_theory(m->representative, &noise))
            continue;
        if (series < 0)
            status = qg_plot_add(plot, QG_PLOT_THEORY, 0, f->label, f->colour, "", &series);
        if (status == QG_OK)
            status =
                qg_figure_add_line(plot, series, bits_of(f->recipes[i]), qg_noise_qsnr_db(noise));
    }
    return status;
}

static qg_status add_family(qg_plot *plot, const qg_figure_mean *means, int64_t count,
                            const family *f) {
    int64_t series;
    for (int i = 0; f->recipes[i]; i++)
        if (!qg_figure_find(means, count, f->recipes[i], NULL, f->rule, NULL))
            return qg_figure_lacks(f->recipes[i]);
    qg_status status = add_family_theory(plot, means, count, f);
    if (status == QG_OK)
        status = qg_plot_add(plot, QG_PLOT_MEASURED, 0, f->label, f->colour, "", &series);
    for (int i = 0; f->recipes[i] && status == QG_OK; i++)
        status = qg_figure_add(plot, series, bits_of(f->recipes[i]), 0,
                               qg_figure_find(means, count, f->recipes[i], NULL, f->rule, NULL));
    return status;
}

// Of MX9, MX6, MX4: 16 values share an exponent, 2 a shift of one bit.
static qg_status add_bound(qg_plot *plot) {
    static const struct {
        const char *recipe;
        int magnitude;
    } FORMATS[] = {
        {"mx9", 7},
        {"mx6", 4},
        {"mx4", 2}
    };
    int64_t series;
    qg_status status = qg_plot_add(plot, QG_PLOT_BOUND, 0, "MX9 … MX4: bound", "", "", &series);
    for (int i = 0; i < 3 && status == QG_OK; i++)
        status = qg_figure_add_line(
            plot, series, bits_of(FORMATS[i].recipe),
            qg_closed_shared_exponent_bound_db(FORMATS[i].magnitude, 1, 16, 16, 2));
    return status;
}

qg_status qg_build_qsnr_bits(const qg_figure_rows *rows, qg_plot *plot) {
    qg_figure_mean *means;
    int64_t count;
    qg_status status = qg_figure_quantized(rows, QG_COLUMN_METRIC_QSNR_DB, &means, &count);
    plot->x =
        (qg_plot_axis){"bits per element, scales included", QG_PLOT_LINEAR, 3.8, 9.2, NAN, NULL, 0};
    plot->y = (qg_plot_axis){"QSNR (dB)", QG_PLOT_LINEAR, 0, 50, NAN, NULL, 0};
    plot->key = QG_PLOT_KEY_BELOW;
    for (int i = 0; i < FAMILY_COUNT && status == QG_OK; i++)
        status = add_family(plot, means, count, &FAMILIES[i]);
    if (status == QG_OK)
        status = add_bound(plot);
    if (status == QG_OK)
        qg_figure_quantized_note(plot, means, count, "N(0, 1)");
    free(means);
    return status;
}
