// The cases of tests/emulator/digests.txt, and the digest of one: of codes, scales, tensor scale
// and dequantized values on fixed data, equal for every backend, variant, compiler and machine.
#ifndef DIGEST_CASES_H
#define DIGEST_CASES_H

#include <qg_backend.h>

// Calls `each` for every recipe (and its stochastic form), then for every rule and layout of two
// element formats, in the order of the file.
void digest_cases_visit(void (*each)(const char *name, const qg_recipe *recipe));

uint64_t digest_case_value(const qg_backend *backend, const qg_recipe *recipe);

// The path of the file: $QG_SOURCE_DIR/tests/emulator/digests.txt.
void digest_cases_path(char *path, size_t size);

#endif
