// One binary, fast on old and new x86: the few hot integer loops are compiled for several
// instruction sets and chosen when the library is loaded.
#pragma once

#define BILATERAL_INLINE inline __attribute__((always_inline))

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define BILATERAL_MULTIVERSION __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define BILATERAL_MULTIVERSION
#endif
