// AVX-512 intrinsics on x86-64, and BILATERAL_AVX512 for the functions that use them.
#pragma once

#if defined(__x86_64__)

// GCC takes the undefined vectors of its own header for a mistake.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#define BILATERAL_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,fma")))
// The same for plain loops, in vectors as wide as the registers.
#if defined(__clang__)
#define BILATERAL_AVX512_LOOPS BILATERAL_AVX512 __attribute__((min_vector_width(512)))
#else
#define BILATERAL_AVX512_LOOPS                                                      \
  __attribute__((                                                                   \
      target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,fma,prefer-vector-width=" \
             "512")))
#endif

namespace bilateral::detail {

// Whether to call BILATERAL_AVX512 functions. Tests set it to false to do without them.
inline bool use_avx512 = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("fma");
}();

}  // namespace bilateral::detail

#endif
