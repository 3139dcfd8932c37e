// What the files of the plan share: requests, values read from options, recipes, sources, records.
#ifndef PLAN_INTERNAL_H
#define PLAN_INTERNAL_H

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

// A format with layout, rule and rounding. layout "" stands for a tensor that cannot be read.
typedef struct qg_variant {
    const char *format, *layout, *scale_rule, *scale_format, *rounding;
    qg_recipe recipe;
    const char *skip;
} qg_variant;

typedef struct qg_plan_source {
    qg_source source;    // first: cases point to it
    qg_law *law;         // owned
    const char *typed;   // the file as typed, "" for laws
    const char *skipped; // NULL, or why the tensor cannot be read
} qg_plan_source;

typedef struct qg_plan_file {
    const char *path, *typed;
    qg_tensor_file *file;
} qg_plan_file;

// A case before it has an identity and a place.
typedef struct qg_record {
    int64_t m, k;
    uint64_t seed;
    int32_t source, variant;
    uint8_t op, input, backend;
} qg_record;

struct qg_plan {
    qg_word_pool *pool;
    qg_case *cases;
    int64_t count, considered;
    char *text;

    qg_listed **listed;
    int64_t listed_count, listed_capacity;
    qg_variant **variants;
    int64_t variant_count, variant_capacity;
    int32_t *variant_slots; // open addressing over variants: index + 1
    int64_t slot_count;
    qg_plan_source **sources;
    int64_t source_count, source_capacity;
    qg_plan_file *files;
    int64_t file_count, file_capacity;
    qg_record *records;
    int64_t record_count, record_capacity;
};

// The formats of a section that share their layouts and rules are listed together in the text.
typedef struct qg_plan_format {
    const char *name;
    qg_recipe base;
    bool preset;
    qg_listed *listed;
    const char *layouts, *rules; // canonical lists
} qg_plan_format;

typedef struct qg_rounding_value {
    const char *name;
    qg_rounding rounding;
    qg_listed *listed;
} qg_rounding_value;

typedef struct qg_index_list {
    int32_t *values;
    int64_t count, capacity;
} qg_index_list;

// A section with every default filled in and every name resolved.
typedef struct qg_expanded {
    qg_plan_format *formats;
    int64_t format_count, format_capacity;
    qg_rounding_value *roundings;
    int64_t rounding_count, rounding_capacity;
    qg_index_list ops, inputs, backends; // indices of qg_op_listed, formats, qg_backend_named
    qg_index_list sources, variants, unreadable; // unreadable: one bare variant per format
    qg_listed **data_listed;                     // per source: NULL or the value that named it
    int64_t data_capacity;
    qg_numbers m, k, seeds;
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
    const char *name, *m, *k;
    int64_t most_elements; // m * k of a pair of the grid; 0: no bound
} qg_level;
// NULL past the end.
const qg_level *qg_level_listed(size_t i);
qg_status qg_level_find(const char *name, const qg_level **out);

qg_status qg_index_append(qg_index_list *list, int32_t value);
qg_status qg_index_add(qg_index_list *list, int32_t value); // once
void qg_expanded_free(qg_expanded *expanded);
// Fills a zeroed `expanded`, adding variants and sources to the plan.
qg_status qg_expand(qg_plan *plan, const qg_view *view, qg_expanded *expanded);
qg_status qg_expand_variants(qg_plan *plan, const qg_view *view, qg_expanded *expanded);
qg_status qg_expand_data(qg_plan *plan, const qg_view *view, qg_expanded *expanded);

// The record of a value that a user listed: one per axis and value.
qg_status qg_plan_list_value(qg_plan *plan, qg_axis axis, const char *value, const char *origin,
                             qg_listed **out);

// Sorts the ids; whether two are equal.
bool qg_ids_collide(uint64_t *ids, int64_t count, uint64_t *collision);

void qg_record_case(const qg_plan *plan, const qg_record *record, qg_case *out);
// The types that --inputs knows: fp32, bf16, fp16; NULL past the end.
const char *qg_input_listed(size_t i);

// Appends a section to the plan's text.
qg_status qg_text_begin(FILE **stream, char **text, size_t *size);
void qg_text_tensors(FILE *stream, const qg_plan *plan);
void qg_text_section(FILE *stream, const qg_plan *plan, const qg_expanded *expanded, int *number);

#endif
