// Figures of the formats themselves: what they represent, and how far rounding moves a value.
#include <figure_list.h>

#include <qg_codec.h>
#include <qg_format_name.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// From the bottom row up: by bits, then by exponent bits.
static const qg_format SHOWN[] = {QG_FORMAT_E2M1, QG_FORMAT_E2M3, QG_FORMAT_E3M2,
                                  QG_FORMAT_INT8, QG_FORMAT_E4M3, QG_FORMAT_E5M2};
enum { SHOWN_COUNT = sizeof SHOWN / sizeof SHOWN[0] };

static const char *const LABELS[] = {"E2M1", "E2M3", "E3M2", "INT8", "E4M3", "E5M2"};

static qg_status add_series(qg_plot *plot, qg_plot_mark mark, int which, const char *label,
                            const char *rule, int64_t *series) {
    char name[QG_NAME_SIZE];
    qg_format_name(SHOWN[which], name);
    return qg_plot_add(plot, mark, 0, label, name, rule, series);
}

// ---------------------------------------------------------------------------------------------- F1

static qg_status add_values(qg_plot *plot, int which) {
    qg_format_info info = qg_format_describe(SHOWN[which]);
    int64_t series;
    qg_status status = add_series(plot, QG_PLOT_RUG, which, "", "", &series);
    for (uint64_t code = 0; code >> info.bits == 0 && status == QG_OK; code++) {
        double value = qg_decode(&info, code);
        if (value > 0 && isfinite(value))
            status =
                qg_plot_point_add(plot, series, (qg_plot_point){value, which - 0.3, NAN, NAN, NAN});
    }
    return status;
}

qg_status qg_build_values(const qg_figure_rows *rows, qg_plot *plot) {
    static const char *const ROWS[] = {"E2M1", "E2M3", "E3M2", "INT8", "E4M3", "E5M2"};
    (void)rows;
    qg_status status = QG_OK;
    plot->x = (qg_plot_axis){"value", QG_PLOT_LOG2, 0x1p-17, 0x1p17, NAN, NULL, 0};
    plot->y = (qg_plot_axis){"", QG_PLOT_LINEAR, -0.5, SHOWN_COUNT - 0.5, NAN, ROWS, SHOWN_COUNT};
    for (int i = 0; i < SHOWN_COUNT && status == QG_OK; i++)
        status = add_values(plot, i);
    return status;
}

// ---------------------------------------------------------------------------------------------- F2

// Bins of 1/64 octave from LOWEST to HIGHEST, and what is drawn: the largest and the rms over the
// octave around every eighth of them. Bin by bin the error is the distance to the next value.
enum { PER_OCTAVE = 64, PER_BIN = 16, PER_POINT = 8, LOWEST = -19, HIGHEST = 17 };
enum { BINS = (HIGHEST - LOWEST) * PER_OCTAVE };

typedef struct bin {
    double largest, square; // of the relative error: largest, mean of squares
} bin;

static double bin_start(int which) {
    return ldexp(1 + (double)(which % PER_OCTAVE) / PER_OCTAVE, LOWEST + which / PER_OCTAVE);
}

static bin measure_bin(const qg_format_info *info, int which) {
    static const qg_conversion NEAREST = {
        {QG_ROUND_RNE, 0},
        QG_OVERFLOW_SATURATE, QG_NAN_TO_MAX
    };
    double x = bin_start(which), step = ldexp(1.0, LOWEST + which / PER_OCTAVE) / PER_OCTAVE;
    bin b = {0, 0};
    for (int i = 0; i < PER_BIN; i++) {
        double value = x + (i + 0.5) * step / PER_BIN;
        double e = qg_decode(info, qg_encode(info, value, &NEAREST, 0)) / value - 1;
        b.largest = fabs(e) > b.largest ? fabs(e) : b.largest;
        b.square += e * e / PER_BIN;
    }
    return b;
}

// Over the octave around a bin; at the end of the format's range over its last octave.
static bin window_of(const bin *bins, int middle, int end) {
    bin w = {0, 0};
    int to = middle + PER_OCTAVE / 2 < end ? middle + PER_OCTAVE / 2 : end, count = 0;
    for (int i = to > PER_OCTAVE ? to - PER_OCTAVE : 0; i < to; i++, count++) {
        w.largest = bins[i].largest > w.largest ? bins[i].largest : w.largest;
        w.square += bins[i].square;
    }
    w.square /= count > 0 ? count : 1;
    return w;
}

static qg_status add_envelope(qg_plot *plot, int which) {
    static bin bins[BINS];
    int64_t largest, rms;
    int begin = BINS, end = 0; // not all flushed to zero, not above the largest value
    qg_format_info info = qg_format_describe(SHOWN[which]);
    double most =
        qg_decode(&info, qg_encode(&info, INFINITY,
                                   &(qg_conversion){
                                       {QG_ROUND_RNE, 0},
                                       QG_OVERFLOW_SATURATE, QG_NAN_TO_MAX
    },
                                   0));
    for (int i = 0; i < BINS; i++) {
        bins[i] = measure_bin(&info, i);
        begin = bins[i].square < 1 && i < begin ? i : begin;
        end = bin_start(i) <= most ? i : end;
    }
    qg_status status = add_series(plot, QG_PLOT_THEORY, which, LABELS[which], "", &largest);
    if (status == QG_OK)
        status = add_series(plot, QG_PLOT_THEORY, which, "", "rms", &rms);
    for (int i = begin / PER_POINT * PER_POINT; i <= end && status == QG_OK; i += PER_POINT) {
        bin w = window_of(bins, i, end);
        status = qg_plot_point_add(plot, largest,
                                   (qg_plot_point){bin_start(i), w.largest, NAN, NAN, NAN});
        if (status == QG_OK)
            status = qg_plot_point_add(
                plot, rms, (qg_plot_point){bin_start(i), sqrt(w.square), NAN, NAN, NAN});
    }
    return status;
}

qg_status qg_build_envelope(const qg_figure_rows *rows, qg_plot *plot) {
    (void)rows;
    qg_status status = QG_OK;
    plot->x = (qg_plot_axis){"|x|", QG_PLOT_LOG2, 0x1p-18, 0x1p17, NAN, NULL, 0};
    plot->y = (qg_plot_axis){"relative error", QG_PLOT_LOG2, 0x1p-9, 1.2, NAN, NULL, 0};
    plot->key = QG_PLOT_KEY_BELOW;
    for (int i = SHOWN_COUNT - 1; i >= 0 && status == QG_OK; i--)
        status = add_envelope(plot, i);
    return status;
}
