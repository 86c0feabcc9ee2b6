// The regions of a map: pixels of a mask joined to those beside, above and below that have about
// the same value.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bilateral {

namespace detail {

// Sets of pixels, each named by its first.
class Forest {
 public:
  explicit Forest(std::size_t size) : parent_(size) {
    for (std::size_t i = 0; i < size; ++i) parent_[i] = static_cast<std::int32_t>(i);
  }

  std::int32_t root(std::int32_t i) {
    while (parent(i) != i) i = parent(i) = parent(parent(i));
    return i;
  }

  void join(std::int32_t a, std::int32_t b) {
    a = root(a);
    b = root(b);
    if (a < b)
      parent(b) = a;
    else
      parent(a) = b;
  }

 private:
  std::int32_t& parent(std::int32_t i) { return parent_[static_cast<std::size_t>(i)]; }

  std::vector<std::int32_t> parent_;
};

}  // namespace detail

// Labels from 1 in the order of the regions' first pixels, 0 outside the mask. Neighbours belong
// together if their values differ by at most `tolerance`. Returns the number of regions.
inline std::int32_t find_regions(const float* values, const bool* mask, std::size_t height,
                                 std::size_t width, float tolerance, std::int32_t* labels) {
  const std::size_t size = height * width;
  detail::Forest forest(size);
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t p = y * width + x;
      if (!mask[p]) continue;
      const auto try_to_join = [&](std::size_t q) {
        if (mask[q] && std::abs(values[p] - values[q]) <= tolerance)
          forest.join(static_cast<std::int32_t>(p), static_cast<std::int32_t>(q));
      };
      if (x > 0) try_to_join(p - 1);
      if (y > 0) try_to_join(p - width);
    }
  std::int32_t count = 0;
  for (std::size_t p = 0; p < size; ++p) {
    if (!mask[p]) {
      labels[p] = 0;
      continue;
    }
    const std::int32_t root = forest.root(static_cast<std::int32_t>(p));
    labels[p] =
        root == static_cast<std::int32_t>(p) ? ++count : labels[static_cast<std::size_t>(root)];
  }
  return count;
}

}  // namespace bilateral
