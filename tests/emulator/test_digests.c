// The bytes of every recipe and of every rule and layout of two element formats on fixed data, as
// digests in digests.txt: equal with every compiler, optimisation level and machine.
// QG_UPDATE_DIGESTS=1 writes the file anew; review its diff.
#include <digest_cases.h>
#include <require.h>
#include <run_suite.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REWRITE "(after a new row: QG_UPDATE_DIGESTS=1 rewrites the file; review its diff)"

enum { LINE = 192 };

static FILE *file;
static int updates;

static void check(const char *name, const qg_recipe *recipe) {
    char want[LINE], got[LINE];
    snprintf(got, sizeof got, "%s %016" PRIx64 "\n", name,
             digest_case_value(qg_backend_find("emulator"), recipe));
    if (updates) {
        fputs(got, file);
        return;
    }
    REQUIRE(fgets(want, sizeof want, file) != NULL, "digests.txt ends before %s" REWRITE, got);
    REQUIRE(strcmp(got, want) == 0, "got %s, not %s" REWRITE, got, want);
}

START_TEST(bytes_are_those_on_record) {
    char path[4096], rest[LINE];
    digest_cases_path(path, sizeof path);
    updates = getenv("QG_UPDATE_DIGESTS") != NULL;
    file = fopen(path, updates ? "w" : "r");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    digest_cases_visit(check);
    if (!updates)
        ck_assert_msg(fgets(rest, sizeof rest, file) == NULL, "digests.txt has more: %s", rest);
    ck_assert_int_eq(fclose(file), 0);
}
END_TEST

int main(void) {
    const TTest *tests[] = {bytes_are_those_on_record};
    return RUN_SUITE("digests", tests);
}
