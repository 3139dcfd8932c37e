// The signature products and the search for the unit behind them. See device_fit.h.
// Source: issue threads and papers on Hopper's FP8 accumulation; the probe is our own design.
#include <device_fit.h>

#include <qg_memory.h>
#include <qg_recipe_name.h>

#include <string.h>

// E4M3.
enum { ONE = 0x38, SMALL = 0x08, LARGE = 0x78, MINUS_LARGE = 0xf8 };

static bool is_among(const device_pair *pairs, int count, device_pair pair) {
    for (int p = 0; p < count; p++)
        if (pairs[p].i == pair.i && pairs[p].j == pair.j)
            return true;
    return false;
}

static void choose_pairs(int pairs, int64_t k, device_pair *out) {
    static const device_pair first[] = {
        {0,   127 },
        {0,   128 },
        {0,   255 },
        {0,   512 },
        {0,   1023},
        {511, 512 },
    };
    static const int64_t starts[] = {0, 31, 32, 64, 127, 128, 256, 300, 511};
    static const int64_t spans[] = {1, 31, 32, 33, 63, 64, 128, 129, 256, 400, 512, 700};
    int count = 0;
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        out[count++] = first[i];
    for (size_t n = 0; count < pairs; n++) {
        // Coprime counts: every start meets every span in the end.
        int64_t i = starts[n % 9], j = i + spans[(n + n / 36) % 12];
        device_pair pair = {i, j < k ? j : k - 1};
        if (!is_among(out, count, pair))
            out[count++] = pair;
    }
}

static void fill_row(uint8_t *row, device_pair pair, uint8_t at_i, uint8_t at_j) {
    row[pair.i] = at_i;
    row[pair.j] = at_j;
}

static qg_status open_operand(int64_t rows, int64_t k, device_operand *operand) {
    qg_recipe recipe;
    float one = 1;
    qg_status status = qg_recipe_find("e4m3", &recipe);
    if (status == QG_OK)
        status = qg_recipe_set_rule(&recipe, QG_RULE_FIXED, 1);
    if (status == QG_OK)
        status = device_operand_open(&recipe, "e4m3", rows, k, operand);
    if (status == QG_OK)
        memcpy(operand->scales, &one, sizeof one);
    return status;
}

qg_status device_signature_open(int power, int pairs, int64_t k, device_signature *out) {
    enum { LEAST_ROWS = 16 };
    memset(out, 0, sizeof *out);
    out->power = power;
    out->pairs = pairs;
    out->product.out_type = QG_FORMAT_FP32;
    choose_pairs(pairs, k, out->pair);
    device_operand *a = &out->product.a, *b = &out->product.b;
    qg_status status = open_operand(pairs, k, a);
    if (status == QG_OK)
        status = open_operand(power == 16 ? pairs : LEAST_ROWS, k, b);
    if (status != QG_OK)
        return status;
    memset(a->codes, SMALL, (size_t)a->shape.codes_size);
    memset(b->codes, ONE, (size_t)b->shape.codes_size);
    // 1 to 15/8 times 2^-6: sums that binary32 cannot hold beside 2^16, whatever the interval.
    for (int64_t i = 0; power == 16 && i < b->shape.codes_size; i++)
        b->codes[i] = (uint8_t)(SMALL + (5 * i + i / k) % 8);
    for (int p = 0; p < pairs; p++) {
        fill_row(a->codes + p * k, out->pair[p], LARGE, MINUS_LARGE);
        if (power == 16)
            fill_row(b->codes + p * k, out->pair[p], LARGE, LARGE);
    }
    return QG_OK;
}

void device_signature_free(device_signature *s) {
    device_operand_free(&s->product.a);
    device_operand_free(&s->product.b);
}

int64_t device_signature_outputs(const device_signature *s) {
    return s->product.a.rows * s->product.b.rows;
}

double device_signature_survivors(const device_signature *s, int pair, const float *out) {
    int64_t n = s->product.b.rows;
    return s->power == 16 ? (double)out[pair * n + pair] * 4096 : (double)out[pair * n] * 64;
}

// ----------------------------------------------------------------------------------------- search

static int64_t differences_of(const device_signature *s, const float *measured,
                              const float *simulated) {
    int64_t different = 0;
    for (int64_t i = 0; i < device_signature_outputs(s); i++)
        different += qg_bits_of_float(measured[i]) != qg_bits_of_float(simulated[i]);
    return different;
}

static qg_status try_unit(const device_signature *signatures, int count,
                          const float *const *measured, const char *unit, float *simulated,
                          device_fit *fit) {
    int64_t differences = 0;
    for (int s = 0; s < count; s++) {
        qg_status status = device_expect(&signatures[s].product, unit, simulated);
        if (status != QG_OK)
            return status;
        differences += differences_of(&signatures[s], measured[s], simulated);
        if (fit->unit[0] && differences > fit->differences)
            return QG_OK; // another explains more
    }
    fit->exact += differences == 0;
    if (fit->unit[0] == 0 || differences < fit->differences) {
        memcpy(fit->unit, unit, strlen(unit) + 1);
        fit->differences = differences;
    }
    return QG_OK;
}

static qg_status try_unit_family(const device_signature *signatures, int count,
                                 const float *const *measured, const char *base, float *simulated,
                                 device_fit *fit) {
    static const int splits[] = {1, 2, 3, 4, 8}, promotions[] = {0, 128, 64, 256, 32, 512};
    for (size_t s = 0; s < sizeof splits / sizeof splits[0]; s++)
        for (size_t p = 0; p < sizeof promotions / sizeof promotions[0]; p++) {
            char unit[DEVICE_UNIT_NAME];
            int length = snprintf(unit, sizeof unit, "%s", base);
            if (promotions[p])
                length += snprintf(unit + length, sizeof unit - (size_t)length, "+promote:%d",
                                   promotions[p]);
            if (splits[s] > 1)
                snprintf(unit + length, sizeof unit - (size_t)length, "+split:%d", splits[s]);
            qg_status status = try_unit(signatures, count, measured, unit, simulated, fit);
            if (status != QG_OK)
                return status;
        }
    return QG_OK;
}

qg_status device_fit_units(const device_signature *signatures, int count,
                           const float *const *measured, device_fit *fit) {
    static const char *const bases[] = {"hopper_wgmma", "blackwell_tcgen05", "ada_mma"};
    int64_t most = 0;
    void *simulated;
    memset(fit, 0, sizeof *fit);
    for (int s = 0; s < count; s++)
        if (device_signature_outputs(&signatures[s]) > most)
            most = device_signature_outputs(&signatures[s]);
    qg_status status = qg_allocate(&simulated, most, sizeof(float), "simulated outputs");
    if (status != QG_OK)
        return status;
    for (size_t b = 0; b < sizeof bases / sizeof bases[0] && status == QG_OK; b++)
        status = try_unit_family(signatures, count, measured, bases[b], simulated, fit);
    if (status == QG_OK)
        status = try_unit(signatures, count, measured, "fp32_sequential", simulated, fit);
    if (status == QG_OK)
        status = try_unit(signatures, count, measured, "exact", simulated, fit);
    qg_release(simulated);
    return status;
}
