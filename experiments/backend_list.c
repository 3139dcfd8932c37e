// The backends by name. See qg_backend_list.h.
#include <qg_backend_list.h>

#include <string.h>

typedef struct backend {
    const char *name;
    const char *unavailable; // NULL: it answers
} backend;

static const backend BACKENDS[] = {
    {"emulator", NULL                              },
    {"cpu",      "this version has no cpu backend" },
    {"cuda",     "this version has no cuda backend"},
};

enum { BACKEND_COUNT = sizeof BACKENDS / sizeof BACKENDS[0] };

const char *qg_backend_named(size_t i) { return i < BACKEND_COUNT ? BACKENDS[i].name : NULL; }

const char *qg_backend_listed(size_t i) {
    for (size_t b = 0; b < BACKEND_COUNT; b++)
        if (!BACKENDS[b].unavailable && i-- == 0)
            return BACKENDS[b].name;
    return NULL;
}

const char *qg_backend_unavailable(const char *name) {
    for (size_t b = 0; b < BACKEND_COUNT; b++)
        if (strcmp(BACKENDS[b].name, name) == 0)
            return BACKENDS[b].unavailable;
    return "no such backend";
}
