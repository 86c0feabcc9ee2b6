// Test block matching and visibility.
#include <algorithm>
#include <memory>
#include <vector>

#include "stereo/block_matching.hpp"
#include "stereo/visibility.hpp"
#include "tests/check.hpp"
#include "tests/failing_memory.hpp"

namespace bilateral {

namespace {

// Finds the known disparity of shifted random dots, for any window and shape.
void test_block_matching(Random& random) {
  const std::size_t shapes[][2] = {{1, 1}, {1, 60}, {3, 2}, {60, 60}, {110, 45}};
  for (const auto& [height, width] : shapes)
    for (const std::size_t radius : {std::size_t{0}, std::size_t{3}, max_match_radius}) {
      const std::size_t shift = std::min<std::size_t>(7, width - 1);
      std::vector<float> left(height * width), right(left.size());
      for (std::size_t i = 0; i < left.size(); ++i)
        left[i] = right[i] = static_cast<float>(below(random, 256));
      for (std::size_t i = 0; i < left.size(); ++i)
        if (i % width >= shift) left[i] = right[i - shift];
      std::vector<float> maps[4];
      for (auto& map : maps) map.resize(left.size());
      const std::size_t disparities = std::min<std::size_t>(12, width);
      match_blocks({left.data(), right.data(), height, width, disparities, radius, 0.1f},
                   {maps[0].data(), maps[1].data(), maps[2].data(), maps[3].data()}, 3);
      bool ordered = true, right_place = true;
      for (std::size_t i = 0; i < left.size(); ++i) {
        ordered = ordered && maps[0][i] <= maps[2][i] && maps[2][i] <= maps[1][i];
        ordered = ordered && maps[0][i] >= 0 && maps[1][i] < static_cast<float>(disparities);
        const std::size_t x = i % width, edge = shift + 4 + radius;
        if (radius > 0 && x >= edge && x + 4 + radius < width)  // single pixels may tie
          right_place = right_place && maps[2][i] == static_cast<float>(shift);
      }
      CHECK(ordered);
      CHECK(right_place);
    }
}

// A near pixel hides the pixels that fall on its column in the right view, for any number of
// threads.
void test_visible() {
  const std::size_t height = 300, width = 300;
  std::vector<float> surface(height * width, 2.0f);
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 40; x < 50; ++x) surface[y * width + x] = 22.0f;
  const auto trusted = std::make_unique<bool[]>(height * width);
  const auto out = std::make_unique<bool[]>(height * width);
  std::fill_n(trusted.get(), height * width, true);
  for (const int threads : {1, 3}) {
    visible(surface.data(), surface.data(), trusted.get(), height, width, 1.0f, out.get(), threads);
    bool right = true;
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) {
        const bool hidden = x < 2 || (x >= 20 && x <= 30);
        right = right && out[y * width + x] == !hidden;
      }
    CHECK(right);
  }
}

void test_without_memory(Random& random) {
  const std::size_t height = 200, width = 365, size = height * width;
  std::vector<float> left(size), right(size);
  for (float& value : left) value = static_cast<float>(below(random, 256));
  std::copy(left.begin() + 3, left.end(), right.begin());
  const auto trusted = std::make_unique<bool[]>(size);
  std::fill_n(trusted.get(), size, true);
  check_without_memory(24, [&] {
    std::vector<float> maps(4 * size);
    float* map = maps.data();
    match_blocks({left.data(), right.data(), height, width, 30, 2, 0.1f},
                 {map, map + size, map + 2 * size, map + 3 * size}, 4);
    const auto seen = std::make_unique<bool[]>(size);
    visible(map, map + size, trusted.get(), height, width, 1, seen.get(), 4);
    std::copy_n(seen.get(), size, map + size);
    return maps;
  });
}

}  // namespace

void test_stereo(Random& random) {
  test_block_matching(random);
  test_visible();
  test_without_memory(random);
}

}  // namespace bilateral
