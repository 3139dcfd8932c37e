// What a table holds beside rows: operands of failing cases, the plan, and runs. See qg_table.h.
#include <table_internal.h>

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void free_texts(char **texts, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

static void free_run(qg_run *run) {
    free_texts(run->keys, run->count);
    free_texts(run->values, run->count);
}

static void free_operands(qg_operand *operands, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        free(operands[i].name);
        free(operands[i].bytes);
    }
    free(operands);
}

void qg_table_free_records(qg_table *table) {
    free_operands(table->operands, table->operand_count);
    free(table->plan);
    free_texts(table->argv, table->argv_count);
    for (int64_t i = 0; i < table->run_count; i++)
        free_run(&table->runs[i]);
    free(table->runs);
}

// ------------------------------------------------------------------------------------ operands

// The first operand not before (case_id, name); *found if it is that one.
static int64_t operand_position(const qg_table *table, uint64_t case_id, const char *name,
                                bool *found) {
    int64_t begin = 0, end = table->operand_count;
    *found = false;
    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        const qg_operand *operand = &table->operands[middle];
        int order = operand->case_id < case_id   ? -1
                    : operand->case_id > case_id ? 1
                                                 : strcmp(operand->name, name);
        *found = *found || order == 0;
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static bool is_object_name(const char *name) {
    size_t bad;
    return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           qg_text_is_utf8(name, strlen(name), &bad);
}

static bool reserve_operand(qg_table *table) {
    if (table->operand_count < table->operand_capacity)
        return true;
    int64_t capacity = table->operand_capacity ? 2 * table->operand_capacity : 16;
    void *operands = table->operands;
    if (!qg_table_resize(&operands, capacity, sizeof *table->operands))
        return false;
    table->operands = operands;
    table->operand_capacity = capacity;
    return true;
}

qg_status qg_table_add_operand(qg_table *table, uint64_t case_id, const char *name,
                               const void *bytes, int64_t size) {
    if (!is_object_name(name) || size < 0)
        return qg_fail(QG_ERROR_ARGUMENT, "operand \"%s\" of %" PRId64 " bytes: not a name or size",
                       name, size);
    uint8_t *copy = malloc(size ? (size_t)size : 1);
    char *name_copy = strdup(name);
    if (!copy || !name_copy || !reserve_operand(table)) {
        free(copy);
        free(name_copy);
        return qg_table_no_memory("an operand");
    }
    if (size)
        memcpy(copy, bytes, (size_t)size);
    bool found;
    int64_t at = operand_position(table, case_id, name, &found);
    qg_operand *operand = &table->operands[at];
    if (found) {
        free(operand->name);
        free(operand->bytes);
    } else {
        memmove(operand + 1, operand, (size_t)(table->operand_count - at) * sizeof *operand);
        table->operand_count++;
    }
    *operand = (qg_operand){case_id, name_copy, copy, size};
    return QG_OK;
}

// -------------------------------------------------------------------------------- plan and runs

qg_status qg_table_set_plan(qg_table *table, const char *text) {
    char *copy = qg_text_copy_as_utf8(text);
    if (!copy)
        return qg_table_no_memory("the plan");
    free(table->plan);
    table->plan = copy;
    return QG_OK;
}

const char *qg_table_plan(const qg_table *table) { return table->plan ? table->plan : ""; }

static qg_status add_text(char ***texts, int64_t count, const char *text) {
    void *moved = *texts;
    if (!qg_table_resize(&moved, count + 1, sizeof **texts))
        return qg_table_no_memory("a text");
    *texts = moved;
    (*texts)[count] = qg_text_copy_as_utf8(text);
    return (*texts)[count] ? QG_OK : qg_table_no_memory("a text");
}

qg_status qg_table_add_argv(qg_table *table, const char *command_line) {
    qg_status status = add_text(&table->argv, table->argv_count, command_line);
    if (status == QG_OK)
        table->argv_count++;
    return status;
}

qg_status qg_table_add_run(qg_table *table, int64_t *run) {
    void *runs = table->runs;
    if (!qg_table_resize(&runs, table->run_count + 1, sizeof *table->runs))
        return qg_table_no_memory("a run");
    table->runs = runs;
    table->runs[table->run_count] = (qg_run){0};
    *run = table->run_count++;
    return QG_OK;
}

void qg_table_drop_last_run(qg_table *table) { free_run(&table->runs[--table->run_count]); }

static int64_t run_key(const qg_run *run, const char *key) {
    for (int64_t i = 0; i < run->count; i++)
        if (strcmp(run->keys[i], key) == 0)
            return i;
    return -1;
}

// Moves the last pair to its place among the sorted ones before it.
static void sink_last_key(qg_run *run) {
    for (int64_t i = run->count - 1; i > 0 && strcmp(run->keys[i - 1], run->keys[i]) > 0; i--) {
        char *key = run->keys[i], *value = run->values[i];
        run->keys[i] = run->keys[i - 1];
        run->values[i] = run->values[i - 1];
        run->keys[i - 1] = key;
        run->values[i - 1] = value;
    }
}

qg_status qg_table_set_run(qg_table *table, int64_t index, const char *key, const char *value) {
    assert(index >= 0 && index < table->run_count);
    if (!is_object_name(key))
        return qg_fail(QG_ERROR_ARGUMENT, "\"%s\" is no key of a run", key);
    qg_run *run = &table->runs[index];
    int64_t at = run_key(run, key);
    if (at >= 0) {
        char *copy = qg_text_copy_as_utf8(value);
        if (!copy)
            return qg_table_no_memory("a run");
        free(run->values[at]);
        run->values[at] = copy;
        return QG_OK;
    }
    qg_status status = add_text(&run->keys, run->count, key);
    if (status != QG_OK)
        return status;
    status = add_text(&run->values, run->count, value);
    if (status != QG_OK) {
        free(run->keys[run->count]);
        return status;
    }
    run->count++;
    sink_last_key(run);
    return QG_OK;
}

int64_t qg_table_runs(const qg_table *table) { return table->run_count; }

const char *qg_table_run_value(const qg_table *table, int64_t index, const char *key) {
    assert(index >= 0 && index < table->run_count);
    int64_t at = run_key(&table->runs[index], key);
    return at < 0 ? NULL : table->runs[index].values[at];
}
