// A weighted graph by rows, in the order in which Gauss-Seidel visits them. Its Laplacian is
// (L x)_i = sum_j w_ij (x_i - x_j).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "base/buffer.hpp"
#include "base/thread_pool.hpp"

namespace bilateral {

inline constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

// Rows come in slices of eight that are worked on together.
inline constexpr std::size_t slice_rows = 8;

inline std::size_t whole_slices(std::size_t rows) {
  return (rows + slice_rows - 1) / slice_rows * slice_rows;
}

// Lists of numbers, one per row, in columns: a slice's first column holds the first number of each
// of its eight rows. Lists of a slice are made equally long by padding, so rows with equally long
// lists should lie together.
struct Columns {
  Buffer<std::uint32_t> first;  // of each slice's columns, and the end
  Buffer<std::uint32_t> to;     // eight per column

  std::size_t size() const { return std::size_t{first[first.size() - 1]} * slice_rows; }

  // From the number of columns per slice in first[slice + 1].
  void allocate() {
    for (std::size_t s = 1; s < first.size(); ++s) first[s] += first[s - 1];
    to = Buffer<std::uint32_t>(size());
  }
};

// Rows lie colour by colour; no two rows of a colour are neighbours. Each colour fills whole
// slices: the rows left over have no neighbours and stand for no vertex. Columns that lead to
// earlier colours come before those that lead to later ones. Padding leads from a row to itself,
// with weight 0.
template <class T>
struct Graph {
  std::size_t rows = 0;
  std::vector<std::uint32_t> colour;  // first row of each colour, and the end
  Columns entry;
  Buffer<std::uint32_t> middle;  // of each slice: its first column towards later colours
  Buffer<T> weight;              // of each entry
  Buffer<T> degree;              // of each row: sum of its weights; and a 0

  // After the last column, for those who read a fixed number per row: towards row 0.
  static constexpr std::size_t spare_columns = 6;

  std::size_t colours() const { return colour.size() - 1; }
  std::size_t slices() const { return rows / slice_rows; }

  // From the number of columns per slice in entry.first[slice + 1] and middle[slice].
  void allocate_entries() {
    std::uint64_t total = 0;
    for (std::size_t s = 0; s < slices(); ++s) {
      const std::uint32_t columns = entry.first[s + 1];
      middle[s] += static_cast<std::uint32_t>(total);
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

  // From the weights of one slice.
  void sum_degrees(std::size_t slice) {
    std::array<T, slice_rows> sum{};
    for (std::size_t k = entry.first[slice]; k < entry.first[slice + 1]; ++k)
      for (std::size_t i = 0; i < slice_rows; ++i) sum[i] += weight[k * slice_rows + i];
    std::copy(sum.begin(), sum.end(), degree.data() + slice * slice_rows);
  }
};

// f(begin, end) for parts of the slices [0, slices), in parallel.
template <class F>
void each_part_of_slices(std::size_t slices, Crew& crew, F&& f) {
  constexpr std::size_t run = 128;
  crew.each(
      team_size(crew.size(), slices, run), (slices + run - 1) / run,
      [&](std::size_t part, std::size_t) { f(part * run, std::min(slices, (part + 1) * run)); });
}

// f(slice) for slices [0, slices), in parallel.
template <class F>
void each_slice(std::size_t slices, Crew& crew, F&& f) {
  each_part_of_slices(slices, crew, [&](std::size_t begin, std::size_t end) {
    for (std::size_t s = begin; s < end; ++s) f(s);
  });
}

}  // namespace bilateral
