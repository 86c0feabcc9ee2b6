// Splat a target and its confidence to planes, and slice planes to pixels. Both use the offset of
// each pixel from the centre of its vertex, in cells.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "grid/positions.hpp"
#include "grid/splat.hpp"
#include "multigrid/model.hpp"

namespace bilateral {

// The moments of a target: sums over the pixels of each vertex, with e = (1, offset).
template <class T>
struct PlaneSums {
  T* moments;           // c e e^T: Planar<D>::matrix numbers per vertex
  T* weighted;          // c e (t - origin): D + 1 numbers per vertex, one channel after another
  double* origin;       // per channel: the middle of the known values, if `centred`
  bool centred = true;  // float32 resolves the differences between values, not large values
};

// A pixel with a non-finite target counts as confidence 0. `confidence` may be null for 1
// everywhere.
template <std::size_t D, class T>
InputStats splat_planes(const Grid& grid, const Centres<D>& centres, const T* target,
                        const T* confidence, std::size_t channels, const PlaneSums<T>& out,
                        int threads) {
  constexpr std::size_t unknowns = D + 1, matrix = Planar<D>::matrix;
  const std::size_t numbers = matrix + channels * unknowns;
  Buffer<double> sums(grid.vertices * numbers, 0.0);
  std::vector<InputStats> row_stats(grid.rows());
  each_row(grid, threads, [&](std::size_t row, const auto* index) {
    InputStats& stats = row_stats[row];
    stats.low.assign(channels, std::numeric_limits<double>::infinity());
    stats.high.assign(channels, -std::numeric_limits<double>::infinity());
    const std::size_t first = grid.row_vertex[row];
    const double* centre = centres.position.data() + first * D;
    double* row_sums = sums.data() + first * numbers;
    each_line<D>(grid, row, centres.inverse, [&](std::size_t line, const Position<D>& start) {
      for (std::size_t x = 0; x < grid.width; ++x) {
        const std::size_t p = line + x, v = index[p];
        const T c = confidence ? confidence[p] : T{1};
        if (!detail::usable(c)) {
          stats.invalid = std::min(stats.invalid, p);
          continue;
        }
        const T* t = target + p * channels;
        bool known = c > T{0};
        for (std::size_t k = 0; k < channels; ++k)
          known = known && std::abs(t[k]) <= std::numeric_limits<T>::max();
        if (!known) continue;
        ++stats.known;
        std::array<double, unknowns> e;
        e[0] = 1;
        e[1] = static_cast<double>(x) * centres.inverse[0] - centre[v * D];
        for (std::size_t d = 1; d < D; ++d) e[d + 1] = start[d] - centre[v * D + d];
        double* to = row_sums + v * numbers;
        for (std::size_t a = 0; a < unknowns; ++a) {
          const double ce = static_cast<double>(c) * e[a];
          for (std::size_t b = 0; b <= a; ++b) to[triangle(a, b)] += ce * e[b];
        }
        to += matrix;
        for (std::size_t k = 0; k < channels; ++k) {
          const auto value = static_cast<double>(t[k]);
          stats.low[k] = std::min(stats.low[k], value);
          stats.high[k] = std::max(stats.high[k], value);
          for (std::size_t a = 0; a < unknowns; ++a, ++to)
            *to += static_cast<double>(c) * e[a] * value;
        }
      }
    });
  });
  InputStats all = row_stats[0];
  for (std::size_t row = 1; row < row_stats.size(); ++row) all.add(row_stats[row]);
  for (std::size_t k = 0; k < channels; ++k)
    out.origin[k] = out.centred && all.known > 0 ? all.low[k] / 2 + all.high[k] / 2 : 0;
  for (std::size_t v = 0; v < grid.vertices; ++v) {
    const double* from = sums.data() + v * numbers;
    // A smaller weight has no finite inverse.
    const bool counts = from[0] >= static_cast<double>(std::numeric_limits<T>::min());
    all.confidence += from[0];
    for (std::size_t i = 0; i < matrix; ++i)
      out.moments[v * matrix + i] = counts ? static_cast<T>(from[i]) : T{0};
    for (std::size_t k = 0; k < channels; ++k)
      for (std::size_t a = 0; a < unknowns; ++a) {
        const double sum = from[matrix + k * unknowns + a] - out.origin[k] * from[triangle(a, 0)];
        out.weighted[(k * grid.vertices + v) * unknowns + a] = counts ? static_cast<T>(sum) : T{0};
      }
  }
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
    each_line<D>(grid, row, centres.inverse, [&](std::size_t line, const Position<D>& start) {
      for (std::size_t k = 0; k < channels; ++k) {
        const T* from = planes + (k * grid.vertices + first) * unknowns;
        for (std::size_t x = 0; x < grid.width; ++x) {
          const std::size_t p = line + x, v = index[p];
          const T* plane = from + v * unknowns;
          double value = origin[k] + static_cast<double>(plane[0]);
          value += static_cast<double>(plane[1]) *
                   (static_cast<double>(x) * centres.inverse[0] - centre[v * D]);
          for (std::size_t d = 1; d < D; ++d)
            value += static_cast<double>(plane[d + 1]) * (start[d] - centre[v * D + d]);
          pixels[p * channels + k] = static_cast<T>(std::min(std::max(value, low[k]), high[k]));
        }
      }
    });
  });
}

}  // namespace bilateral
