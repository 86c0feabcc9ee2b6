// Splat a target and its confidence to planes, and slice planes to pixels. Both use the offset of
// each pixel from the centre of its vertex, in cells.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <variant>
#include <vector>

#include "grid/splat.hpp"
#include "multigrid/model.hpp"
#include "planes/matrix.hpp"
#include "planes/positions.hpp"

namespace bilateral {

// The moments of a target: sums over the pixels of each vertex, with e = (1, offset).
template <class T>
struct PlaneSums {
  T* moments;           // c e e^T: Planar<D>::matrix numbers per vertex
  T* weighted;          // c e (t - origin): D + 1 numbers per vertex, one channel after another
  double* origin;       // per channel: the middle of the known values, if `centred`
  bool centred = true;  // float32 resolves the differences between values, not large values
};

namespace detail {

// Sums over the vertices of one row of tiles, at positions relative to the row's first line.
template <std::size_t D, class T, class Index>
class PlaneRowSplat {
 public:
  static constexpr std::size_t unknowns = D + 1, matrix = Planar<D>::matrix;

  PlaneRowSplat(const Grid& grid, const Centres<D>& centres, const Index* index, const T* target,
                const T* confidence, std::size_t channels)
      : grid_(grid),
        centres_(centres),
        index_(index),
        target_(target),
        confidence_(confidence),
        channels_(channels) {}

  InputStats stats;

  // Writes `numbers()` sums per vertex: the moments, then those of each channel.
  void run(std::size_t row, double* out) {
    const std::size_t first = grid_.row_vertex[row], count = grid_.row_vertex[row + 1] - first;
    const bool single = channels_ == 1;
    const std::size_t stride = single ? pair_numbers : numbers();
    sums_.assign(count * stride, 0.0);
    stats = {};
    low_.assign(channels_, std::numeric_limits<T>::infinity());
    high_.assign(channels_, -std::numeric_limits<T>::infinity());
    std::array<double, D - 1> start{};
    bool started = false;
    each_line<D>(grid_, row, centres_.inverse,
                 [&](std::size_t p, const std::array<double, D - 1>& line) {
                   if (!started) start = line;
                   started = true;
                   Position<D> at{};
                   for (std::size_t d = 1; d < D; ++d) at[d] = line[d - 1] - start[d - 1];
                   single ? add_line(p, at) : add_channels(p, at);
                 });
    stats.low.assign(low_.begin(), low_.end());
    stats.high.assign(high_.begin(), high_.end());
    for (std::size_t v = 0; v < count; ++v) {
      Position<D> centre;
      for (std::size_t d = 0; d < D; ++d)
        centre[d] = centres_.position[(first + v) * D + d] - (d > 0 ? start[d - 1] : 0);
      move(sums_.data() + v * stride, centre, out + (first + v) * numbers());
    }
  }

  std::size_t numbers() const { return matrix + channels_ * unknowns; }

 private:
  static constexpr std::size_t longest_run = 256;
  // For one channel: pairs (c, c t) times 1 and each coordinate, then c times products of
  // coordinates.
  static constexpr std::size_t products = Planar<D>::slope_matrix;
  static constexpr std::size_t pair_numbers = 2 * (unknowns + (products + 1) / 2);

  void add_line(std::size_t begin, Position<D> at) {
    for (std::size_t x = 0; x < grid_.width; x += longest_run) {
      const std::size_t run = std::min(longest_run, grid_.width - x), p = begin + x;
      if (!weigh(target_ + p, confidence_ ? confidence_ + p : ones_.data(), run, pairs_.data(),
                 low_[0], high_[0], stats.known))
        find_invalid(p, p + run);
      for (std::size_t i = 0; i < run; ++i) {
        const Pair data = load_lanes<Pair>(pairs_.data() + 2 * i);
        if (data[0] == 0) continue;
        at[0] = centres_.x[x + i];
        double* sums = sums_.data() + index_[p + i] * pair_numbers;
        add_pair(sums, data);
        for (std::size_t d = 0; d < D; ++d) add_pair(sums + 2 * (d + 1), at[d] * data);
        std::array<double, products + 1> product{};
        for (std::size_t a = 0; a < D; ++a)
          for (std::size_t b = 0; b <= a; ++b) product[triangle(a, b)] = data[0] * at[a] * at[b];
        for (std::size_t k = 0; k < products; k += 2)
          add_pair(sums + 2 * unknowns + k, Pair{product[k], product[k + 1]});
      }
    }
  }

