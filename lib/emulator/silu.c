// SiLU(gate) times up: the specification, element by element. See qg_emulator.h.
#include <qg_emulator.h>
#include <qg_init.h>
#include <qg_input.h>
#include <qg_silu.h>

static float element(qg_format type, const void *x, int64_t i) {
    switch (type) {
    case QG_FORMAT_BF16: return qg_float_of_bf16(((const uint16_t *)x)[i]);
    case QG_FORMAT_FP16: return qg_float_of_fp16(((const uint16_t *)x)[i]);
    default: return ((const float *)x)[i];
    }
}

qg_status qg_emulator_silu_times_up(int64_t count, qg_format input_type, const void *gate,
                                    const void *up, float *r) {
    if (input_type != QG_FORMAT_FP32 && input_type != QG_FORMAT_BF16 &&
        input_type != QG_FORMAT_FP16)
        return qg_fail(QG_ERROR_ARGUMENT, "the input type must be fp32, bf16 or fp16");
    qg_fp_state saved = qg_fp_enter();
    for (int64_t i = 0; i < count; i++)
        r[i] = qg_silu_times_up(element(input_type, gate, i), element(input_type, up, i));
    qg_fp_leave(saved);
    return QG_OK;
}
