// What the readers of tensor files share: the open file, its list of tensors, and how stored
// numbers become binary32. Private to store/. Files are foreign: nothing that they say is used
// before it is checked against their size.
#ifndef TENSOR_READER_H
#define TENSOR_READER_H

#include <qg_tensor_file.h>
#include <stddef.h>

typedef enum tensor_type {
    TENSOR_OTHER, // listed, never read
    TENSOR_F64,
    TENSOR_F32,
    TENSOR_F16,
    TENSOR_BF16,
    TENSOR_I64 // skipped as data, read as indices
} tensor_type;

typedef struct tensor_entry {
    char *name;
    char *dtype;
    char *skipped; // NULL, or why it cannot be read
    tensor_type type;
    int64_t m, k;   // 0, 0 when skipped, unless the type is TENSOR_I64
    int64_t offset; // of the first byte from the start of the file (not HDF5)
} tensor_entry;

struct qg_tensor_file {
    char *path;
    const char *base; // within path: without folder
    int fd;
    int64_t size; // of the file, when it was opened
    bool is_hdf5;
    tensor_entry *entries;
    int64_t count, room;
};

// Room for a name or word of a file inside a message.
enum { TENSOR_TEXT_SIZE = 128 };

// Copies at most TENSOR_TEXT_SIZE - 1 bytes, control characters replaced, so that a message stays
// one line whatever a file contains. Returns `out`.
const char *tensor_text(const char *text, char out[TENSOR_TEXT_SIZE]);

// Bytes of one stored number; 0 for TENSOR_OTHER. Name: "f32", ... of floating-point types.
int64_t tensor_type_size(tensor_type type);
const char *tensor_type_name(tensor_type type);

// The type of a name in a sidecar: f32, fp32, float32 and likewise; TENSOR_OTHER if unknown.
tensor_type tensor_type_parse(const char *name);

// Adds an entry to the list; *out stays valid until the next call.
qg_status tensor_add(qg_tensor_file *file, const char *name, const char *dtype, tensor_entry **out);

// Says why an entry cannot be read as data.
#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
qg_status
tensor_skip(tensor_entry *entry, const char *format, ...);

// Elements of a shape: QG_ERROR_OVERFLOW beyond 2^63 - 1 bytes of `bits` bits each. A size of 0
// anywhere makes the product 0, but sizes are never negative here.
qg_status tensor_elements(const int64_t *shape, int64_t rank, int64_t bits, int64_t *out);

// Gives an entry its type, offset, m and k from a checked shape; rank 0 and empty tensors become
// skipped ones. Of TENSOR_I64 the caller says why it is skipped, and dtype stays the file's word.
qg_status tensor_place(tensor_entry *entry, tensor_type type, const int64_t *shape, int64_t rank,
                       int64_t offset);

// Reads `size` bytes at `offset`; QG_ERROR_IO with the file's name, also when the file has shrunk.
qg_status tensor_read_bytes(const qg_tensor_file *file, int64_t offset, void *out, int64_t size);

// Little-endian stored numbers to binary32: fp64 is rounded once (to nearest even, NaN becomes the
// canonical one with its sign), fp16 and bf16 widen exactly. raw and x may not overlap.
void tensor_widen(tensor_type type, const uint8_t *raw, int64_t count, float *x);

// Little-endian stored numbers to elements first .. first + count - 1 of x: int64_t of TENSOR_I64,
// else binary32.
void tensor_take(tensor_type type, const uint8_t *raw, int64_t first, int64_t count, void *x);

// One reader per kind of file: fills the list of an opened file.
qg_status tensor_list_safetensors(qg_tensor_file *file);
qg_status tensor_list_npy(qg_tensor_file *file);
qg_status tensor_list_raw(qg_tensor_file *file);
qg_status tensor_list_hdf5(qg_tensor_file *file);

// Reading from HDF5; the others share one way.
qg_status tensor_read_hdf5(qg_tensor_file *file, const tensor_entry *entry, void *x);

#endif
