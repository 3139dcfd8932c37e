// What a worker keeps between cases: buffers that only grow, and the last input of each operand.
//
// Ops ask it for room and inputs and release nothing themselves. One per process and thread.
#ifndef QG_WORKSPACE_H
#define QG_WORKSPACE_H

#include <qg_case.h>
#include <qg_digest.h>
#include <qg_source.h>

typedef struct qg_workspace qg_workspace;

// threads: what ops may use at most; 0: all.
qg_status qg_workspace_create(int threads, qg_workspace **out);
void qg_workspace_free(qg_workspace *workspace); // NULL is fine

// The threads worth using for a loop over (elements): 1 for small ones.
int qg_workspace_threads(const qg_workspace *workspace, int64_t elements);

// Named buffers; content is kept until the same buffer is asked for again.
typedef enum qg_buffer {
    QG_BUFFER_INPUT_A, // these two belong to qg_workspace_input
    QG_BUFFER_INPUT_B,
    QG_BUFFER_RAW_A, // these two to qg_workspace_raw
    QG_BUFFER_RAW_B,
    QG_BUFFER_CODES,
    QG_BUFFER_SCALES,
    QG_BUFFER_OUTPUT,
    QG_BUFFER_MEASURED,  // what is known of these three beside their bytes
    QG_BUFFER_CPU_CODES, // the same by another backend than the emulator
    QG_BUFFER_CPU_SCALES,
    QG_BUFFER_CPU_OUTPUT,
    QG_BUFFER_OPERAND_A, // quantized operands of a product
    QG_BUFFER_OPERAND_B,
    QG_BUFFER_VALUES_A, // the same dequantized
    QG_BUFFER_VALUES_B,
    QG_BUFFER_BIAS,
    QG_BUFFER_SOURCE_PRODUCT, // reference products and their magnitudes
    QG_BUFFER_QUANTIZED_PRODUCT,
    QG_BUFFER_FLOATS, // output and reference of a product as binary32
    QG_BUFFER_COPY,   // what memcpy is timed with, and its times
    QG_BUFFER_COPY_TIMES,
    QG_BUFFER_TIMES_COVERED, // how often kernels cover groups and elements, and what that adds up to
    QG_BUFFER_COVERS,
    QG_BUFFER_MODEL_NODES, // what a run of a model gave at each node
    QG_BUFFER_COUNT
} qg_buffer;

// Room for count elements of `size` bytes, content undefined. QG_ERROR_OVERFLOW, QG_ERROR_MEMORY.
qg_status qg_workspace_room(qg_workspace *workspace, qg_buffer buffer, int64_t count, int64_t size,
                            void **out);

// What is in a buffer, as a text that says everything its content depends on: cases that need the
// same find it again. An op labels a buffer when it is filled; asking for room takes the label
// away, whoever asks. Longer texts than QG_LABEL_SIZE - 1 are not kept: nothing is found then.
enum { QG_LABEL_SIZE = 1024 };
void qg_workspace_label(qg_workspace *workspace, qg_buffer buffer, const char *label);
// The buffer if it has that label, else NULL.
void *qg_workspace_find(qg_workspace *workspace, qg_buffer buffer, const char *label);

// Objects that an op makes and finds again by a label, as it does buffers.
typedef enum qg_kept {
    QG_KEPT_MODEL_REFERENCE, // a model that has run in fp32
    QG_KEPT_MODEL_QUANTIZED, // its graph with quantized weights
    QG_KEPT_COUNT
} qg_kept;

// Takes an object over, after releasing what was there. NULL: only the latter.
void qg_workspace_keep(qg_workspace *workspace, qg_kept kept, void *object,
                       void (*release)(void *object), const char *label);
// The object if it has that label, else NULL.
void *qg_workspace_kept(const qg_workspace *workspace, qg_kept kept, const char *label);

// Gives the memory of all buffers and objects back, but for QG_BUFFER_MODEL_NODES: it is small, and
// a model would run again for each of its nodes.
void qg_workspace_shrink(qg_workspace *workspace);

// An empty digest, reused.
qg_digest *qg_workspace_digest(qg_workspace *workspace);

typedef struct qg_input {
    const float *x;  // (m, k), valid until another input of the same operand is asked for
    uint64_t digest; // XXH3-64 of x as binary32, little endian
    float amax;      // largest |x|, NaN dropped
} qg_input;

// The input of operand 0 (a) or 1 (b) of a case, (rows, k) with rows = m or n: generated, or the
// last one if it is the same.
qg_status qg_workspace_input(qg_workspace *workspace, const qg_case *c, int operand, qg_input *out);

// The same in its input type: x itself of fp32, 16-bit words of bf16 and fp16. Valid as long as x.
qg_status qg_workspace_raw(qg_workspace *workspace, const qg_case *c, int operand,
                           const void **out);

enum { QG_HISTORY_LENGTH = 16 };

// The amax history of rule `delayed` before this case: the amaxes of the 16 seeds before (modulo
// 2^64, oldest first) of a law; of a real tensor, which no seed changes, its own amax each time.
// Overwrites QG_BUFFER_OUTPUT.
qg_status qg_workspace_history(qg_workspace *workspace, const qg_case *c, int operand,
                               float history[QG_HISTORY_LENGTH]);

// What quantizing operand 0 or 1 of a case takes beside its input. Overwrites QG_BUFFER_OUTPUT, as
// above, at the first use with an input; `out` must stay where it is.
typedef struct qg_quantizing {
    qg_quantize_options options;
    float history[QG_HISTORY_LENGTH];
} qg_quantizing;
qg_status qg_workspace_quantizing(qg_workspace *workspace, const qg_case *c, int operand,
                                  qg_quantizing *out);

// Codes and scales of operand 0 or 1 by the CPU runtime, which is many times faster than the
// emulator and gives its bytes: operation `error` of backend cpu is where that is held, with every
// recipe, and the runtime's own tests. For ops to which a quantized tensor is only an operand.
// impl: the variant that ran, or NULL.
qg_status qg_workspace_quantize(qg_workspace *workspace, const qg_case *c, int operand,
                                uint8_t *codes, uint8_t *scales, float *tensor_scale,
                                const char **impl);

#endif
