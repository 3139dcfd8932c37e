// Samples that are drawn, quantized and measured in place. See published_work.h.
#include <published_work.h>

#include <qg_data.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>

#include <math.h>
#include <stdlib.h>

enum { SCALE_ROOM = 8 }; // bytes of the largest scale field, for as many blocks as elements

qg_status published_sample_create(int64_t m, int64_t k, published_sample *out) {
    size_t count = (size_t)(m * k);
    *out = (published_sample){.m = m, .k = k};
    out->x = malloc(count * sizeof *out->x);
    out->q = malloc(count * sizeof *out->q);
    out->codes = malloc(count);
    out->scales = malloc(count * SCALE_ROOM);
    if (out->x && out->q && out->codes && out->scales)
        return QG_OK;
    published_sample_free(out);
    return qg_fail(QG_ERROR_MEMORY, "no memory for a sample of the published results");
}

void published_sample_free(published_sample *sample) {
    free(sample->x);
    free(sample->q);
    free(sample->codes);
    free(sample->scales);
    *sample = (published_sample){0};
}

qg_status published_sample_draw(published_sample *sample, const char *law_name, uint64_t seed) {
    qg_law *law;
    qg_status status = qg_law_parse(law_name, &law);
    if (status == QG_OK)
        qg_law_generate(law, seed, 0, sample->k, 0, sample->m, sample->x);
    qg_law_free(law);
    return status;
}

qg_status published_recipe(const char *format, const char *layout, const char *rule,
                           const char *rounding, qg_recipe *out) {
    qg_layout parsed;
    int id;
    float fixed;
    qg_status status = qg_recipe_find(format, out);
    if (status == QG_OK && layout)
        status = qg_layout_parse(layout, &parsed);
    if (status == QG_OK && layout)
        status = qg_recipe_set_layout(out, parsed);
    if (status == QG_OK && rule)
        status = qg_rule_parse(rule, &id, &fixed);
    if (status == QG_OK && rule)
        status = qg_recipe_set_rule(out, id, fixed);
    if (status == QG_OK && rounding)
        status = qg_rounding_parse(rounding, &out->conversion.rounding);
    return status;
}

qg_status published_sample_quantize(published_sample *s, const qg_recipe *recipe, uint64_t seed) {
    qg_quantize_options options = {
        .input_type = QG_FORMAT_FP32, .seed = seed, .stream = QG_STREAM_ROUNDING};
    qg_status status = qg_emulator_quantize(recipe, &options, s->m, s->k, s->x, s->codes, s->scales,
                                            &s->tensor_scale, &s->counts);
    if (status == QG_OK)
        status = qg_emulator_dequantize(recipe, s->m, s->k, s->codes, s->scales, s->tensor_scale, 0,
                                        s->q);
    return status == QG_OK ? qg_sums_measure(s->m * s->k, s->x, s->q, 0, &s->sums) : status;
}

double published_sample_qsnr(const published_sample *sample) {
    return qg_metric_value(&sample->sums, QG_METRIC_QSNR_DB);
}

void published_mean(int count, const double *values, double *mean, double *error) {
    double sum = 0, squares = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    *mean = sum / count;
    for (int i = 0; i < count; i++)
        squares += (values[i] - *mean) * (values[i] - *mean);
    *error = count > 1 ? sqrt(squares / ((double)count * (count - 1))) : 0;
}

qg_status published_grid(const char *format, double room[256], qg_grid *grid) {
    qg_format id;
    qg_status status = qg_format_parse(format, &id);
    if (status != QG_OK)
        return status;
    qg_format_info info = qg_format_describe(id);
    int64_t count = 0;
    for (uint64_t code = 0; code <= info.max_code && count < 256; code++)
        room[count++] =
            info.kind == QG_KIND_INT ? qg_decode(&info, code) : qg_decode_magnitude(&info, code);
    *grid = (qg_grid){room, count};
    return QG_OK;
}
