// Known failures: rows of kind `known` cover gates (a glob of ids) on the cases of `where` until the
// day on which they expire. See gate.h.
#include <gate_run.h>

#include <fnmatch.h>
#include <math.h>
#include <string.h>

static bool covers(const qg_gate *known, const qg_gate_result *result) {
    if (fnmatch(known->metric, result->gate->id, 0) != 0)
        return false;
    return !known->where || (result->row >= 0 && result->file &&
                             qg_gate_where_holds(known, result->file->table, result->row));
}

// A day of ISO 8601 compares as text; the day itself still counts.
static bool is_expired(const qg_gate_run *run, const qg_gate *known) {
    return strcmp(run->today, known->expires) > 0;
}

qg_status qg_gate_run_known(qg_gate_run *run, const qg_gate *known) {
    int64_t failed = 0, passed = 0, last = -1;
    if (is_expired(run, known))
        return QG_OK;
    for (int64_t i = 0; i < run->count; i++) {
        qg_gate_result *result = &run->results[i];
        if (!covers(known, result))
            continue;
        if (result->verdict == QG_VERDICT_FAIL || result->verdict == QG_VERDICT_XFAIL) {
            result->verdict = QG_VERDICT_XFAIL;
            failed++;
        } else if (result->verdict == QG_VERDICT_PASS) {
            passed++;
            last = i;
        }
    }
    if (failed > 0 || passed == 0)
        return QG_OK;
    qg_gate_result result = run->results[last];
    result.verdict = QG_VERDICT_XPASS;
    result.gate = known;
    result.repro = NULL;
    return qg_gate_add(
        run, &result,
        "known to fail %s until %s (%s), but all %lld verdicts pass: take the row out",
        known->metric, known->expires, known->reason, (long long)passed);
}
