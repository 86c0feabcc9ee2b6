// Samples: the known pixels of a target in the order of their vertices, for repeated passes over
// all of them. Each lane of a SIMD vector serves one vertex, and neighbouring lanes serve vertices
// with about as many pixels, so that a pass needs neither gathers nor sums in memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "grid/grid.hpp"
#include "grid/splat.hpp"

namespace bilateral {

template <class T>
class Samples {
 public:
  static constexpr std::size_t width = 32 / sizeof(T);  // vertices of a chunk

  // Fills the places of a vertex with fewer pixels than others of its chunk: a value so large that
  // its squared distance from any value is infinite.
  static constexpr T padding = std::numeric_limits<T>::max() / 2;

  // One row of tiles. `order` sorts its vertices by falling number of pixels. Chunk i holds the
  // vertices order[i * width], ..., with steps[i] values per vertex and channel. Values are stored
  // by chunk, step, channel, then vertex.
  struct Row {
    const std::uint32_t* order;
    std::size_t vertices;
    const std::uint32_t* steps;
    const T* values;
  };

  // A pixel is known if its values are finite in all channels.
  Samples(const Grid& grid, const T* target, std::size_t channels, int threads)
      : Samples(grid, target, target, channels, threads) {}

  // Counts the pixels of one target and copies those of another. Both are the same memory, except
  // in tests: another thread may change a target between the two passes. A pixel for which there is
  // no room is then ignored.
  Samples(const Grid& grid, const T* counted, const T* copied, std::size_t channels, int threads)
      : grid_(grid),
        channels_(channels),
        size_(channels, T{0}),
        order_(grid.vertices),
        chunk_(grid.rows() + 1, 0) {
    for (std::size_t row = 0; row < grid.rows(); ++row) {
      const std::size_t vertices = grid.row_vertex[row + 1] - grid.row_vertex[row];
      chunk_[row + 1] = chunk_[row] + (vertices + width - 1) / width;
    }
    steps_.resize(chunk_.back());
    value_.resize(grid.rows() + 1);
    each_row(grid, threads, [&](std::size_t row, const auto* index) {
      value_[row + 1] = arrange(row, index, counted) * width * channels_;
    });
    for (std::size_t row = 0; row < grid.rows(); ++row) value_[row + 1] += value_[row];
    values_ = Buffer<T>(value_.back());
    std::vector<RowStats> stats(grid.rows());
    each_row(grid, threads,
             [&](std::size_t row, const auto* index) { stats[row] = collect(row, index, copied); });
    for (const RowStats& row : stats) {
      known_ += row.known;
      for (std::size_t k = 0; k < channels; ++k) size_[k] = std::max(size_[k], row.size[k]);
    }
  }

  const Grid& grid() const { return grid_; }
  std::size_t channels() const { return channels_; }
  std::size_t known() const { return known_; }          // number of pixels
  const std::vector<T>& size() const { return size_; }  // largest magnitude, per channel

  Row row(std::size_t r) const {
    const std::size_t first = grid_.row_vertex[r];
    return {order_.data() + first, grid_.row_vertex[r + 1] - first, steps_.data() + chunk_[r],
            values_.data() + value_[r]};
  }

 private:
  struct RowStats {
    std::size_t known = 0;
    std::vector<T> size;
  };

  bool finite(const T* pixel) const {
    return std::all_of(pixel, pixel + channels_, [](T t) { return std::isfinite(t); });
  }

  template <class Index, class F>
  void each_known(std::size_t row, const Index* index, const T* target, F&& f) const {
    each_pixel_run(grid_, row, [&](std::size_t begin, std::size_t end) {
      for (std::size_t p = begin; p < end; ++p)
        if (finite(target + p * channels_)) f(p, index[p]);
    });
  }

  // Finds the order of a row and the steps of its chunks. Returns the sum of the steps.
  template <class Index>
  std::size_t arrange(std::size_t row, const Index* index, const T* target) {
    const std::size_t first = grid_.row_vertex[row], vertices = grid_.row_vertex[row + 1] - first;
    std::vector<std::uint32_t> count(vertices, 0);
    each_known(row, index, target, [&](std::size_t, std::size_t v) { ++count[v]; });
    const std::uint32_t max_count = *std::max_element(count.begin(), count.end());
    std::vector<std::uint32_t> place(max_count + 2, 0);  // by falling count
    for (const std::uint32_t c : count) ++place[max_count - c + 1];
    for (std::size_t i = 0; i <= max_count; ++i) place[i + 1] += place[i];
    std::uint32_t* order = order_.data() + first;
    for (std::uint32_t v = 0; v < vertices; ++v) order[place[max_count - count[v]]++] = v;
    std::size_t sum = 0;
    for (std::size_t i = 0; i < vertices; i += width) {
      steps_[chunk_[row] + i / width] = count[order[i]];
      sum += count[order[i]];
    }
    return sum;
  }

  // Copies the pixels of a row to their places.
  template <class Index>
  RowStats collect(std::size_t row, const Index* index, const T* target) {
    T* values = values_.data() + value_[row];
    std::fill(values, values_.data() + value_[row + 1], padding);
    const Row layout = this->row(row);
    struct Room {
      std::size_t next, end;  // the place of the vertex's next pixel, and the end of its chunk
    };
    std::vector<Room> rooms(layout.vertices);
    for (std::size_t i = 0, begin = 0; i < layout.vertices; ++i) {
      const std::size_t end = begin + layout.steps[i / width] * width * channels_;
      rooms[layout.order[i]] = {begin + i % width, end};
      if (i % width == width - 1) begin = end;
    }
    RowStats stats{0, std::vector<T>(channels_, T{0})};
    each_known(row, index, target, [&](std::size_t p, std::size_t v) {
      Room& room = rooms[v];
      if (room.next >= room.end) return;
      ++stats.known;
      for (std::size_t k = 0; k < channels_; ++k, room.next += width) {
        const T value = target[p * channels_ + k];
        values[room.next] = value;
        stats.size[k] = std::max(stats.size[k], std::abs(value));
      }
    });
    return stats;
  }

  const Grid& grid_;
  std::size_t channels_, known_ = 0;
  std::vector<T> size_;
  Buffer<std::uint32_t> order_;     // vertices, counted from the first of their row
  std::vector<std::size_t> chunk_;  // first chunk of each row, and the end
  std::vector<std::size_t> value_;  // first value of each row, and the end
  std::vector<std::uint32_t> steps_;
  Buffer<T> values_;
};

}  // namespace bilateral
