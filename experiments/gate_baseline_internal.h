// A baseline in memory: shared by the files that make, read, write and compare them.
#ifndef GATE_BASELINE_INTERNAL_H
#define GATE_BASELINE_INTERNAL_H

#include <gate_baseline.h>

// Where a case is.
typedef struct baseline_place {
    uint64_t id;
    int64_t row;
    int index; // within the row
} baseline_place;

struct qg_baseline {
    qg_baseline_row *rows; // sorted by axes
    int64_t count, room;
    baseline_place *places; // sorted by id
    int64_t place_count;
};

// Axes of a row, in the order of the file; the last is the reference.
#define BASELINE_AXES(X)                                                                           \
    X(OP)                                                                                          \
    X(FORMAT)                                                                                      \
    X(LAYOUT)                                                                                      \
    X(SCALE_RULE)                                                                                  \
    X(ROUNDING)                                                                                    \
    X(FORMAT_B)                                                                                    \
    X(LAYOUT_B)                                                                                    \
    X(SCALE_RULE_B)                                                                                \
    X(UNIT)                                                                                        \
    X(INPUT_TYPE)                                                                                  \
    X(OUT_TYPE)                                                                                    \
    X(HAS_BIAS)                                                                                    \
    X(BACKEND)                                                                                     \
    X(DATA)                                                                                        \
    X(TENSOR)                                                                                      \
    X(M)                                                                                           \
    X(N)                                                                                           \
    X(K)                                                                                           \
    X(SM_COUNT)                                                                                    \
    X(REFERENCE)

enum {
#define BASELINE_AXIS_ENUM(COLUMN) BASELINE_AXIS_##COLUMN,
    BASELINE_AXES(BASELINE_AXIS_ENUM)
#undef BASELINE_AXIS_ENUM
        BASELINE_AXIS_COUNT
};

extern const qg_column baseline_axes[BASELINE_AXIS_COUNT];
extern const qg_column baseline_metrics[QG_BASELINE_METRICS];

// Room for one more row, all of it zero. NULL: no memory.
qg_baseline_row *baseline_add_row(qg_baseline *baseline);
// Sorts rows and places. QG_ERROR_MEMORY.
qg_status baseline_index(qg_baseline *baseline);
// What the metrics mean in this version.
uint64_t baseline_definition(void);

#endif
