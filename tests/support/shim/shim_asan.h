// SHIM_ASAN: whether AddressSanitizer is there, and its interface. Internal to the shim.
#ifndef SHIM_ASAN_H
#define SHIM_ASAN_H

#if defined(__SANITIZE_ADDRESS__)
#define SHIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHIM_ASAN 1
#endif
#endif
#ifdef SHIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#endif
