// A library in cuBLASLt's place: it multiplies what the descriptors say, on the CPU, refuses what
// the documentation of the real one says, and fails on demand. Numbers are written out here once
// more, apart from the module's, so that neither hides an error of the other.
//
// FAKE_CUBLASLT in the environment, or fake_cublaslt_fail(), names what goes wrong:
//   no_result      the heuristic succeeds with 0 results
//   not_supported  the heuristic returns 15
//   splitk2        only algorithms with 2 parts of K
//   splitk_first   the first of three algorithms has 2 parts
//   workspace      only algorithms with more workspace than there is
//   state          the first result has a failed state
//   mute           algorithms do not tell their attributes
//   heuristic_fails, matmul_fails, create_fails (the library itself), old_version
//   object:N       the N-th creation or attribute from now on fails with 3
#ifndef FAKE_CUBLASLT_H
#define FAKE_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

// What the last call of cublasLtMatmul and its heuristic were told.
typedef struct fake_cublaslt_call {
    int matmuls, heuristics;
    int requested; // results
    int8_t fast_accum;
    int sets_fast_accum;
    uint32_t reduction_mask, alignment[4];
    uint64_t workspace_preference, workspace_bytes;
    void *workspace, *stream;
    int a_type, b_type, c_type, d_type;
    float alpha, beta;
    const void *c;
    uint64_t algorithm; // which of the results
    char refusal[160];  // why the last call was refused
} fake_cublaslt_call;

typedef const fake_cublaslt_call *(*fake_cublaslt_last_function)(void);
typedef int (*fake_cublaslt_live_function)(void);    // descriptors and layouts alive
typedef int (*fake_cublaslt_handles_function)(void); // handles alive
typedef void (*fake_cublaslt_fail_function)(const char *what);

#endif
