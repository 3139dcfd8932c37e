// Many mutated texts of graphs. QG_SOAK_ROUNDS sets how many, QG_SOAK_SEED where they start.
// ctest-labels: soak
// ctest-timeout: 3600
#include "graph_text_fuzz.h"

#include <run_suite.h>

static int64_t from_environment(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

START_TEST(mutated_texts) {
    fuzz_graphs((uint64_t)from_environment("QG_SOAK_SEED", 1000000),
                from_environment("QG_SOAK_ROUNDS", 5000000));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {mutated_texts};
    return RUN_SUITE("graph_text_soak", tests);
}
