// Gates: rows of data that hold results to what they must be. See run_gate.c.
//
// A gates file (reports/gates.tsv) is tab-separated text with a header line:
//   id  kind  where  metric  limit  reason  expires
// kind: bits, consistency, bound, drift, invariant, perf; or `known`: the cases of `where` are known
// to fail the gates whose ids match `metric` (a glob) until `expires` (YYYY-MM-DD): XFAIL, and XPASS
// when they do not fail. limit: what must hold, for example
//   <= 0      qsnr_theory_db +- 6 * qsnr_se_db      equal backends      equal baseline
//   <= max(6 * spread, 1e-9)      (drift: of |value - baseline|)
// Formulas: + - * / ^ ( ) min max abs sqrt log10 log2, numbers, numeric columns by name, and the
// names of gate_names.h (format, rule, unit and theory of the case). The metric of bound, drift,
// invariant and perf is a formula, too. A formula that is NaN does not apply to the case.
#ifndef GATE_H
#define GATE_H

#include <expression.h>
#include <gate_formula.h>
#include <qg_table.h>

// X(ID, name): order is that of the summary.
#define QG_VERDICT_TABLE(X)                                                                        \
    X(PASS, "PASS")                                                                                \
    X(FAIL, "FAIL")                 /* exit 1 */                                                   \
    X(XFAIL, "XFAIL")               /* fails as a `known` row says */                              \
    X(XPASS, "XPASS")               /* passes although a `known` row says otherwise: exit 1 */     \
    X(MISSING, "MISSING")           /* a case without a result: exit 3 */                          \
    X(NEW, "NEW")                   /* no baseline knows the case */                               \
    X(MISTRUSTED, "MISTRUSTED")     /* the case's data say little */                               \
    X(INCOMPARABLE, "INCOMPARABLE") /* the baseline has other definitions of its metrics */        \
    X(AMBIGUOUS, "AMBIGUOUS")       /* perf: the limit lies within the spread */

typedef enum qg_verdict {
#define QG_VERDICT_ENUM(ID, name) QG_VERDICT_##ID,
    QG_VERDICT_TABLE(QG_VERDICT_ENUM)
#undef QG_VERDICT_ENUM
        QG_VERDICT_COUNT
} qg_verdict;

typedef enum qg_gate_kind {
    QG_GATE_BITS,
    QG_GATE_CONSISTENCY,
    QG_GATE_BOUND,
    QG_GATE_DRIFT,
    QG_GATE_INVARIANT,
    QG_GATE_PERF,
    QG_GATE_KNOWN
} qg_gate_kind;

typedef struct qg_gate {
    char *id;
    qg_gate_kind kind;
    qg_expression *where; // NULL: every row
    char *metric, *limit, *reason, *expires;
    int line; // of the file
    // Of gates that compare numbers, else empty.
    qg_formula *value;
    qg_limit bound;
} qg_gate;

typedef struct qg_gates {
    char *path;
    qg_gate *items;
    int count;
} qg_gates;

// QG_ERROR_IO, QG_ERROR_DATA (file:line: what is wrong).
qg_status qg_gates_read(const char *path, qg_gates *out);
void qg_gates_free(qg_gates *gates);

// A day of the calendar, as YYYY-MM-DD.
bool qg_gate_is_day(const char *text);

const char *qg_gate_kind_name(qg_gate_kind kind);
const char *qg_verdict_name(qg_verdict verdict);

#endif
