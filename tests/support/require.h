// An assertion for loops: Check's own write a message each time, also when they hold.
#ifndef REQUIRE_H
#define REQUIRE_H

#include <check.h>

#define REQUIRE(condition, ...)                                                                    \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

#endif
