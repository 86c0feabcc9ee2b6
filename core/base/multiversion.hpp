// Function multiversioning: compile a hot loop for several x86 instruction sets. The loader picks
// the version for its processor, so that one binary is fast on old and new machines.
#pragma once

#define BILATERAL_INLINE inline __attribute__((always_inline))

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define BILATERAL_MULTIVERSION __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define BILATERAL_MULTIVERSION
#endif
