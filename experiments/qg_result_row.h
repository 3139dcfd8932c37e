// A case and its result as rows of the table: one for each reference of its op.
#ifndef QG_RESULT_ROW_H
#define QG_RESULT_ROW_H

#include <qg_plan.h>
#include <qg_table.h>

// Appends the rows; `run` is the table's run that measured it. QG_ERROR_MEMORY.
qg_status qg_result_row_add(qg_table *table, const qg_plan *plan, const qg_case *c,
                            const qg_case_result *result, int64_t run);

#endif
