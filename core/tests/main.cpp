// Test the core against brute force on random input, under the sanitizers too. Python tests compare
// the algorithms with their oracles.
//
// Arguments name the folders to test; without any, all are tested. "baseline" among the arguments
// tests the versions of the hot loops for processors without AVX2, "avx2" those without AVX-512.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/avx512.hpp"
#include "base/multiversion.hpp"
#include "tests/check.hpp"

int main(int argc, char** argv) {
  using namespace bilateral;
  const std::vector<std::pair<std::string, void (*)(Random&)>> folders = {
      {"grid", test_grid},     {"multigrid", test_multigrid}, {"solve", test_solve},
      {"planes", test_planes}, {"filters", test_filters},     {"labels", test_labels},
      {"stereo", test_stereo}, {"defocus", test_defocus},     {"depth", test_depth},
      {"video", test_video},   {"points", test_points}};
  std::vector<std::string> names(argv + 1, argv + argc);
  [[maybe_unused]] const bool baseline = std::erase(names, "baseline") > 0;
  [[maybe_unused]] const bool avx2 = std::erase(names, "avx2") > 0;
#if defined(__x86_64__)
  if (baseline) detail::use_avx2 = false;
  if (baseline || avx2) detail::use_avx512 = false;
#endif
  std::size_t tested = 0;
  for (const auto& [name, test] : folders) {
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
    Random random(1);
    test(random);
    ++tested;
  }
  if (!names.empty() && tested != names.size()) {
    std::printf("no such folder\n");
    return EXIT_FAILURE;
  }
  std::printf("%d passed, %d failed\n", checks - failures, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
