// The list of narrow formats. See format_cases.h.
#include <format_cases.h>
#include <qg_format_name.h>

#include <stdio.h>

static const char *const biased[] = {"f8e4m3b-5", "f8e4m3b-112", "f8e4m3b147",  "f8e5m2b20",
                                     "f8e7m0b0",  "f8e7m0b150",  "f8e1m6b-126", "f8e1m6b144",
                                     "f4e3m0b-7", "f2e1m0b-126", "f2e1m0b150"};

// The minifloat of the i-th split of at most 8 bits; the bias is written out, so that names which
// hardware formats own mean the minifloat.
static int split(size_t i, char *name) {
    for (int bits = 2; bits <= 8; bits++)
        for (int ebits = 1; ebits < bits; ebits++)
            if (i-- == 0) {
                int bias = (1 << (ebits - 1)) - 1;
                snprintf(name, QG_NAME_SIZE, "f%de%dm%db%d", bits, ebits, bits - 1 - ebits, bias);
                return 1;
            }
    return 0;
}

const char *narrow_format(size_t i) {
    static _Thread_local char name[QG_NAME_SIZE];
    for (size_t row = 0; qg_format_listed(row); row++) {
        qg_format_info info = qg_format_describe((qg_format)row);
        if (info.bits <= 8 && i-- == 0)
            return qg_format_listed(row);
    }
    if (split(i, name))
        return name;
    i -= 28;
    return i < sizeof biased / sizeof biased[0] ? biased[i] : NULL;
}
