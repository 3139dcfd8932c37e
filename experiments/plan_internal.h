// What the files of the plan share: requests, values read from options, recipes, sources, records.
#ifndef PLAN_INTERNAL_H
#define PLAN_INTERNAL_H

#include <kept_table.h>
#include <list.h>
#include <qg_axis.h>
#include <qg_layout_name.h>
#include <qg_plan_build.h>
#include <qg_recipe_name.h>
#include <stdio.h>
#include <word_pool.h>

// --------------------------------------------------------------------------------------- requests

// The items of one option as typed; count 0: not given. `origin` names the option in messages.
typedef struct qg_option {
    qg_list items;
    char *origin;
} qg_option;

typedef struct qg_section {
    qg_option axis[QG_AXIS_COUNT];
    qg_option level;
    qg_expressions where, exclude;
    char *origin; // "FILE:LINE: section [NAME]"
} qg_section;

struct qg_plan_request {
    qg_section command;
    qg_section *sections; // of plan files
    int64_t count;
    bool has_files;
};

// Sets an option of a section; origin as above, prefix of every detail.
qg_status qg_section_set(qg_section *section, const char *option, const char *value,
                         const char *origin);
qg_status qg_request_add_section(qg_plan_request *request, const char *origin, qg_section **out);

// Puts `origin: ` before the detail of a failure.
qg_status qg_fail_at(const char *origin, qg_status status);

// Room for one more in a growing array.
qg_status qg_grow(void *array, int64_t count, int64_t *capacity, size_t size);

// ------------------------------------------------------------------------------------------ plans

// A value that a user wrote out (not by glob or default): it must fit something.
typedef struct qg_listed {
    qg_axis axis;
    const char *value;
    const char *origin;
    bool fits;
    const char *reason; // of the first case that it did not fit
} qg_listed;

// A format with layout, rule and rounding. layout "" stands for a tensor that cannot be read, and
// for the format of recorded vectors.
typedef struct qg_variant {
    const char *format, *layout, *scale_rule, *rounding; // the key
    const char *scale_format;
    qg_recipe recipe;
    const char *skip;
} qg_variant;

// Two operands on a unit. Of recorded vectors b stands for a format alone.
typedef struct qg_product {
    int32_t a, b; // variants
    const char *unit;
    qg_format out_type;
    int32_t bias; // up to here the key
    qg_unit matrix_unit;
    const char *skip;
    const char *graph_skip; // NULL, or why a graph cannot have it: known where a section has models
} qg_product;

typedef struct qg_plan_source {
    qg_source source;    // first: cases point to it
    qg_law *law;         // owned
    const char *typed;   // the file as typed, "" for laws and recorded vectors
    const char *skipped; // NULL, or why the tensor or the recording cannot be read
    int32_t place;       // where its cases come: its own, of a model's nodes that of the first
} qg_plan_source;

typedef struct qg_plan_file {
    const char *path, *typed;
    qg_tensor_file *file;
} qg_plan_file;

// A model that is open; its nodes are `count` sources from `first`.
typedef struct qg_plan_model {
    const char *name; // as typed
    struct model *model;
    int32_t first, count;
} qg_plan_model;

enum { QG_NO_PRODUCT = -1 };

// A case before it has an identity and a place.
typedef struct qg_record {
    int64_t m, n, k, sm_count;
    uint64_t seed;
    int32_t source, variant, product; // product: QG_NO_PRODUCT for one operand
    int32_t place;                    // of the source
    uint8_t op, input, backend;
    bool against_emulator; // no part of what a case is
} qg_record;

struct qg_plan {
    qg_word_pool *pool;
    qg_case *cases;
    int64_t count, considered;
    char *text;

    qg_listed **listed;
    int64_t listed_count, listed_capacity;
    qg_kept_table variants, products;
    qg_plan_source **sources;
    int64_t source_count, source_capacity;
    qg_plan_file *files;
    int64_t file_count, file_capacity;
    qg_plan_model *models;
    int64_t model_count, model_capacity;
    qg_record *records;
    int64_t record_count, record_capacity;
    bool command_used[QG_AXIS_COUNT]; // axes that an operation of some section has
};

const qg_variant *qg_plan_variant(const qg_plan *plan, int32_t index);
const qg_product *qg_plan_product(const qg_plan *plan, int32_t index);

