// A few thousand mutated files of every kind; test_tensor_soak.c runs more.
#include "tensor_fuzz.h"

#include <run_suite.h>

START_TEST(safetensors) { fuzz(&fuzz_safetensors, 1, 8000); }
END_TEST

START_TEST(npy) { fuzz(&fuzz_npy, 2, 8000); }
END_TEST

START_TEST(sidecar) { fuzz(&fuzz_sidecar, 3, 4000); }
END_TEST

START_TEST(hdf5) { fuzz(&fuzz_hdf5, 4, 1500); }
END_TEST

int main(void) {
    const TTest *const tests[] = {safetensors, npy, sidecar, hdf5};
    scratch_open();
    int failed = RUN_SUITE("tensor_fuzz", tests);
    scratch_close();
    return failed;
}
