// Codes of 4 and 6 bits packed after the fact: where blocks do not begin at whole bytes, two of
// them, and so two threads, would share a byte.
#include <launch.h>
#include <qg_pack.h>

enum { THREADS = 256 };

// A thread per unit: two codes in a byte, or four in three.
QG_KERNEL __launch_bounds__(THREADS)
    pack_codes(int bits, int64_t rows, int64_t k, const uint8_t *codes, uint8_t *packed) {
    int64_t unit = bits == 4 ? 2 : 4, units = qg_ceil_divide(k, unit);
    int64_t row_bytes = qg_packed_bytes(bits, k), step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows * units; i += step) {
        int64_t row = i / units, column = i % units * unit;
        int64_t count = k - column < unit ? k - column : unit;
        const uint8_t *from = codes + row * k + column;
        uint8_t *to = packed + row * row_bytes + i % units * (bits == 4 ? 1 : 3);
        if (bits == 4)
            qg_pack4(from, count, to);
        else
            qg_pack6(from, count, to);
    }
}

qg_status launch_pack(int bits, int64_t rows, int64_t k, const uint8_t *codes, uint8_t *packed,
                      cudaStream_t stream, qg_cuda_error *error) {
    int64_t ctas = qg_ceil_divide(rows * qg_ceil_divide(k, bits == 4 ? 2 : 4), THREADS);
    unsigned grid = ctas < QG_GRID_X_MOST ? (unsigned)ctas : (unsigned)QG_GRID_X_MOST;
    return kernel_status(
        QG_LAUNCH(pack_codes, dim3(grid), dim3(THREADS), 0, stream, bits, rows, k, codes, packed),
        "pack_codes", error);
}