  static BILATERAL_INLINE void add_pair(double* to, Pair pair) {
    store_lanes(to, load_lanes<Pair>(to) + pair);
  }

  void add_channels(std::size_t begin, Position<D> at) {
    for (std::size_t x = 0; x < grid_.width; ++x) {
      const std::size_t p = begin + x;
      const T c = confidence_ ? confidence_[p] : T{1};
      const T* t = target_ + p * channels_;
      if (!usable(c)) stats.invalid = std::min(stats.invalid, p);
      bool known = c > T{0};
      for (std::size_t k = 0; k < channels_; ++k)
        known = known && std::abs(t[k]) <= std::numeric_limits<T>::max();
      if (!known) continue;
      ++stats.known;
      at[0] = centres_.x[x];
      double* sums = sums_.data() + index_[p] * numbers();
      std::array<double, unknowns> e;
      e[0] = static_cast<double>(c);
      for (std::size_t d = 0; d < D; ++d) e[d + 1] = e[0] * at[d];
      for (std::size_t a = 0; a < unknowns; ++a) *sums++ += e[a];
      for (std::size_t a = 0; a < D; ++a)
        for (std::size_t b = 0; b <= a; ++b) *sums++ += e[a + 1] * at[b];
      for (std::size_t k = 0; k < channels_; ++k) {
        low_[k] = std::min(low_[k], t[k]);
        high_[k] = std::max(high_[k], t[k]);
        for (std::size_t a = 0; a < unknowns; ++a) *sums++ += e[a] * static_cast<double>(t[k]);
      }
    }
  }

  void find_invalid(std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p)
      if (!usable(confidence_[p])) stats.invalid = std::min(stats.invalid, p);
  }

  // Brings the sums of a vertex to their order, and to the vertex's centre.
  void move(const double* sums, const Position<D>& centre, double* out) {
    const bool single = channels_ == 1;
    const std::size_t step = single ? 2 : 1;  // between the sums of c times 1 and each coordinate
    const double* product = sums + step * unknowns;
    PlaneMatrix<D> at_start, moved{};
    for (std::size_t a = 0; a < unknowns; ++a) at_start[triangle(a, 0)] = sums[step * a];
    for (std::size_t a = 0; a < D; ++a)
      for (std::size_t b = 0; b <= a; ++b) at_start[triangle(a + 1, b + 1)] = *product++;
    Position<D> offset;
    for (std::size_t d = 0; d < D; ++d) offset[d] = -centre[d];
    add_moved<D, double>(moved, at_start, offset);
    out = std::copy(moved.begin(), moved.end(), out);
    const double* values = single ? sums + 1 : product;
    for (std::size_t k = 0; k < channels_; ++k, values += unknowns) {
      *out++ = values[0];
      for (std::size_t d = 0; d < D; ++d) *out++ = values[step * (d + 1)] - centre[d] * values[0];
    }
  }

  const Grid& grid_;
  const Centres<D>& centres_;
  const Index* index_;
  const T* target_;
  const T* confidence_;
  std::size_t channels_;
  std::vector<double> sums_;
  std::vector<T> low_, high_;
  std::vector<double> pairs_ = std::vector<double>(2 * longest_run);
  std::vector<T> ones_ = std::vector<T>(longest_run, T{1});
};

}  // namespace detail

struct PlaneStats : InputStats {
  double confidence = 0;  // sum of the confidences of the known pixels
};

