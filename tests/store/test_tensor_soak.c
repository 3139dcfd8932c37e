// Many mutated files of every kind. QG_SOAK_ROUNDS sets how many, QG_SOAK_SEED where they start.
// ctest-labels: soak
// ctest-timeout: 3600
#include "tensor_fuzz.h"

#include <run_suite.h>

static int64_t from_environment(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

static void soak(const fuzz_target *target) {
    fuzz(target, (uint64_t)from_environment("QG_SOAK_SEED", 1000000),
         from_environment("QG_SOAK_ROUNDS", 200000));
}

START_TEST(safetensors) { soak(&fuzz_safetensors); }
END_TEST

START_TEST(npy) { soak(&fuzz_npy); }
END_TEST

START_TEST(sidecar) { soak(&fuzz_sidecar); }
END_TEST

START_TEST(hdf5) { soak(&fuzz_hdf5); }
END_TEST

int main(void) {
    const TTest *const tests[] = {safetensors, npy, sidecar, hdf5};
    scratch_open();
    int failed = RUN_SUITE("tensor_soak", tests);
    scratch_close();
    return failed;
}
