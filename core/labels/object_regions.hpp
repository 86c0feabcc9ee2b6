// Regions of a mask whose holes are filled: the connected components of an object mask.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "labels/regions.hpp"

namespace bilateral {

namespace detail {

// A run is the pixels [begin, end) of a row that are all inside or all outside the mask.
struct MaskRun {
  std::size_t begin, end;
  bool inside;
};

// The runs of all rows, which leave out no pixel.
struct MaskRuns {
  std::vector<MaskRun> runs;
  std::vector<std::size_t> first_of_row;

  // Calls f(run, above) for all pairs of runs that share a side along y.
  template <class F>
  void each_pair(F&& f) const {
    for (std::size_t y = 1; y + 1 < first_of_row.size(); ++y) {
      std::size_t above = first_of_row[y - 1];
      for (std::size_t i = first_of_row[y]; i < first_of_row[y + 1]; ++i) {
        while (runs[above].end <= runs[i].begin) ++above;
        for (std::size_t j = above; j < first_of_row[y] && runs[j].begin < runs[i].end; ++j)
          f(i, j);
      }
    }
  }
};

template <class T>
MaskRuns find_mask_runs(const T* values, T threshold, std::size_t height, std::size_t width) {
  MaskRuns found;
  for (std::size_t y = 0; y < height; ++y) {
    found.first_of_row.push_back(found.runs.size());
    const T* row = values + y * width;
    for (std::size_t x = 0; x < width;) {
      const std::size_t begin = x;
      const bool inside = row[x] > threshold;
      while (x < width && (row[x] > threshold) == inside) ++x;
      found.runs.push_back({begin, x, inside});
    }
  }
  found.first_of_row.push_back(found.runs.size());
  return found;
}

// Moves the parts of the background that do not reach the border of the image inside.
inline void fill_holes(MaskRuns& rows, std::size_t width) {
  std::vector<MaskRun>& runs = rows.runs;
  DisjointSets sets(runs.size());
  rows.each_pair([&](std::size_t i, std::size_t j) {
    if (!runs[i].inside && !runs[j].inside)
      sets.join(static_cast<std::int32_t>(i), static_cast<std::int32_t>(j));
  });
  const auto root = [&](std::size_t i) {
    return static_cast<std::size_t>(sets.root(static_cast<std::int32_t>(i)));
  };
  const std::size_t last_row = rows.first_of_row[rows.first_of_row.size() - 2];
  std::vector<std::uint8_t> is_open(runs.size(), 0);
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (i < rows.first_of_row[1] || i >= last_row || runs[i].begin == 0 || runs[i].end == width)
      is_open[root(i)] = 1;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (!runs[i].inside) runs[i].inside = !is_open[root(i)];
}

}  // namespace detail

// Labels the connected regions of the mask `values > threshold` with its holes filled: 0 outside,
// else numbers from 1, in the order of the regions' first pixels. Returns the number of pixels of
// each label.
template <class T>
std::vector<std::int64_t> object_regions(const T* values, T threshold, std::size_t height,
                                         std::size_t width, std::int32_t* labels) {
  detail::MaskRuns rows = detail::find_mask_runs(values, threshold, height, width);
  detail::fill_holes(rows, width);
  const std::vector<detail::MaskRun>& runs = rows.runs;
  detail::DisjointSets sets(runs.size());
  const auto join_inside = [&](std::size_t i, std::size_t j) {
    if (runs[i].inside && runs[j].inside)
      sets.join(static_cast<std::int32_t>(i), static_cast<std::int32_t>(j));
  };
  rows.each_pair(join_inside);
  for (std::size_t i = 1; i < runs.size(); ++i)  // a filled hole lies beside the mask
    if (runs[i].begin > 0) join_inside(i, i - 1);
  std::vector<std::int64_t> sizes(1, 0);
  std::vector<std::int32_t> label_of_run(runs.size(), 0);
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t i = rows.first_of_row[y]; i < rows.first_of_row[y + 1]; ++i) {
      const auto root = static_cast<std::size_t>(sets.root(static_cast<std::int32_t>(i)));
      if (runs[i].inside && root == i) {
        label_of_run[i] = static_cast<std::int32_t>(sizes.size());
        sizes.push_back(0);
      } else if (runs[i].inside) {
        label_of_run[i] = label_of_run[root];
      }
      const auto label = static_cast<std::size_t>(label_of_run[i]);
      sizes[label] += static_cast<std::int64_t>(runs[i].end - runs[i].begin);
      std::fill(labels + y * width + runs[i].begin, labels + y * width + runs[i].end,
                label_of_run[i]);
    }
  return sizes;
}

}  // namespace bilateral
