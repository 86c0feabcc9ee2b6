// Function multiversioning: compile a hot loop for two or three x86 instruction sets and choose the
// version for the processor at run time, so that one binary is fast on old and new machines.
//
// GCC's target_clones would do the same, but Clang's cannot test for a set of features, and macOS
// has no indirect functions.
#pragma once

#include "base/avx512.hpp"

// Sanitizers check every memory access. Inlined everywhere, the checks of a deep chain of small
// functions take minutes and gigabytes to compile, so under a sanitizer only the versions of a hot
// loop inline all they call.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BILATERAL_INLINE inline
#define BILATERAL_INLINE_ALL __attribute__((flatten))
#else
#define BILATERAL_INLINE inline __attribute__((always_inline))
#define BILATERAL_INLINE_ALL
#endif

namespace bilateral {

namespace detail {

#if defined(__x86_64__)
// Whether to run the version for AVX2. Tests set it to false to run the version for the baseline.
inline bool use_avx2 = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
}();
#endif

template <auto body>
struct Multiversion;

template <class Result, class... Parameters, Result (*body)(Parameters...)>
struct Multiversion<body> {
#if defined(__x86_64__)
  static Result run(Parameters... parameters) {
    return use_avx2 ? run_avx2(parameters...) : run_baseline(parameters...);
  }
  BILATERAL_INLINE_ALL __attribute__((target("avx2,bmi,bmi2,fma"))) static Result run_avx2(
      Parameters... parameters) {
    return body(parameters...);
  }
  static Result run_widest(Parameters... parameters) {
    return use_avx512 ? run_avx512(parameters...) : run(parameters...);
  }
  BILATERAL_INLINE_ALL BILATERAL_AVX512_LOOPS static Result run_avx512(Parameters... parameters) {
    return body(parameters...);
  }
  // Not inlined, to leave the caller as small as a call of run_avx2 does.
  BILATERAL_INLINE_ALL __attribute__((noinline)) static Result run_baseline(
      Parameters... parameters) {
    return body(parameters...);
  }
#else
  static Result run(Parameters... parameters) { return body(parameters...); }
  static Result run_widest(Parameters... parameters) { return body(parameters...); }
#endif
};

}  // namespace detail

// Calls `body`, a BILATERAL_INLINE function, in the version for the processor. Every function in
// the body that takes or returns SIMD vectors must be BILATERAL_INLINE, too: its versions would
// pass them in different registers.
template <auto body>
inline constexpr auto multiversion = detail::Multiversion<body>::run;

// The same with a third version, for AVX-512. It pays for plain loops with much arithmetic. GCC
// splits comparisons of vectors of 64 bytes, but not those of its own loops.
template <auto body>
inline constexpr auto widest_version = detail::Multiversion<body>::run_widest;

}  // namespace bilateral
