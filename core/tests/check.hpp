// CHECK, and the tests of each folder of the core.
#pragma once

#include <cstddef>
#include <cstdio>
#include <random>

namespace bilateral {

inline int failures = 0;
inline int checks = 0;

#define CHECK(condition)                                                  \
  do {                                                                    \
    ++checks;                                                             \
    if (!(condition)) {                                                   \
      ++failures;                                                         \
      std::printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                     \
  } while (false)

using Random = std::mt19937;

// A random number in [0, end).
inline std::size_t below(Random& random, std::size_t end) {
  return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
}

void test_grid(Random& random);
void test_blocks(Random& random);
void test_neighbours(Random& random);
void test_multigrid(Random& random);
void test_solve(Random& random);
void test_planes(Random& random);
void test_filters(Random& random);
void test_labels(Random& random);
void test_stereo(Random& random);
void test_defocus(Random& random);
void test_depth(Random& random);
void test_video(Random& random);
void test_points(Random& random);

}  // namespace bilateral
