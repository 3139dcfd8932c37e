// Real tensors in: .safetensors, .npy, HDF5 and raw files, as binary32 matrices (m, k).
//
// Rank 1 is (1, k); higher ranks flatten the leading axes. fp64 is rounded once, fp16 and bf16
// widen exactly. Whole numbers of 64 bits (indices) are no data to quantize: they are listed as
// skipped, and read by a function of their own. Every offset, size and count in a file is checked
// before use; files are foreign.
#ifndef QG_TENSOR_FILE_H
#define QG_TENSOR_FILE_H

#include <qg_status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct qg_tensor_file qg_tensor_file;

typedef struct qg_tensor_info {
    const char *name;  // in the file; of .npy and raw the file's name without folder
    const char *dtype; // "f32", "f64", "f16", "bf16"; or the file's word for another type
    int64_t m, k;      // 0, 0 when it cannot be read; of 64-bit integers the shape, though skipped
    const char *skipped; // NULL, or why this tensor cannot be read: "I64 is no floating-point type"
} qg_tensor_info;

// Opens a file and lists its tensors in a fixed order (by name). The format follows from the
// suffix: .safetensors, .npy, .h5 .hdf5, else raw with a sidecar PATH.json
// {"dtype": "f32", "shape": [m, k]}.
// QG_ERROR_IO: cannot open. QG_ERROR_DATA: truncated, lying or malformed; the detail names the
// file, what is wrong and where. QG_ERROR_UNSUPPORTED: e.g. a Fortran-ordered or big-endian .npy.
qg_status qg_tensor_file_open(const char *path, qg_tensor_file **out);
void qg_tensor_file_close(qg_tensor_file *file); // NULL is fine

const char *qg_tensor_file_name(const qg_tensor_file *file); // without folder
int64_t qg_tensor_file_count(const qg_tensor_file *file);
qg_tensor_info qg_tensor_file_info(const qg_tensor_file *file, int64_t index);
// The tensor of that name, -1 if there is none.
int64_t qg_tensor_file_find(const qg_tensor_file *file, const char *name);

// x: (m * k) row-major. QG_ERROR_DATA, QG_ERROR_IO.
qg_status qg_tensor_file_read(qg_tensor_file *file, int64_t index, float *x);

// The same of signed 64-bit integers, .safetensors (I64) and HDF5 alone: those with a shape
// although they are skipped. QG_ERROR_UNSUPPORTED for any other tensor.
qg_status qg_tensor_file_read_i64(qg_tensor_file *file, int64_t index, int64_t *x);

// XXH3-64 of the values as binary32, little endian, row-major.
qg_status qg_tensor_file_digest(qg_tensor_file *file, int64_t index, uint64_t *out);

#endif
