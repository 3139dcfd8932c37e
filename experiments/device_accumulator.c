// Stage `probe`: what accumulates inside cuBLASLt's FP8 products, with fast accumulation and
// without: the number of survivors per pair, and the unit (promotion, split-K) that explains them.
#include <device_fit.h>
#include <device_stage.h>

#include <qg_memory.h>

#include <inttypes.h>
#include <string.h>

enum { FORMS = 2 };

static const char *accumulation(int fast) { return fast ? "fast" : "promoted"; }

// What the architecture's tensor cores are modelled as; later stages fall back to it.
const char *device_expected_unit(int architecture, int fast) {
    if (architecture >= 120)
        return "rtx_blackwell_mma";
    if (architecture >= 100)
        return "blackwell_tcgen05";
    if (architecture >= 90)
        return fast ? "hopper_wgmma" : "hopper_wgmma+promote:128";
    return fast ? "ada_mma" : "ada_mma+promote:128";
}

static bool is_of_family(const char *unit, const char *expected) {
    size_t length = strcspn(expected, "+");
    return strncmp(unit, expected, length) == 0 && (unit[length] == 0 || unit[length] == '+');
}

static qg_status write_rows(device_check *c, const device_signature *s, int fast,
                            const device_fit *fit, bool accepted, const float *measured) {
    void *room;
    qg_status status = qg_allocate(&room, device_signature_outputs(s), sizeof(float), "outputs");
    if (status == QG_OK)
        status = device_expect(&s->product, fit->unit, room);
    for (int p = 0; p < s->pairs && status == QG_OK; p++) {
        double survivors = device_signature_survivors(s, p, measured);
        double simulated = device_signature_survivors(s, p, room);
        bool same = accepted && survivors == simulated;
        char label[64];
        snprintf(label, sizeof label, "+-2^%d, %s", s->power, accumulation(fast));
        device_report_row(
            c->report, DEVICE_PROBE, label, same ? DEVICE_VERDICT_PASSED : DEVICE_VERDICT_FAILED,
            same        ? ""
            : !accepted ? "no unit of this architecture explains it"
                        : "the unit gives another count",
            "%d\t%s\t%s\t%d\t%" PRId64 "\t%" PRId64 "\t%.17g\t%.17g", s->power, accumulation(fast),
            fit->unit, DEVICE_PROBE_LENGTH, s->pair[p].i, s->pair[p].j, survivors, simulated);
    }
    qg_release(room);
    return status;
}

static void note_fit(device_check *c, int fast, const device_fit *fit, const char *expected) {
    if (fit->differences == 0)
        device_report_note(c->report, DEVICE_PROBE, "%s: %s explains every output%s",
                           accumulation(fast), fit->unit,
                           strcmp(fit->unit, expected) == 0 ? ", as expected" : "");
    else
        device_report_note(c->report, DEVICE_PROBE,
                           "%s: nothing explains it; %s comes nearest, %" PRId64
                           " outputs differ (expected %s)",
                           accumulation(fast), fit->unit, fit->differences, expected);
}

static qg_status probe(device_check *c, device_signature *forms, float *const *measured, int fast) {
    device_fit fit;
    const char *expected = device_expected_unit(c->device->architecture, fast);
    qg_status status = QG_OK;
    for (int f = 0; f < FORMS && status == QG_OK; f++) {
        forms[f].product.accumulates_fast = fast;
        status = device_multiply(c, &forms[f].product, measured[f]);
    }
    if (status == QG_OK)
        status = device_fit_units(forms, FORMS, (const float *const *)measured, &fit);
    if (status != QG_OK)
        return status;
    bool accepted = fit.differences == 0 && is_of_family(fit.unit, expected);
    for (int f = 0; f < FORMS && status == QG_OK; f++)
        status = write_rows(c, &forms[f], fast, &fit, accepted, measured[f]);
    note_fit(c, fast, &fit, expected);
    if (accepted)
        memcpy(c->unit[fast], fit.unit, sizeof fit.unit);
    return status;
}

static qg_status probe_both(device_check *c, device_signature *forms, float *const *measured) {
    for (int fast = 1; fast >= 0; fast--) {
        if (device_is_late(c)) {
            device_report_left(c->report, "probe of the accumulator", 1, "time is up");
            continue;
        }
        qg_status status = probe(c, forms, measured, fast);
        if (status == QG_ERROR_UNSUPPORTED)
            device_report_left(c->report, "probe of the accumulator", 1, qg_detail());
        else if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

qg_status device_stage_probe(device_check *c) {
    device_signature forms[FORMS] = {0};
    void *measured[FORMS] = {0};
    static const int powers[FORMS] = {8, 16};
    qg_status status = QG_OK;
    for (int f = 0; f < FORMS && status == QG_OK; f++) {
        status = device_signature_open(powers[f], c->is_small ? 16 : DEVICE_PAIRS_MOST,
                                       DEVICE_PROBE_LENGTH, &forms[f]);
        if (status == QG_OK)
            status = qg_allocate(&measured[f], device_signature_outputs(&forms[f]), sizeof(float),
                                 "outputs");
    }
    float *outputs[FORMS] = {measured[0], measured[1]};
    if (status == QG_OK)
        status = probe_both(c, forms, outputs);
    for (int f = 0; f < FORMS; f++) {
        device_signature_free(&forms[f]);
        qg_release(measured[f]);
    }
    return status;
}
