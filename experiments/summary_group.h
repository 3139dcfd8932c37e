// Rows of a result table that agree in some columns, and statistics over them.
#ifndef SUMMARY_GROUP_H
#define SUMMARY_GROUP_H

#include <qg_plan.h>
#include <qg_table.h>

// (count) rows of the table, ascending, that share all keys.
typedef struct summary_group {
    const int64_t *rows;
    int64_t count;
    int64_t order, format_order; // of the plan's first case like it, and of its format
} summary_group;

typedef struct summary_groups {
    const qg_table *table;
    const qg_column *keys;
    int key_count;
    summary_group *groups; // formats together, in plan order
    int64_t count;
    int64_t *rows;  // what the groups point into
    double *values; // room for one column of a group
} summary_groups;

// Groups the rows that `takes` is true of. The keys are columns of texts, valid as long as the
// groups. QG_ERROR_MEMORY. Caller frees with summary_groups_free, also on failure.
qg_status summary_groups_make(const qg_plan *plan, const qg_table *table, const qg_column *keys,
                              int key_count, bool (*takes)(const qg_table *table, int64_t row),
                              summary_groups *out);
void summary_groups_free(summary_groups *groups);

// A column of the group's first row.
const char *summary_group_text(const summary_groups *groups, int64_t group, qg_column column);
bool summary_groups_vary(const summary_groups *groups, qg_column column);

// Rows of a group. tensor: NULL: any.
typedef struct summary_rows {
    const char *reference, *tensor;
} summary_rows;

// Over those rows: how many, the median of a column without its NaNs (NaN if nothing is left), the
// part of /counts n that another count is (NaN if there is none), the row where a column is least
// (the first, -1 if there is none).
int64_t summary_group_cases(const summary_groups *groups, int64_t group, summary_rows rows);
double summary_group_median(const summary_groups *groups, int64_t group, qg_column column,
                            summary_rows rows);
double summary_group_share(const summary_groups *groups, int64_t group, qg_column column,
                           summary_rows rows);
int64_t summary_group_least(const summary_groups *groups, int64_t group, qg_column column,
                            summary_rows rows);

#endif
