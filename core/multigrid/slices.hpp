// Sliced storage of row lists (sliced ELLPACK): rows are stored and processed in slices of eight,
// so that one vector instruction reads the same entry of all eight rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/buffer.hpp"
#include "base/thread_pool.hpp"
#include "base/threads.hpp"

namespace bilateral {

// Stands for a missing row, vertex or aggregate.
inline constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

inline constexpr std::size_t slice_rows = 8;

// Rounds a number of rows up to whole slices.
inline std::size_t whole_slices(std::size_t rows) {
  return (rows + slice_rows - 1) / slice_rows * slice_rows;
}

// One list of numbers per row, stored by columns: the first column of a slice holds the first
// number of each of its eight rows. Padding makes all lists of a slice equally long. So rows with
// lists of similar length should share a slice.
struct Columns {
  Buffer<std::uint32_t> first;  // first column of each slice, then the number of columns
  Buffer<std::uint32_t> to;     // eight numbers per column

  std::size_t size() const { return std::size_t{first[first.size() - 1]} * slice_rows; }

  // Expects the number of columns of each slice in first[slice + 1].
  void allocate() {
    for (std::size_t s = 1; s < first.size(); ++s) first[s] += first[s - 1];
    to = Buffer<std::uint32_t>(size());
  }
};

// The slices of the rows [first, last) that one thread of a team processes.
struct Slices {
  std::size_t begin, end;
  Slices(std::size_t first, std::size_t last, const Worker& worker)
      : begin(bound(first, last, worker.rank, worker.size)),
        end(bound(first, last, worker.rank + 1, worker.size)) {}

 private:
  static std::size_t bound(std::size_t first, std::size_t last, int part, int size) {
    return first / slice_rows + (last - first) / slice_rows * static_cast<std::size_t>(part) /
                                    static_cast<std::size_t>(size);
  }
};

// A vector of a level, all zeros. It has one slice more than the level: padding reads its zeros.
template <class T>
Buffer<T> level_vector(std::size_t rows, std::size_t channels) {
  return Buffer<T>((rows + slice_rows) * channels, T{0});
}

// The same, whose rows must be written before they are read.
template <class T>
Buffer<T> unwritten_level_vector(std::size_t rows, std::size_t channels) {
  Buffer<T> vector((rows + slice_rows) * channels);
  std::fill_n(vector.data() + rows * channels, slice_rows * channels, T{0});
  return vector;
}

// Calls f(begin, end) for consecutive parts of the slices [0, slices), in parallel.
template <class F>
void each_part_of_slices(std::size_t slices, ThreadPool& pool, F&& f) {
  constexpr std::size_t run = 128;
  pool.each(
      team_size(pool.size(), slices, run), (slices + run - 1) / run,
      [&](std::size_t part, std::size_t) { f(part * run, std::min(slices, (part + 1) * run)); });
}

// Calls f(slice) for the slices [0, slices), in parallel.
template <class F>
void each_slice(std::size_t slices, ThreadPool& pool, F&& f) {
  each_part_of_slices(slices, pool, [&](std::size_t begin, std::size_t end) {
    for (std::size_t s = begin; s < end; ++s) f(s);
  });
}

// Keeps the numbers below `limit` of each list. They must be the first numbers of the list.
inline Columns numbers_below(const Columns& lists, std::uint32_t limit, std::uint32_t padding,
                             ThreadPool& pool) {
  Columns kept;
  const std::size_t slices = lists.first.size() - 1;
  kept.first = Buffer<std::uint32_t>(slices + 1);
  kept.first[0] = 0;
  each_slice(slices, pool, [&](std::size_t s) {
    std::uint32_t columns = 0;
    for (std::size_t k = lists.first[s]; k < lists.first[s + 1]; ++k) {
      const std::uint32_t* to = lists.to.data() + k * slice_rows;
      columns += *std::min_element(to, to + slice_rows) < limit;
    }
    kept.first[s + 1] = columns;
  });
  kept.allocate();
  each_slice(slices, pool, [&](std::size_t s) {
    const std::uint32_t* from = lists.to.data() + lists.first[s] * slice_rows;
    const std::size_t begin = kept.first[s] * slice_rows, end = kept.first[s + 1] * slice_rows;
    for (std::size_t e = begin; e < end; ++e) {
      const std::uint32_t number = from[e - begin];
      kept.to[e] = number < limit ? number : padding;
    }
  });
  return kept;
}

}  // namespace bilateral
