// Names that users can write, from the tables that the parsers read. See name_list.h.
#include <name_list.h>

#include <plan_internal.h>
#include <qg_backend_list.h>
#include <text_grid.h>

#include <string.h>

enum { WIDTH = 80 };

static void heading(FILE *stream, const char *text) { fprintf(stream, "\n%s\n", text); }

// Words in lines of at most WIDTH columns.
typedef struct wrapper {
    FILE *stream;
    int column;
} wrapper;

static void print_word(wrapper *w, const char *word) {
    int length = (int)strlen(word);
    if (w->column > 0 && w->column + 1 + length > WIDTH) {
        fputc('\n', w->stream);
        w->column = 0;
    }
    w->column += fprintf(w->stream, "%s%s", w->column ? " " : "  ", word);
}

static void end_words(wrapper *w) {
    if (w->column > 0)
        fputc('\n', w->stream);
    w->column = 0;
}

static void print_words(FILE *stream, const char *(*listed)(size_t)) {
    wrapper w = {stream, 0};
    for (size_t i = 0; listed(i); i++)
        print_word(&w, listed(i));
    end_words(&w);
}

// ---------------------------------------------------------------------------------------- formats

static void print_elements(FILE *stream) {
    wrapper w = {stream, 0};
    qg_recipe recipe;
    heading(stream, "Element formats (--formats; layouts per_tensor, per_row, group:128,\n"
                    "block:128x128 and rule amax unless --layouts and --rules say otherwise)");
    for (size_t i = 0; qg_format_listed(i); i++)
        if (!qg_recipe_is_preset(qg_format_listed(i)) &&
            qg_recipe_find(qg_format_listed(i), &recipe) == QG_OK)
            print_word(&w, qg_format_listed(i));
    end_words(&w);
    fprintf(stream, "  f<N>e<E>m<M>[b<B>] (f6e3m2): all-finite minifloats of N bits, E of them\n"
                    "  exponent, M mantissa, bias B\n");
}

static const char *const RECIPE_TITLES[] = {"  recipe", "element", "layout", "rule"};

static void recipe_cell(const void *context, int64_t row, int column, char text[QG_CELL_SIZE]) {
    (void)context;
    qg_recipe recipe;
    char name[QG_CELL_SIZE] = "";
    if (qg_recipe_find(qg_recipe_listed((size_t)row), &recipe) != QG_OK)
        return;
    switch (column) {
    case 0: snprintf(name, sizeof name, "  %.100s", qg_recipe_listed((size_t)row)); break;
    case 1: qg_format_name(recipe.element, name); break;
    case 2: qg_layout_name(recipe.layout, name); break;
    default: qg_rule_name(recipe.rule, recipe.fixed_scale, name); break;
    }
    memcpy(text, name, sizeof name);
}

static void print_recipes(FILE *stream) {
    qg_text_grid grid = {.columns = 4, .cell = recipe_cell};
    while (qg_recipe_listed((size_t)grid.rows))
        grid.rows++;
    for (int i = 0; i < grid.columns; i++)
        grid.title[i] = RECIPE_TITLES[i];
    heading(stream, "Recipes (--formats; --layouts and --rules replace their own; the OCP MX\n"
                    "recipes mxfp*, mxint* are measured with floor, even and rceil)");
    qg_text_grid_print(&grid, stream);
}

// ------------------------------------------------------------------------------------------ rules

static const char *const RULE_SUMMARIES[QG_RULE_COUNT] = {
    [QG_RULE_AMAX] = "amax / F (F: the largest value of the element)",
    [QG_RULE_AMAX_RCP] = "the same X; elements times 1/X, not over X",
    [QG_RULE_AMAX_MUL] = "s = F / amax; elements times s, X = 1/s",
    [QG_RULE_AMAX_POW2] = "X = 2^e, e as rceil",
    [QG_RULE_FLOOR] = "exponent of amax less that of F",
    [QG_RULE_CEIL] = "ceil(log2 amax) less the exponent of F",
    [QG_RULE_EVEN] = "floor of amax rounded to the mantissa",
    [QG_RULE_RCEIL] = "smallest 2^e with amax <= F 2^e",
    [QG_RULE_RCEIL_MUL] = "amax * (1/F) rounded up to 2^e",
    [QG_RULE_RCEIL_DIV] = "amax / F rounded up to 2^e",
    [QG_RULE_FLOOR_PLUS1] = "one exponent above floor",
    [QG_RULE_NEAREST] = "2^e nearest to amax / F, ties to the even code",
    [QG_RULE_NEAREST_UP] = "the same, ties up",
    [QG_RULE_BEST] = "2^e of least squared error",
    [QG_RULE_AMAX_UE4M3] = "amax / F, encoded",
    [QG_RULE_TWO_LEVEL] = "NVFP4: block scales and a scale of the tensor",
    [QG_RULE_TWO_LEVEL_TORCHAO] = "the same as torchao computes it",
    [QG_RULE_FOUR_OVER_SIX] = "two_level; amax to F or F/1.5: the better",
    [QG_RULE_DELAYED] = "from the amaxes of steps before",
    [QG_RULE_FIXED] = "X given; fixed:0.5 is printed fixed:0x1p-1",
};

