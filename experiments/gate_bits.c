// Gates of kind bits on output_digest: equal across backends, or equal to the baseline.
#include <gate_run.h>

#include <qg_digest.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --------------------------------------------------------------------------------------- backends

// Everything that says what was computed, but for the backend.
static const qg_column TEXTS[] = {QG_COLUMN_OP,         QG_COLUMN_FORMAT,       QG_COLUMN_LAYOUT,
                                  QG_COLUMN_SCALE_RULE, QG_COLUMN_ROUNDING,     QG_COLUMN_FORMAT_B,
                                  QG_COLUMN_LAYOUT_B,   QG_COLUMN_SCALE_RULE_B, QG_COLUMN_UNIT,
                                  QG_COLUMN_DATA,       QG_COLUMN_TENSOR,       QG_COLUMN_REFERENCE,
                                  QG_COLUMN_OUT_TYPE,   QG_COLUMN_INPUT_TYPE};
static const qg_column SIZES[] = {QG_COLUMN_M, QG_COLUMN_N, QG_COLUMN_K};

typedef struct entry {
    uint64_t key;
    bool is_emulator;
    const qg_gate_file *file;
    int64_t row;
} entry;

static qg_status key_of(qg_digest *digest, const qg_table *table, int64_t row, uint64_t *key) {
    qg_digest_reset(digest);
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        const char *text = qg_table_text(table, row, TEXTS[i]);
        qg_digest_add(digest, text, strlen(text) + 1);
    }
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        int64_t size = qg_table_i64(table, row, SIZES[i]);
        qg_digest_add(digest, &size, sizeof size);
    }
    uint64_t rest[] = {qg_table_u64(table, row, QG_COLUMN_SEED),
                       qg_table_u8(table, row, QG_COLUMN_HAS_BIAS),
                       qg_table_u64(table, row, QG_COLUMN_INPUT_DIGEST)};
    qg_digest_add(digest, rest, sizeof rest);
    *key = qg_digest_value(digest);
    return QG_OK;
}

static int compare(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->is_emulator != y->is_emulator)
        return x->is_emulator ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static uint64_t digest_of(const entry *e) {
    return qg_table_u64(e->file->table, e->row, QG_COLUMN_OUTPUT_DIGEST);
}

static qg_status compare_with(qg_gate_run *run, const qg_gate *gate, const entry *first,
                              const entry *other) {
    qg_gate_result result = {.gate = gate, .file = other->file, .row = other->row};
    result.value = result.limit = (double)NAN;
    if (digest_of(first) == digest_of(other))
        return qg_gate_add(run, &result, "%s", "");
    result.verdict = QG_VERDICT_FAIL;
    result.used = INFINITY;
    return qg_gate_add(
        run, &result, "output_digest %016" PRIx64 " of %s differs from %016" PRIx64 " of %s",
        digest_of(other), qg_table_text(other->file->table, other->row, QG_COLUMN_BACKEND),
        digest_of(first), qg_table_text(first->file->table, first->row, QG_COLUMN_BACKEND));
}

// What has an output, in the order of what was computed. A case that is explained needs the others
// that it is compared with, too.
static qg_status collect(const qg_gate_run *run, const qg_gate *gate, entry **out, int64_t *count) {
    int64_t total = 0;
    qg_gate_run all = *run;
    qg_digest *digest;
    all.has_explained = false;
    for (int f = 0; f < run->file_count; f++)
        total += qg_table_rows(run->files[f].table);
    *count = 0;
    *out = malloc((size_t)(total + 1) * sizeof **out);
    if (!*out)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the digests");
    qg_status status = qg_digest_create(&digest);
    for (int f = 0; f < run->file_count && status == QG_OK; f++) {
        const qg_gate_file *file = &run->files[f];
        for (int64_t row = 0; row < qg_table_rows(file->table); row++) {
            entry e = {0, false, file, row};
            if (!qg_gate_takes(&all, gate, file, row) || digest_of(&e) == 0)
                continue;
            e.is_emulator =
                strcmp(qg_table_text(file->table, row, QG_COLUMN_BACKEND), "emulator") == 0;
            status = key_of(digest, file->table, row, &e.key);
            (*out)[(*count)++] = e;
        }
    }
    if (status == QG_OK)
        qg_digest_free(digest);
    qsort(*out, (size_t)*count, sizeof **out, compare);
    return status;
}

static qg_status run_backends(qg_gate_run *run, const qg_gate *gate) {
    entry *entries;
    int64_t count;
    qg_status status = collect(run, gate, &entries, &count);
    for (int64_t first = 0, i = 1; i < count && status == QG_OK; i++) {
        if (entries[i].key != entries[first].key)
            first = i;
        else if (qg_gate_takes(run, gate, entries[i].file, entries[i].row))
            status = compare_with(run, gate, &entries[first], &entries[i]);
    }
    free(entries);
    return status;
}

// --------------------------------------------------------------------------------------- baseline

static qg_status compare_with_baseline(qg_gate_run *run, const qg_gate *gate,
                                       const qg_gate_file *file, int64_t row) {
    qg_gate_result result = {.gate = gate, .file = file, .row = row};
    uint64_t digest = qg_table_u64(file->table, row, QG_COLUMN_OUTPUT_DIGEST);
    qg_baseline_match match = qg_baseline_find(run->baseline, file->table, row);
    result.value = result.limit = (double)NAN;
    if (digest == 0)
        return QG_OK;
    result.used = match.row ? 0 : (double)NAN;
    if (match.row && match.comparable && match.digest == digest)
        return qg_gate_add(run, &result, "%s", "");
    if (!match.row) {
        result.verdict = QG_VERDICT_NEW;
        return qg_gate_add(run, &result, "%s", "");
    }
    result.verdict = match.comparable ? QG_VERDICT_FAIL : QG_VERDICT_INCOMPARABLE;
    result.used = match.comparable ? INFINITY : (double)NAN;
    if (!match.comparable)
        return qg_gate_add(run, &result, "%s", match.why);
    return qg_gate_add(run, &result, "output_digest %016" PRIx64 ", in the baseline %016" PRIx64,
                       digest, match.digest);
}

qg_status qg_gate_run_bits(qg_gate_run *run, const qg_gate *gate) {
    if (strcmp(gate->limit, "equal backends") == 0)
        return run_backends(run, gate);
    qg_status status = QG_OK;
    for (int f = 0; f < run->file_count; f++)
        for (int64_t row = 0; row < qg_table_rows(run->files[f].table) && status == QG_OK; row++)
            if (qg_gate_takes(run, gate, &run->files[f], row))
                status = compare_with_baseline(run, gate, &run->files[f], row);
    return status;
}
