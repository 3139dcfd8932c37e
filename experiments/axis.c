// The axes of a case: cells, identity. See qg_axis.h.
#include <qg_axis.h>

#include <qg_digest.h>
#include <qg_format_name.h>
#include <qg_source.h>
#include <text_writer.h>

#include <stdlib.h>
#include <string.h>

static const qg_axis_info AXES[] = {
#define AXIS_X(ID, column, option, standard, argument, summary)                                    \
    {QG_COLUMN_##ID, #column, option, standard, argument, summary},
#define AXIS_Y(ID, column) {QG_COLUMN_##ID, #column, NULL, NULL, NULL, NULL},
    QG_AXIS_TABLE(AXIS_X, AXIS_Y)
#undef AXIS_X
#undef AXIS_Y
};

const qg_axis_info *qg_axis_describe(qg_axis axis) { return &AXES[axis]; }

int qg_axis_of_option(const char *option) {
    for (int axis = 0; axis < QG_AXIS_COUNT; axis++)
        if (AXES[axis].option && strcmp(AXES[axis].option, option) == 0)
            return axis;
    return -1;
}

int qg_axis_columns(size_t i) {
    if (i < QG_AXIS_COUNT)
        return (int)AXES[i].column;
    return i == QG_AXIS_COUNT ? (int)QG_COLUMN_CASE_ID : -1;
}

// ----------------------------------------------------------------------------------------- cells

static const char *const NO_FORMAT = "";

// Names of the few types that cases have, without writing them again and again.
static const char *type_name(qg_format format) {
    switch (format) {
    case QG_FORMAT_FP64: return "fp64"; // of recorded vectors
    case QG_FORMAT_FP32: return "fp32";
    case QG_FORMAT_BF16: return "bf16";
    case QG_FORMAT_FP16: return "fp16";
    default: return NO_FORMAT;
    }
}

// Only products have an output type, whatever the field holds.
static const char *out_type_name(const qg_case *c) {
    return c->unit[0] ? type_name(c->out_type) : NO_FORMAT;
}

// Recorded vectors are no data that are rounded.
static const char *input_type_name(const qg_case *c) {
    return c->source && !c->source->recording ? type_name(c->input_type) : NO_FORMAT;
}

qg_cell qg_axis_cell(const void *row, qg_column column) {
    const qg_case *c = row;
    qg_cell cell = {0};
    switch (column) {
    case QG_COLUMN_CASE_ID: cell.u64 = c->id; break;
    case QG_COLUMN_OP: cell.text = c->op->name; break;
    case QG_COLUMN_FORMAT: cell.text = c->format; break;
    case QG_COLUMN_LAYOUT: cell.text = c->layout; break;
    case QG_COLUMN_SCALE_RULE: cell.text = c->scale_rule; break;
    case QG_COLUMN_SCALE_FORMAT: cell.text = c->scale_format; break;
    case QG_COLUMN_ROUNDING: cell.text = c->rounding; break;
    case QG_COLUMN_FORMAT_B: cell.text = c->format_b; break;
    case QG_COLUMN_LAYOUT_B: cell.text = c->layout_b; break;
    case QG_COLUMN_SCALE_RULE_B: cell.text = c->scale_rule_b; break;
    case QG_COLUMN_UNIT: cell.text = c->unit; break;
    case QG_COLUMN_INPUT_TYPE: cell.text = input_type_name(c); break;
    case QG_COLUMN_OUT_TYPE: cell.text = out_type_name(c); break;
    case QG_COLUMN_HAS_BIAS: cell.u64 = c->bias; break;
    case QG_COLUMN_BACKEND: cell.text = c->backend; break;
    case QG_COLUMN_DATA: cell.text = c->data; break;
    case QG_COLUMN_TENSOR: cell.text = c->tensor; break;
    case QG_COLUMN_M: cell.i64 = c->m; break;
    case QG_COLUMN_N: cell.i64 = c->n; break;
    case QG_COLUMN_K: cell.i64 = c->k; break;
    case QG_COLUMN_SM_COUNT: cell.i64 = c->sm_count; break;
    case QG_COLUMN_SEED: cell.u64 = c->seed; break;
    default: break;
    }
    return cell;
}

// -------------------------------------------------------------------------------------- identity

// Names from foreign files may hold line ends; escaped, they cannot pass for other lines.
static void put_value(qg_text_writer *w, const char *value) {
    size_t plain = strcspn(value, "\\\n");
    qg_text_writer_put(w, value, plain);
    for (value += plain; *value; value++) {
        char escaped[2] = {'\\', *value == '\n' ? 'n' : '\\'};
        if (*value == '\n' || *value == '\\')
            qg_text_writer_put(w, escaped, 2);
        else
            qg_text_writer_put(w, value, 1);
    }
}

static void put_line(qg_text_writer *w, const char *key, size_t length) {
    qg_text_writer_put(w, key, length);
    qg_text_writer_put(w, "=", 1);
}

static void put_cell(qg_text_writer *w, const qg_case *c, qg_column column) {
    qg_cell cell = qg_axis_cell(c, column);
    if (cell.text)
        put_value(w, cell.text);
    else
        qg_text_writer_number(w, cell.i64 ? (uint64_t)cell.i64 : cell.u64, 10);
}

static void write_identity(qg_text_writer *w, const qg_case *c) {
    for (size_t axis = 0; axis < QG_AXIS_COUNT; axis++) {
        put_line(w, AXES[axis].name, strlen(AXES[axis].name));
        put_cell(w, c, AXES[axis].column);
        qg_text_writer_put(w, "\n", 1);
        if (axis == QG_AXIS_TENSOR) {
            put_line(w, "tensor_digest", sizeof "tensor_digest" - 1);
            if (c->source && !c->source->law && *c->data)
                qg_text_writer_number(w, c->source->digest, 16);
            qg_text_writer_put(w, "\n", 1);
        }
    }
}

bool qg_case_identity_text(const qg_case *c, char *text, size_t size) {
    qg_text_writer w = qg_text_writer_on(text, size);
    write_identity(&w, c);
    return !w.full;
}

uint64_t qg_case_identity(const qg_case *c) {
    char text[4096];
    qg_text_writer w = qg_text_writer_on(text, sizeof text);
    write_identity(&w, c);
    if (!w.full)
        return qg_digest_bytes(text, w.length);
    // A tensor name of thousands of bytes.
    size_t size = 4096 + 2 * (strlen(c->tensor) + strlen(c->data));
    char *long_text = malloc(size);
    uint64_t id = 0;
    if (long_text) {
        w = qg_text_writer_on(long_text, size);
        write_identity(&w, c);
        id = qg_digest_bytes(long_text, w.length);
    }
    free(long_text);
    return id;
}
