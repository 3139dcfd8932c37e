// Every variant of the CPU runtime reproduces the emulator's digests in tests/emulator/digests.txt.
#include <cpu_check.h>
#include <digest_cases.h>
#include <require.h>
#include <run_suite.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 192 };

static FILE *file;
static const char *isa;

static void check(const char *name, const qg_recipe *recipe) {
    char want[LINE], got[LINE];
    snprintf(got, sizeof got, "%s %016" PRIx64 "\n", name,
             digest_case_value(qg_backend_find("cpu"), recipe));
    REQUIRE(fgets(want, sizeof want, file) != NULL, "digests.txt ends before %s", got);
    REQUIRE(strcmp(got, want) == 0, "%s: got %s, not %s", isa, got, want);
}

START_TEST(variants_give_the_digests_on_record) {
    char path[4096];
    digest_cases_path(path, sizeof path);
    for (size_t i = 0; (isa = cpu_check_isa(i)) != NULL; i++) {
        file = fopen(path, "r");
        ck_assert_msg(file != NULL, "cannot open %s", path);
        digest_cases_visit(check);
        ck_assert_int_eq(fclose(file), 0);
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {variants_give_the_digests_on_record};
    return RUN_SUITE("cpu_digests", tests);
}
