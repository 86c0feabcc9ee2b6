// Graph: the weighted graph of one multigrid level, with rows in the order of Gauss-Seidel. Its
// Laplacian L is (L x)_i = sum_j w_ij (x_i - x_j).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "base/buffer.hpp"
#include "multigrid/slices.hpp"

namespace bilateral {

// Rows are sorted by colour; no two rows of a colour are neighbours. Each colour fills whole
// slices: its last rows may have no neighbours and stand for no vertex. Columns that lead to
// earlier colours come before columns that lead to later colours. Padding leads from a row to
// itself, with weight 0.
template <class T>
struct Graph {
  std::size_t rows = 0;
  std::vector<std::uint32_t> colour;  // first row of each colour, then the number of rows
  Columns entry;                      // neighbours of each row
  Buffer<std::uint32_t> first_later;  // first column of each slice that leads to a later colour
  Buffer<T> weight;                   // w_ij of each entry
  Buffer<T> degree;                   // sum of the weights of each row, then a 0

  // Columns after the last one, for loops that read a fixed number of columns per row. They lead
  // to row 0 with weight 0.
  static constexpr std::size_t spare_columns = 6;

  std::size_t colours() const { return colour.size() - 1; }
  std::size_t slices() const { return rows / slice_rows; }

  // Expects the number of columns of each slice in entry.first[slice + 1], and the number of those
  // that lead to earlier colours in first_later[slice].
  void allocate_entries() {
    std::uint64_t total = 0;
    for (std::size_t s = 0; s < slices(); ++s) {
      const std::uint32_t columns = entry.first[s + 1];
      first_later[s] += static_cast<std::uint32_t>(total);
      total += columns;
      if (total * slice_rows >= nowhere) throw std::length_error("the grid has too many edges");
      entry.first[s + 1] = static_cast<std::uint32_t>(total);
    }
    const std::size_t spare = spare_columns * slice_rows;
    entry.to = Buffer<std::uint32_t>(entry.size() + spare);
    weight = Buffer<T>(entry.size() + spare);
    std::fill_n(entry.to.data() + entry.size(), spare, 0u);
    std::fill_n(weight.data() + entry.size(), spare, T{0});
    degree = Buffer<T>(rows + 1);
    degree[rows] = T{0};
  }

  // Sums the weights of the rows of one slice.
  void sum_degrees(std::size_t slice) {
    std::array<T, slice_rows> sum{};
    for (std::size_t k = entry.first[slice]; k < entry.first[slice + 1]; ++k)
      for (std::size_t i = 0; i < slice_rows; ++i) sum[i] += weight[k * slice_rows + i];
    std::copy(sum.begin(), sum.end(), degree.data() + slice * slice_rows);
  }
};

}  // namespace bilateral