// The formats of a section that share their layouts and rules are listed together in the text.
typedef struct qg_plan_format {
    const char *name;
    qg_recipe base;
    bool preset, ocp; // ocp: of OCP MX v1.0, whose scale rule is the implementer's choice
    qg_listed *listed;
    const char *layouts, *rules; // canonical lists
} qg_plan_format;

typedef struct qg_format_list {
    qg_plan_format *items;
    int64_t count, capacity;
} qg_format_list;

typedef struct qg_layout_value {
    bool standard; // the format's default
    bool named;    // by --layouts, not as part of a default
    qg_layout layout;
    const char *name;
    qg_listed *listed;
} qg_layout_value;

typedef struct qg_rule_value {
    bool standard, named;
    int rule;
    float fixed_scale;
    const char *name;
    qg_listed *listed;
} qg_rule_value;

typedef struct qg_rounding_value {
    const char *name;
    qg_rounding rounding;
    qg_listed *listed;
} qg_rounding_value;

// A variant of a section and what it was made of.
typedef struct qg_choice {
    int32_t variant;
    const qg_plan_format *format;
    qg_layout_value layout;
    qg_rule_value rule;
    const qg_rounding_value *rounding;
} qg_choice;

typedef struct qg_choice_list {
    qg_choice *items;
    int64_t count, capacity;
} qg_choice_list;

// An item of --units.
typedef struct qg_unit_item {
    enum { QG_UNITS_DEFAULT, QG_UNITS_GLOB, QG_UNITS_NAMED } kind;
    const char *text; // "default", the glob, or the unit's name
    qg_unit unit;     // of a name
    qg_listed *listed;
} qg_unit_item;

typedef struct qg_unit_list {
    qg_unit_item *items;
    int64_t count, capacity;
} qg_unit_list;

typedef struct qg_index_list {
    int32_t *values;
    int64_t count, capacity;
} qg_index_list;

typedef struct qg_record_list {
    qg_record *items;
    int64_t count, capacity;
} qg_record_list;

enum { QG_OUT_TYPES = 3 };

// A section with every default filled in and every name resolved.
typedef struct qg_expanded {
    qg_format_list formats, formats_b;
    qg_rounding_value *roundings;
    int64_t rounding_count, rounding_capacity;
    qg_index_list ops, inputs, out_types, backends;    // of qg_op_listed, types, qg_backend_named
    bool tensors, products, recordings, grids, models; // the kinds of its operations
    bool has_emulator, has_others;                     // among its backends
    qg_listed *out_listed[QG_OUT_TYPES];
    qg_unit_list units;
    qg_choice_list choices;
    qg_index_list sources, unreadable; // unreadable: one bare variant per format
    qg_index_list crossed;             // products
    qg_index_list models_used;         // of the plan
    qg_index_list crossed_by_models;   // products of models: without bias
    qg_record_list recorded;           // cases of recorded vectors, but for op and backend
    qg_index_list grid_variants;       // variants whose kernel grids are looked at
    int32_t grid_source;               // the source of cases without data
    qg_listed **data_listed;           // per source: NULL or the value that named it
    int64_t data_capacity;
    qg_numbers m, n, k, sm_counts, seeds, bias;
    qg_expressions where, exclude;
    bool has_laws;
} qg_expanded;

// What a section asks for, seen through the command line.
typedef struct qg_view {
    const qg_section *section, *command;
} qg_view;
// The option that counts: the command line's, else the section's. Its count may be 0.
const qg_option *qg_view_option(const qg_view *view, qg_axis axis);

typedef struct qg_level {
    const char *name, *m, *n, *k;
    int64_t most_elements; // m * k and n * k of a pair of the grid; 0: no bound
    int64_t most_products; // m * n * k of a product of the grid; 0: no bound
} qg_level;
// NULL past the end.
const qg_level *qg_level_listed(size_t i);
qg_status qg_level_find(const char *name, const qg_level **out);

qg_status qg_index_append(qg_index_list *list, int32_t value);
qg_status qg_index_add(qg_index_list *list, int32_t value); // once
void qg_expanded_free(qg_expanded *expanded);
// Fills a zeroed `expanded`, adding variants, products and sources to the plan.
qg_status qg_expand(qg_plan *plan, const qg_view *view, qg_expanded *expanded);
// The status of a name that could not be read. An unknown one gets the names near it, or `others`.
qg_status qg_word_unreadable(qg_status status, const char *kind, const char *word,
                             const char *(*listed)(size_t), const char *others);
