// Histograms and sums of rows: a pool of the former, and the columns of the latter. See qg_table.h.
#include <table_internal.h>

#include <assert.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

static bool reserve_histogram(qg_histogram_pool *pool) {
    if (pool->count < pool->capacity)
        return true;
    int64_t capacity = pool->capacity ? 2 * pool->capacity : FIRST_CAPACITY;
    void *rel = pool->rel, *ulp = pool->ulp;
    bool fits = qg_table_resize(&rel, capacity, sizeof *pool->rel);
    pool->rel = rel;
    fits = fits && qg_table_resize(&ulp, capacity, sizeof *pool->ulp);
    pool->ulp = ulp;
    if (fits)
        pool->capacity = capacity;
    return fits;
}

qg_status qg_table_set_histograms(qg_table *table, int64_t row, const int64_t *rel,
                                  const int64_t *ulp) {
    assert(row >= 0 && row < table->rows);
    qg_histogram_pool *pool = table->histograms;
    int64_t *histogram_of;
    qg_status status = qg_table_histogram_of(table, &histogram_of);
    if (status == QG_OK && !reserve_histogram(pool))
        status = qg_table_no_memory("the histograms");
    if (status != QG_OK)
        return status;
    memcpy(pool->rel[pool->count], rel, sizeof *pool->rel);
    memcpy(pool->ulp[pool->count], ulp, sizeof *pool->ulp);
    histogram_of[row] = pool->count++;
    return QG_OK;
}

bool qg_table_histograms(const qg_table *table, int64_t row, const int64_t **rel,
                         const int64_t **ulp) {
    assert(row >= 0 && row < table->rows);
    if (!table->histogram_of || table->histogram_of[row] < 0)
        return false;
    *rel = table->histograms->rel[table->histogram_of[row]];
    *ulp = table->histograms->ulp[table->histogram_of[row]];
    return true;
}

typedef struct count_value {
    qg_column column;
    int64_t value;
} count_value;
typedef struct sum_value {
    qg_column column;
    double value;
} sum_value;

static qg_status set_counts(qg_table *table, int64_t row, const qg_sums *s) {
    const count_value values[] = {
        {QG_COLUMN_COUNT_N,                          s->n                           },
        {QG_COLUMN_COUNT_UNDERFLOWED,                s->underflowed                 },
        {QG_COLUMN_COUNT_EXACT,                      s->exact                       },
        {QG_COLUMN_SUM_N_FINITE,                     s->n_finite                    },
        {QG_COLUMN_SUM_NAN_REFERENCE,                s->nan_reference               },
        {QG_COLUMN_SUM_NAN_OUTPUT,                   s->nan_output                  },
        {QG_COLUMN_SUM_INF_REFERENCE,                s->inf_reference               },
        {QG_COLUMN_SUM_INF_OUTPUT,                   s->inf_output                  },
        {QG_COLUMN_SUM_ZERO_REFERENCE,               s->zero_reference              },
        {QG_COLUMN_SUM_ZERO_OUTPUT,                  s->zero_output                 },
        {QG_COLUMN_SUM_SIGN_FLIPS,                   s->sign_flips                  },
        {QG_COLUMN_SUM_UNDERFLOWED,                  s->underflowed                 },
        {QG_COLUMN_SUM_EXACT,                        s->exact                       },
        {QG_COLUMN_SUM_ZERO_REFERENCE_NONZERO_ERROR, s->zero_reference_nonzero_error},
        {QG_COLUMN_SUM_MAX_ABS_E_INDEX,              s->max_abs_e_index             },
        {QG_COLUMN_SUM_MAX_REL_E_INDEX,              s->max_rel_e_index             },
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        qg_status status = qg_table_set_i64(table, row, values[i].column, values[i].value);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

static qg_status set_sums(qg_table *table, int64_t row, const qg_sums *s) {
    const sum_value values[] = {
        {QG_COLUMN_SUM_X,         qg_sum_value(s->x)       },
        {QG_COLUMN_SUM_XX,        qg_sum_value(s->xx)      },
        {QG_COLUMN_SUM_QQ,        qg_sum_value(s->qq)      },
        {QG_COLUMN_SUM_XQ,        qg_sum_value(s->xq)      },
        {QG_COLUMN_SUM_E,         qg_sum_value(s->e)       },
        {QG_COLUMN_SUM_ABS_E,     qg_sum_value(s->abs_e)   },
        {QG_COLUMN_SUM_E_SIGN_X,  qg_sum_value(s->e_sign_x)},
        {QG_COLUMN_SUM_EE,        qg_sum_value(s->ee)      },
        {QG_COLUMN_SUM_ABS_X,     qg_sum_value(s->abs_x)   },
        {QG_COLUMN_SUM_MAX_ABS_E, s->max_abs_e             },
        {QG_COLUMN_SUM_MAX_REL_E, s->max_rel_e             },
        {QG_COLUMN_SUM_MAX_ABS_X, s->max_abs_x             },
        {QG_COLUMN_SUM_MAX_ULP,   s->max_ulp               },
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        qg_status status = qg_table_set_f64(table, row, values[i].column, values[i].value);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

// The metrics' columns follow one another in the order of their own table.
static qg_status set_metrics(qg_table *table, int64_t row, const qg_sums *sums) {
    for (int i = 0; i < QG_METRIC_COUNT; i++) {
        qg_column column = (qg_column)(QG_COLUMN_METRIC_QSNR_DB + i);
        qg_status status =
            qg_table_set_f64(table, row, column, qg_metric_value(sums, (qg_metric)i));
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

qg_status qg_table_set_sums(qg_table *table, int64_t row, const qg_sums *sums) {
    qg_status status = set_counts(table, row, sums);
    if (status == QG_OK)
        status = set_sums(table, row, sums);
    if (status == QG_OK)
        status = set_metrics(table, row, sums);
    if (status == QG_OK)
        status = qg_table_set_histograms(table, row, sums->hist_rel, sums->hist_ulp);
    return status;
}
