// Closed forms of papers. See qg_closed_forms.h.
#include <qg_closed_forms.h>

#include <qg_elementary.h>

#include <math.h> // ldexp, which is exact; nothing else of it is called

static double power_of_two(int exponent) { return ldexp(1, exponent); }

// ------------------------------------------------------------------------------ ample-range floats

// The integral of (x - q)^2 x^-3 over [low, high], a narrow interval: four Gauss-Legendre nodes.
// The antiderivative ln x + 2 q / x - q^2 / (2 x^2) would cancel.
static double cell_noise(double low, double high, double q) {
    static const double place[] = {0.33998104358485626480, 0.86113631159405257522};
    static const double weight[] = {0.65214515486254614263, 0.34785484513745385737};
    double middle = 0.5 * (low + high), half = 0.5 * (high - low), sum = 0;
    for (int i = 0; i < 4; i++) {
        double x = middle + (i % 2 ? half : -half) * place[i / 2];
        sum += weight[i / 2] * (x - q) * (x - q) / (x * x * x);
    }
    return half * sum;
}

double qg_closed_ample_range_db(int mbits) {
    if (mbits < 0 || mbits > 23)
        return NAN;
    double ulp = power_of_two(-mbits), sum = 0;
    for (int64_t i = 0; i < (int64_t)1 << mbits; i++) { // the cells' halves beside each gap
        double below = 1 + (double)i * ulp, above = below + ulp, middle = below + 0.5 * ulp;
        sum += cell_noise(below, middle, below) + cell_noise(middle, above, above);
    }
    return -10 * qg_log10(sum / qg_log(2));
}

// ------------------------------------------------------------------------------------ INT v.s. FP

static double decibels(double ratio) { return 10 * qg_log10(ratio); }

static double integer_db(const qg_closed_format *f, double kappa) {
    double db = 4.78 + 6.02 * f->int_bits - 20 * qg_log10(kappa) - 20 * qg_log10(f->overhead);
    return f->group > 0 ? db + decibels((double)f->group / (double)(f->group - 1)) : db;
}

static double float_db(const qg_closed_format *f, double kappa) {
    double reach = f->overhead * kappa;
    double alpha = power_of_two(-2 * f->mbits) / 24;
    double beta = power_of_two(2 * (1 - f->bias - f->mbits)) / (12 * f->largest * f->largest);
    double t = reach * power_of_two(1 - f->bias) / f->largest;
    double outside = qg_normal_cdf(-t);
    double normal = 2 * (t * qg_normal_density(t) + outside); // the signal of normal numbers
    if (f->group > 0)
        normal -= kappa * kappa / (double)f->group; // the largest element has no error
    double noise = alpha * normal + beta * reach * reach * (1 - 2 * outside);
    return normal > 0 ? -decibels(noise) : NAN;
}

double qg_closed_qsnr_db(const qg_closed_format *f, double kappa) {
    if (!(kappa >= 1))
        return NAN;
    return f->int_bits > 0 ? integer_db(f, kappa) : float_db(f, kappa);
}

qg_status qg_closed_crossover(const qg_closed_format *a, const qg_closed_format *b, double low,
                              double high, double *kappa) {
    double at_low = qg_closed_qsnr_db(a, low) - qg_closed_qsnr_db(b, low);
    double at_high = qg_closed_qsnr_db(a, high) - qg_closed_qsnr_db(b, high);
    if (!(at_low * at_high < 0))
        return qg_fail(QG_ERROR_ARGUMENT,
                       "closed forms: no crossover between crest factors %g and %g", low, high);
    for (;;) {
        double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high)
            break;
        double at = qg_closed_qsnr_db(a, middle) - qg_closed_qsnr_db(b, middle);
        *((at < 0) == (at_low < 0) ? &low : &high) = middle;
    }
    *kappa = low;
    return QG_OK;
}

// -------------------------------------------------------------------------------- shared exponents

double qg_closed_shared_exponent_bound_db(int magnitude_bits, int shift_bits, int64_t n, int64_t k1,
                                          int64_t k2) {
    double octaves = power_of_two(2 * ((1 << shift_bits) - 1));
    double shared = (double)(n < k1 ? n : k1);
    return 6.02 * magnitude_bits + decibels(octaves / (shared + (octaves - 1) * (double)k2));
}