// Recipes and element formats of an option.
qg_status qg_expand_formats(qg_plan *plan, const qg_view *view, qg_axis axis, qg_format_list *list);
qg_status qg_expand_variants(qg_plan *plan, const qg_view *view, qg_expanded *expanded);
qg_status qg_expand_units(qg_plan *plan, const qg_view *view, qg_expanded *expanded);
qg_status qg_expand_products(qg_plan *plan, qg_expanded *expanded);
qg_status qg_expand_data(qg_plan *plan, const qg_view *view, qg_expanded *expanded);
qg_status qg_expand_models(qg_plan *plan, const qg_view *view, qg_expanded *expanded);
qg_status qg_expand_recordings(qg_plan *plan, qg_expanded *expanded);
qg_status qg_expand_grids(qg_plan *plan, qg_expanded *expanded);

qg_status qg_keep_variant(qg_plan *plan, const qg_variant *variant, int32_t *index);
qg_status qg_keep_product(qg_plan *plan, const qg_product *product, int32_t *index);
// Whether an item of --data names a model.
bool qg_data_is_model(const char *item);
// Why a model cannot have that operand, b or a, or that output of a product; or NULL.
qg_status qg_model_refuses(qg_plan *plan, const qg_variant *operand, bool is_b,
                           const char **reason);
qg_status qg_model_refuses_output(qg_plan *plan, qg_format out_type, const char **reason);
// A unit whose +split:N suits no product of the model as it is long: QG_ERROR_UNSUPPORTED.
qg_status qg_model_takes_unit(const struct model *model, const qg_case *c);
// Whether a backend has a unit: the emulator all but native, the others native alone.
bool qg_unit_runs_on(const qg_unit *unit, int32_t backend);
// The variant that stands for a format alone.
qg_status qg_keep_bare(qg_plan *plan, const char *format, const qg_recipe *base, int32_t *index);
// Operand b of a format beside an operand a.
qg_status qg_keep_variant_b(qg_plan *plan, const qg_choice *a, const qg_plan_format *b,
                            int32_t *index);
// The variant of a choice without rule and rounding, which do not enter the grids of its kernels.
qg_status qg_keep_grid_variant(qg_plan *plan, const qg_choice *choice, int32_t *index);
// Keeps a source once and takes its law over; *index is its place.
qg_status qg_keep_source(qg_plan *plan, qg_plan_source *candidate, int32_t *index);

// Whether operations of the kind have the axis.
bool qg_kind_has(qg_op_kind kind, qg_axis axis);
// Refuses options of a section that none of its operations has; those of the command line count
// as used as soon as one section has them.
qg_status qg_check_section_axes(qg_plan *plan, const qg_view *view, const qg_expanded *expanded);
qg_status qg_check_command_axes(const qg_plan *plan, const qg_section *command);

// A listed value fits a case (reason NULL), or does not.
void qg_note_fit(qg_listed *listed, const char *reason);
void qg_note_choice(const qg_choice *choice, const char *reason);

// The record of a value that a user listed: one per axis and value.
qg_status qg_plan_list_value(qg_plan *plan, qg_axis axis, const char *value, const char *origin,
                             qg_listed **out);

// Sorts the ids; whether two are equal.
bool qg_ids_collide(uint64_t *ids, int64_t count, uint64_t *collision);

// Adds the cases of a section to the plan's records.
qg_status qg_plan_cross(qg_plan *plan, const qg_expanded *expanded);
void qg_record_case(const qg_plan *plan, const qg_record *record, qg_case *out);
// The types that --inputs and --out-types know: fp32, bf16, fp16; NULL past the end.
const char *qg_input_listed(size_t i);
qg_format qg_input_format(size_t i);

// Appends a section to the plan's text.
qg_status qg_text_begin(FILE **stream, char **text, size_t *size);
void qg_text_tensors(FILE *stream, const qg_plan *plan);
void qg_text_section(FILE *stream, const qg_plan *plan, const qg_expanded *expanded, int *number);

#endif
