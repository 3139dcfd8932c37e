// See plot_style.h.
#include <plot_style.h>

#include <qg_format_name.h>
#include <qg_recipe_name.h>

#include <string.h>

// Okabe and Ito, "Color Universal Design" (2008): told apart with every kind of colour vision; then
// three of Paul Tol's muted scheme for plots of many series.
static const char *const PALETTE[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00",
                                      "#56B4E9", "#000000", "#882255", "#999933", "#332288"};
_Static_assert(sizeof PALETTE / sizeof PALETTE[0] == QG_PLOT_COLOURS, "as the header says");

typedef struct style {
    const char *name, *look;
} style;

// Names first as they are listed, then the element format of a recipe. More formats than the palette
// has colours: the others are of Tol's muted scheme. No two rows have one colour.
static const style FORMATS[] = {
    {"e4m3",         "#0072B2"},
    {"e5m2",         "#D55E00"},
    {"e2m1",         "#009E73"},
    {"e3m2",         "#CC79A7"},
    {"e2m3",         "#E69F00"},
    {"int8",         "#56B4E9"},
    {"nvfp4",        "#000000"},
    {"nvfp4_4over6", "#882255"},
    {"nvint4",       "#332288"},
    {"int4",         "#999933"},
    {"int6",         "#AA4499"},
    {"e3m4",         "#117733"},
    {"bf16",         "#661100"},
    {"fp16",         "#44AA99"},
};

static const style RULES[] = {
    {"floor",   "1"             },
    {"rceil",   "(6,3)"         },
    {"even",    "(2,2)"         },
    {"ceil",    "(8,2,2,2)"     },
    {"best",    "(10,3,2,3,2,3)"},
    {"nearest", "(4,2,1,2)"     },
    {"rms",     "(3,2)"         }, // no rule: what is drawn beside a largest
};

static const char *look_up(const style *table, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].look;
    return NULL;
}

// The elements of MXINT8 and its like have the colour of the integers that they are.
static const char *colour_of_name(const char *name) {
    size_t skipped = strncmp(name, "mxint", 5) == 0 ? 2 : 0;
    return look_up(FORMATS, sizeof FORMATS / sizeof FORMATS[0], name + skipped);
}

const char *qg_plot_colour_of(const char *format) {
    char element[QG_NAME_SIZE];
    qg_recipe recipe;
    const char *colour = colour_of_name(format);
    // Asked first: finding an unknown name looks for near ones, which takes long.
    if (colour || !qg_recipe_is_preset(format) || qg_recipe_find(format, &recipe) != QG_OK)
        return colour;
    qg_format_name(recipe.element, element);
    return colour_of_name(element);
}

const char *qg_plot_colour_at(int i) { return PALETTE[i % QG_PLOT_COLOURS]; }

const char *qg_plot_dash_of(const char *rule) {
    const char *dash = look_up(RULES, sizeof RULES / sizeof RULES[0], rule);
    return dash ? dash : "1";
}

int qg_plot_shape_at(int i) {
    static const int SHAPES[] = {7, 5, 9, 11, 13, 6, 4, 8, 10, 12};
    return SHAPES[i % (int)(sizeof SHAPES / sizeof SHAPES[0])];
}
