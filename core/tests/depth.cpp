// Test the kernels of depth maps from cameras.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "depth/coarse.hpp"
#include "depth/doubt.hpp"
#include "depth/grow.hpp"
#include "depth/smooth.hpp"
#include "depth/surface_sizes.hpp"
#include "tests/check.hpp"

namespace bilateral {

namespace {

constexpr Jump jump{0.01f, 0.015f, 0.0f};

// A wall at 3 with a box at 1 before it. Between them is a column of mixed depths.
std::vector<float> wall_and_box(std::size_t height, std::size_t width) {
  std::vector<float> z(height * width, 3.0f);
  for (std::size_t y = 20; y < height - 20; ++y) {
    for (std::size_t x = 30; x < 60; ++x) z[y * width + x] = 1.0f;
    z[y * width + 60] = 2.0f;
  }
  return z;
}

void test_doubt_and_sizes() {
  const std::size_t height = 100, width = 120, size = height * width;
  const std::vector<float> z = wall_and_box(height, width);
  const auto doubt = std::make_unique<bool[]>(size);
  std::vector<std::int32_t> sizes(size);
  for (const int threads : {1, 3}) {
    find_doubt(z.data(), height, width, jump, doubt.get(), threads);
    surface_sizes(z.data(), doubt.get(), height, width, jump, sizes.data());
    bool right = true;
    for (std::size_t p = 0; p < size; ++p) {
      const bool flying = z[p] == 2.0f;
      const int expected = flying ? 0 : z[p] == 1.0f ? 60 * 30 : 100 * 120 - 60 * 31;
      right = right && doubt[p] == flying && sizes[p] == expected;
    }
    CHECK(right);
  }
}

// A hole beside the box takes the depth of the wall if the filling is not clearly the box's.
void test_growth() {
  const std::size_t height = 100, width = 120, size = height * width;
  std::vector<float> x = wall_and_box(height, width);
  const std::vector<float> measured(size, std::numeric_limits<float>::quiet_NaN());
  const auto kept = std::make_unique<bool[]>(size);
  for (std::size_t p = 0; p < size; ++p) {
    const std::size_t column = p % width;
    kept[p] = column < 60 || column >= 80;
    if (!kept[p]) x[p] = 1.2f + 0.09f * static_cast<float>(column - 60);
  }
  const std::vector<float> before = x;
  grow_surfaces(kept.get(), measured.data(), height, width, jump, true, {12.0f, 0.1f, 32.0f},
                x.data(), 2);
  bool same = true, snapped = true;
  for (std::size_t p = 0; p < size; ++p) {
    if (kept[p]) same = same && x[p] == before[p];
    if (p % width > 64) snapped = snapped && std::abs(x[p] - 3.0f) < 0.3f;
  }
  CHECK(same);
  CHECK(snapped);
}

void test_smoothing(Random& random) {
  const std::size_t height = 64, width = 64, size = height * width;
  std::vector<float> x(size);
  for (float& value : x) value = 2.0f + 0.01f * static_cast<float>(below(random, 3));
  const auto kept = std::make_unique<bool[]>(size);
  std::fill_n(kept.get(), size, true);
  const std::vector<float> before = x;
  smooth_depth(kept.get(), height, width, {0.01f, 0.0f, 0.0f}, 3.0f, 0.5f, x.data(), 2);
  float most = 0;
  for (std::size_t p = 0; p < size; ++p) most = std::max(most, std::abs(x[p] - before[p]));
  CHECK(most > 0.001f && most < 0.00501f);
}

void test_blocks() {
  const std::size_t height = 9, width = 10;
  std::vector<std::uint8_t> photo(height * width, 7);
  std::vector<std::uint8_t> small(3 * 3);
  shrink_photo(photo.data(), height, width, 1, 4, small.data(), 2);
  CHECK(std::all_of(small.begin(), small.end(), [](int value) { return value == 7; }));
  std::vector<float> z(height * width, 5.0f), blocks(9), out(height * width, 0.0f);
  const auto data = std::make_unique<bool[]>(height * width);
  data[0] = true;
  shrink_depth(z.data(), data.get(), height, width, 4, blocks.data(), 2);
  CHECK(blocks[0] == 5.0f && blocks[1] != blocks[1]);
  std::fill(blocks.begin(), blocks.end(), 2.0f);
  expand_depth(blocks.data(), photo.data(), small.data(), data.get(), height, width, 1, 4, 60.0f,
               out.data(), 2);
  CHECK(out[0] == 0.0f && out[1] == 2.0f && out.back() == 2.0f);
}

}  // namespace

void test_depth(Random& random) {
  test_doubt_and_sizes();
  test_growth();
  test_smoothing(random);
  test_blocks();
}

}  // namespace bilateral
