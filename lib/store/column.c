// The column table as descriptors, and finding a column by name. See qg_column.h.
#include <qg_column.h>

#include <string.h>

static const qg_column_info columns[QG_COLUMN_COUNT] = {
#define COLUMN(ID, group, name, TYPE, missing, units, better, long_name, definition)               \
    [QG_COLUMN_##ID] = {#group, #name, QG_COLUMN_##TYPE, missing, units, better, long_name,        \
                        definition},
    QG_CASE_COLUMNS(COLUMN) QG_OTHER_COLUMNS(COLUMN) QG_COUNT_COLUMNS(COLUMN)
        QG_SUM_COLUMNS(COLUMN)
#undef COLUMN
#define COLUMN(ID, name, units, better, long_name, definition)                                     \
    [QG_COLUMN_METRIC_##ID] = {"metrics", name,      QG_COLUMN_F64, 0, units,                      \
                               better,    long_name, definition},
            QG_METRIC_TABLE(COLUMN)
#undef COLUMN
};

const qg_column_info *qg_column_describe(qg_column column) { return &columns[column]; }

static int find_in_group(const char *group, size_t group_length, const char *name) {
    for (int i = 0; i < QG_COLUMN_COUNT; i++)
        if (strlen(columns[i].group) == group_length &&
            memcmp(columns[i].group, group, group_length) == 0 &&
            strcmp(columns[i].name, name) == 0)
            return i;
    return -1;
}

int qg_column_find(const char *name) {
    if (name[0] == '/') // the path in the file
        name++;
    const char *slash = strchr(name, '/');
    if (slash)
        return find_in_group(name, (size_t)(slash - name), slash + 1);
    // The table starts with the columns of /cases, which a bare name means first.
    for (int i = 0; i < QG_COLUMN_COUNT; i++)
        if (strcmp(columns[i].name, name) == 0)
            return i;
    return -1;
}
