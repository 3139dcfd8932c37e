// Bias and conversion by the specification's own encoder, so that a bias of binary32 enters as
// defined, out = RNE(fl(fl(acc * fl(sa * sb)) + bias)): the library's bias is of 16 bits for most
// outputs.
#include <launch.h>
#include <product_epilogue.h>
#include <qg_input.h>

enum { EPILOGUE_THREADS = 256 };

typedef struct epilogue_args {
    product_epilogue call;
    qg_format_info out_info;
    qg_conversion conversion;
} epilogue_args;

static __device__ inline float addend_of(qg_format out_type, const void *c, int64_t i) {
    switch (out_type) {
    case QG_FORMAT_FP32: return ((const float *)c)[i];
    case QG_FORMAT_FP16: return qg_float_of_fp16(((const uint16_t *)c)[i]);
    default: return qg_float_of_bf16(((const uint16_t *)c)[i]);
    }
}

static __device__ inline void store_code_of(qg_format out_type, void *out, int64_t i,
                                            uint64_t code) {
    switch (out_type) {
    case QG_FORMAT_FP32: ((uint32_t *)out)[i] = (uint32_t)code; break;
    case QG_FORMAT_BF16:
    case QG_FORMAT_FP16: ((uint16_t *)out)[i] = (uint16_t)code; break;
    default: ((uint8_t *)out)[i] = (uint8_t)code; break;
    }
}

QG_KERNEL product_epilogue_kernel(const epilogue_args args) {
    const product_epilogue *call = &args.call;
    const int64_t stride = (int64_t)gridDim.x * EPILOGUE_THREADS;
    const float out_scale = call->out_scale ? *call->out_scale : 1.0f;
    for (int64_t i = (int64_t)blockIdx.x * EPILOGUE_THREADS + threadIdx.x; i < call->count;
         i += stride) {
        float x = call->product[i];
        if (call->c)
            x = x + addend_of(call->out_type, call->c, i);
        x = x + call->bias[i % call->n];
        x = x * out_scale;
        store_code_of(call->out_type, call->out, i,
                      qg_encode(&args.out_info, (double)x, &args.conversion, 0));
    }
}

qg_status launch_product_epilogue(const product_epilogue *call, void *stream,
                                  qg_cuda_error *error) {
    epilogue_args args;
    args.call = *call;
    args.out_info = qg_format_describe(call->out_type);
    args.conversion.rounding.mode = QG_ROUND_RNE;
    args.conversion.rounding.bits = 0;
    args.conversion.overflow = args.out_info.bits == 8 ? QG_OVERFLOW_SATURATE : QG_OVERFLOW_FORMAT;
    args.conversion.nan = QG_NAN_TO_MAX;
    const int64_t ctas = qg_ceil_divide(call->count, EPILOGUE_THREADS), most = 1 << 20;
    const unsigned grid = (unsigned)(ctas < most ? ctas : most);
    return kernel_status(
        QG_LAUNCH(product_epilogue_kernel, grid, EPILOGUE_THREADS, 0, (cudaStream_t)stream, args),
        "product_epilogue", error);
}