const char *qg_rule_summary(int rule) { return RULE_SUMMARIES[rule] ? RULE_SUMMARIES[rule] : ""; }

static void rule_cell(const void *context, int64_t row, int column, char text[QG_CELL_SIZE]) {
    (void)context;
    char name[QG_NAME_SIZE];
    int rule = (int)row;
    qg_format_name(qg_rule_scale_format(rule), name);
    if (column == 0)
        snprintf(text, QG_CELL_SIZE, "  %s%s", qg_rule_listed((size_t)row),
                 rule == QG_RULE_FIXED ? ":X" : "");
    else if (column == 1)
        snprintf(text, QG_CELL_SIZE, "%s%s", name, qg_rule_has_tensor_scale(rule) ? "+fp32" : "");
    else
        snprintf(text, QG_CELL_SIZE, "%s", qg_rule_summary(rule));
}

static void print_rules(FILE *stream) {
    qg_text_grid grid = {
        .columns = 3,
        .rows = QG_RULE_COUNT,
        .cell = rule_cell,
        .width = WIDTH,
        .title = {"  rule", "stores", "scale X of a block"}
    };
    heading(stream, "Scale rules (--rules; also default). fp32 and e8m0 fit every layout,\n"
                    "ue4m3 only group:G; +fp32: with a scale of the whole tensor");
    qg_text_grid_print(&grid, stream);
}

// ------------------------------------------------------------------------------------------ units

// Whether a row of the unit, or of any for QG_UNIT_COUNT, is known in this way.
static bool has_evidence(int unit, int evidence) {
    const qg_unit_row *row;
    for (size_t i = 0; (row = qg_unit_row_at(i)) != NULL; i++)
        if ((row->unit == unit || unit == QG_UNIT_COUNT) && row->evidence == evidence)
            return true;
    return false;
}

// The tags of a unit's rows; none for software units, which are their definition.
static void evidence_of(int unit, char text[QG_CELL_SIZE]) {
    text[0] = 0;
    for (int i = 0; i < QG_EVIDENCE_COUNT; i++) {
        size_t length = strlen(text);
        if (has_evidence(unit, i))
            snprintf(text + length, QG_CELL_SIZE - length, "%s%s", length ? " " : "",
                     qg_evidence_tag(i));
    }
}

static void unit_cell(const void *context, int64_t row, int column, char text[QG_CELL_SIZE]) {
    (void)context;
    if (column == 0)
        snprintf(text, QG_CELL_SIZE, "  %s%s", qg_unit_listed((size_t)row),
                 row == QG_UNIT_FP32_BLOCKED ? ":N" : "");
    else if (column == 1)
        evidence_of((int)row, text);
    else
        snprintf(text, QG_CELL_SIZE, "%s", qg_unit_what((int)row));
}

static void print_units(FILE *stream) {
    qg_text_grid grid = {
        .columns = 3,
        .rows = QG_UNIT_NATIVE, // which is no arithmetic of its own and comes last
        .cell = unit_cell,
        .width = WIDTH,
        .title = {"  unit", "known by", "what it is"}
    };
    heading(stream, "Matrix units (--units; +promote:N adds into binary32 every N elements of k,\n"
                    "+split:N cuts k in N; sequential units: +rtz, +rtn)");
    qg_text_grid_print(&grid, stream);
    for (int i = 0; i < QG_EVIDENCE_COUNT; i++)
        if (has_evidence(QG_UNIT_COUNT, i))
            fprintf(stream, "  %s: %s\n", qg_evidence_tag(i), qg_evidence_what(i));
}

// --------------------------------------------------------------------------------------- the rest

static const char *op_name(size_t i) { return qg_op_listed(i) ? qg_op_listed(i)->name : NULL; }
static const char *level_name(size_t i) {
    return qg_level_listed(i) ? qg_level_listed(i)->name : NULL;
}
static const char *column_name(size_t i) {
    int column = qg_axis_columns(i);
    return column < 0 ? NULL : qg_column_describe((qg_column)column)->name;
}

void qg_name_list(FILE *stream) {
    fprintf(stream, "Lists take these names, globs over them, and @FILE.\n");
    print_elements(stream);
    print_recipes(stream);
    print_rules(stream);
    print_units(stream);
    heading(stream, "Roundings (--rounding; stochastic:A|B|C[:BITS] is the long form)");
    print_words(stream, qg_rounding_listed);
    heading(stream, "Layouts (--layouts; also default)");
    fprintf(stream, "  per_tensor per_row group:G block:RxC, with G, R, C from 1 to 2^20\n");
    heading(stream, "Data laws (--data; also default). :abs takes magnitudes, :sigma=V scales");
    print_words(stream, qg_law_listed);
    fprintf(stream, "  tensors:FILE[#GLOB]: real tensors; tensors:minilm.h5 is shipped\n");
    heading(stream, "Operations (--ops)");
    print_words(stream, op_name);
    heading(stream, "Types of the input (--inputs) and of products (--out-types)");
    print_words(stream, qg_input_listed);
    heading(stream, "Backends (--backends)");
    print_words(stream, qg_backend_named);
    heading(stream, "Levels (--level)");
    print_words(stream, level_name);
    heading(stream,
            "Columns of a plan (--where, --exclude); of results: --show FILE --columns '*'");
    print_words(stream, column_name);
}
