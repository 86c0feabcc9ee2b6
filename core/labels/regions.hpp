// Regions: the connected components of a map. Two of the mask's pixels are connected if they share
// a side and have similar values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace bilateral {

namespace detail {

// Disjoint sets, also called union-find. The root of a set is its first member.
class DisjointSets {
 public:
  explicit DisjointSets(std::size_t size = 0) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  // Adds a set with one member.
  void append() { parent_.push_back(static_cast<std::int32_t>(parent_.size())); }

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
//
// Joins runs, the connected pixels of a row, instead of pixels.
inline std::int32_t find_regions(const float* values, const bool* mask, std::size_t height,
                                 std::size_t width, float tolerance, std::int32_t* labels) {
  struct Run {
    std::size_t begin, end;  // columns
  };
  std::vector<Run> runs;
  std::vector<std::size_t> first_of_row(height + 1, 0);
  detail::DisjointSets sets;
  for (std::size_t y = 0; y < height; ++y) {
    const float* row = values + y * width;
    const bool* in = mask + y * width;
    const auto similar_above = [&](std::size_t begin, std::size_t end) {
      for (std::size_t x = begin; x < end; ++x)
        if (std::abs(row[x] - (row - width)[x]) <= tolerance) return true;
      return false;
    };
    std::size_t above = y > 0 ? first_of_row[y - 1] : 0;
    const std::size_t above_end = first_of_row[y];
    for (std::size_t x = 0; x < width;) {
      if (!in[x]) {
        ++x;
        continue;
      }
      const std::size_t begin = x++;
      while (x < width && in[x] && std::abs(row[x] - row[x - 1]) <= tolerance) ++x;
      const auto run = static_cast<std::int32_t>(runs.size());
      runs.push_back({begin, x});
      sets.append();
      while (above < above_end && runs[above].end <= begin) ++above;
      for (std::size_t i = above; i < above_end && runs[i].begin < x; ++i)
        if (similar_above(std::max(begin, runs[i].begin), std::min(x, runs[i].end)))
          sets.join(static_cast<std::int32_t>(i), run);
    }
    first_of_row[y + 1] = runs.size();
  }
  std::int32_t count = 0;
  std::vector<std::int32_t> label_of_run(runs.size());
  for (std::size_t y = 0; y < height; ++y) {
    std::int32_t* row = labels + y * width;
    std::size_t x = 0;
    for (std::size_t i = first_of_row[y]; i < first_of_row[y + 1]; ++i) {
      const auto root = static_cast<std::size_t>(sets.root(static_cast<std::int32_t>(i)));
      label_of_run[i] = root == i ? ++count : label_of_run[root];
      std::fill(row + x, row + runs[i].begin, 0);
      std::fill(row + runs[i].begin, row + runs[i].end, label_of_run[i]);
      x = runs[i].end;
    }
    std::fill(row + x, row + width, 0);
  }
  return count;
}

}  // namespace bilateral
