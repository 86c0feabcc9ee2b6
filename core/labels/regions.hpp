// Regions: the connected components of a map. Two of the mask's pixels are connected if they share
// a side and have similar values.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bilateral {

namespace detail {

// Disjoint sets of pixels, also called union-find. The root of a set is its first pixel.
class DisjointSets {
 public:
  explicit DisjointSets(std::size_t size) : parent_(size) {
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

// Writes the region of each pixel: 0 outside the mask, else numbers from 1, in the order of the
// regions' first pixels. Neighbours are connected if their values differ by at most `tolerance`.
// Returns the number of regions.
inline std::int32_t find_regions(const float* values, const bool* mask, std::size_t height,
                                 std::size_t width, float tolerance, std::int32_t* labels) {
  const std::size_t size = height * width;
  detail::DisjointSets sets(size);
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t p = y * width + x;
      if (!mask[p]) continue;
      const auto join_if_similar = [&](std::size_t q) {
        if (mask[q] && std::abs(values[p] - values[q]) <= tolerance)
          sets.join(static_cast<std::int32_t>(p), static_cast<std::int32_t>(q));
      };
      if (x > 0) join_if_similar(p - 1);
      if (y > 0) join_if_similar(p - width);
    }
  std::int32_t count = 0;
  for (std::size_t p = 0; p < size; ++p) {
    if (!mask[p]) {
      labels[p] = 0;
      continue;
    }
    const std::int32_t root = sets.root(static_cast<std::int32_t>(p));
    labels[p] =
        root == static_cast<std::int32_t>(p) ? ++count : labels[static_cast<std::size_t>(root)];
  }
  return count;
}

}  // namespace bilateral
