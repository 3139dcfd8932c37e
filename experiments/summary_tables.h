// The end tables: what was measured, per format, layout, rule and, of products, unit, and
// how fast it was.
#ifndef SUMMARY_TABLES_H
#define SUMMARY_TABLES_H

#include <qg_plan.h>
#include <qg_table.h>
#include <stdio.h>

// width: columns to fit into.
void summary_tables_print(const qg_plan *plan, const qg_table *table, int width, FILE *stream);

#endif
