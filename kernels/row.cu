// A scale per row: the kernel of blocks, with as many threads as a row keeps busy.
#include <launch.h>

qg_status launch_row(const quantize_args *args, cudaStream_t stream, qg_cuda_error *error) {
    return launch_ctas(args, args->blocks.k, stream, error);
}