// A pixel with a non-finite target counts as confidence 0. `confidence` may be null for 1
// everywhere.
template <std::size_t D, class T>
PlaneStats splat_planes(const Grid& grid, const Centres<D>& centres, const T* target,
                        const T* confidence, std::size_t channels, const PlaneSums<T>& out,
                        int threads) {
  constexpr std::size_t unknowns = D + 1, matrix = Planar<D>::matrix;
  const std::size_t numbers = matrix + channels * unknowns;
  Buffer<double> sums(grid.vertices * numbers);
  std::vector<InputStats> row_stats(grid.rows());
  const int team = team_size(threads, grid.pixels(), 65536);
  std::visit(
      [&]<class Index>(const Buffer<Index>& index) {
        using Worker = detail::PlaneRowSplat<D, T, Index>;
        std::vector<Worker> workers(
            static_cast<std::size_t>(team),
            Worker(grid, centres, index.data(), target, confidence, channels));
        parallel_for(team, grid.rows(), [&](std::size_t row, std::size_t rank) {
          workers[rank].run(row, sums.data());
          row_stats[row] = workers[rank].stats;
        });
      },
      grid.pixel);
  PlaneStats all{row_stats[0]};
  for (std::size_t row = 1; row < row_stats.size(); ++row) all.add(row_stats[row]);
  for (std::size_t k = 0; k < channels; ++k)
    out.origin[k] = out.centred && all.known > 0 ? all.low[k] / 2 + all.high[k] / 2 : 0;
  for (std::size_t v = 0; v < grid.vertices; ++v) all.confidence += sums[v * numbers];
  each_row(grid, threads, [&](std::size_t row, const auto*) {
    for (std::size_t v = grid.row_vertex[row]; v < grid.row_vertex[row + 1]; ++v) {
      const double* from = sums.data() + v * numbers;
      // A smaller weight has no finite inverse.
      const bool counts = from[0] >= static_cast<double>(std::numeric_limits<T>::min());
      for (std::size_t i = 0; i < matrix; ++i)
        out.moments[v * matrix + i] = counts ? static_cast<T>(from[i]) : T{0};
      for (std::size_t k = 0; k < channels; ++k)
        for (std::size_t a = 0; a < unknowns; ++a) {
          const double sum = from[matrix + k * unknowns + a] - out.origin[k] * from[triangle(a, 0)];
          out.weighted[(k * grid.vertices + v) * unknowns + a] =
              counts ? static_cast<T>(sum) : T{0};
        }
    }
  });
  return all;
}

// Evaluates planes at the pixels: D + 1 numbers per vertex, one channel after another. Adds
// `origin` and clamps to [low, high], all per channel.
template <std::size_t D, class T>
void slice_planes(const Grid& grid, const Centres<D>& centres, const T* planes,
                  std::size_t channels, const double* origin, const double* low, const double* high,
                  T* pixels, int threads) {
  constexpr std::size_t unknowns = D + 1;
  each_row(grid, threads, [&](std::size_t row, const auto* index) {
    const std::size_t first = grid.row_vertex[row];
    const double* centre = centres.position.data() + first * D;
    each_line<D>(
        grid, row, centres.inverse, [&](std::size_t line, const std::array<double, D - 1>& start) {
          for (std::size_t k = 0; k < channels; ++k) {
            const T* from = planes + (k * grid.vertices + first) * unknowns;
            for (std::size_t x = 0; x < grid.width; ++x) {
              const std::size_t p = line + x, v = index[p];
              const T* plane = from + v * unknowns;
              double value = origin[k] + static_cast<double>(plane[0]);
              value += static_cast<double>(plane[1]) * (centres.x[x] - centre[v * D]);
              for (std::size_t d = 1; d < D; ++d)
                value += static_cast<double>(plane[d + 1]) * (start[d - 1] - centre[v * D + d]);
              pixels[p * channels + k] = static_cast<T>(std::min(std::max(value, low[k]), high[k]));
            }
          }
        });
  });
}

}  // namespace bilateral
