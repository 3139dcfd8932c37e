// Verdicts as JUnit XML: a suite per gate; a case per row that did not pass, and one for all that
// did. MISSING, FAIL and XPASS are failures; NEW, INCOMPARABLE and the like are skipped.
#include <gate_report.h>

#include <inttypes.h>
#include <math.h>

// Text of an attribute or element; control characters have no place in XML.
static void put_text(FILE *stream, const char *text) {
    for (; *text; text++)
        switch (*text) {
        case '<': fputs("&lt;", stream); break;
        case '>': fputs("&gt;", stream); break;
        case '&': fputs("&amp;", stream); break;
        case '"': fputs("&quot;", stream); break;
        default: fputc((unsigned char)*text < ' ' ? ' ' : *text, stream);
        }
}

static bool is_failure(const qg_gate_report *report, qg_verdict verdict) {
    return qg_gate_is_bad(verdict) &&
           !(verdict == QG_VERDICT_MISSING && report->run->allow_missing);
}

static void put_case(const qg_gate_report *report, const qg_gate_result *r) {
    FILE *stream = report->stream;
    char text[1024];
    const char *repro = qg_gate_result_repro(r);
    const char *element = is_failure(report, r->verdict) ? "failure" : "skipped";
    qg_gate_result_case(r, text, sizeof text);
    fputs("    <testcase classname=\"", stream);
    put_text(stream, r->gate->id);
    fputs("\" name=\"", stream);
    put_text(stream, *text ? text : r->detail ? r->detail : "file");
    fprintf(stream, "\"><%s message=\"%s: ", element, qg_verdict_name(r->verdict));
    put_text(stream, r->detail ? r->detail : "");
    fputs("\">", stream);
    put_text(stream, r->gate->reason);
    if (*repro) {
        fputs("\nrun_sweep ", stream);
        put_text(stream, repro);
    }
    fprintf(stream, "</%s></testcase>\n", element);
}

// NEW rows are many, and nothing to look at: one case for all.
static bool is_listed(qg_verdict verdict) {
    return verdict != QG_VERDICT_PASS && verdict != QG_VERDICT_NEW;
}

static void put_suite(const qg_gate_report *report, const qg_gate_summary *s) {
    FILE *stream = report->stream;
    int64_t tests = 0, failures = 0, skipped = s->counts[QG_VERDICT_NEW] > 0;
    for (int v = 0; v < QG_VERDICT_COUNT; v++) {
        if (!is_listed((qg_verdict)v))
            continue;
        tests += s->counts[v];
        failures += is_failure(report, (qg_verdict)v) ? s->counts[v] : 0;
        skipped += is_failure(report, (qg_verdict)v) ? 0 : s->counts[v];
    }
    tests += (s->counts[QG_VERDICT_PASS] > 0) + (s->counts[QG_VERDICT_NEW] > 0);
    fputs("  <testsuite name=\"", stream);
    put_text(stream, s->gate->id);
    fprintf(stream,
            "\" tests=\"%" PRId64 "\" failures=\"%" PRId64 "\" errors=\"0\" skipped=\"%" PRId64
            "\" time=\"0\">\n",
            tests, failures, skipped);
    if (s->counts[QG_VERDICT_PASS] > 0) {
        fputs("    <testcase classname=\"", stream);
        put_text(stream, s->gate->id);
        fprintf(stream, "\" name=\"%" PRId64 " passed", s->counts[QG_VERDICT_PASS]);
        if (!isnan(s->used) && s->counts[QG_VERDICT_FAIL] == 0)
            fprintf(stream, ", at most %.3f of the tolerance used", s->used);
        fputs("\"/>\n", stream);
    }
    if (s->counts[QG_VERDICT_NEW] > 0) {
        fputs("    <testcase classname=\"", stream);
        put_text(stream, s->gate->id);
        fprintf(stream,
                "\" name=\"%" PRId64 " in no baseline\"><skipped message=\"NEW\"/></testcase>\n",
                s->counts[QG_VERDICT_NEW]);
    }
    for (int64_t i = 0; i < report->run->count; i++) {
        const qg_gate_result *r = &report->run->results[i];
        if (r->gate == s->gate && is_listed(r->verdict))
            put_case(report, r);
    }
    fputs("  </testsuite>\n", stream);
}

void qg_gate_report_junit(const qg_gate_report *report) {
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"run_gate\">\n",
          report->stream);
    for (int i = 0; i < report->summary_count; i++)
        put_suite(report, &report->summaries[i]);
    fputs("</testsuites>\n", report->stream);
}
