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

namespace detail {

// The sums of one vertex for one channel, in pairs: (c, c t) times each of 1 and the offsets, then
// the products of offsets times c.
template <std::size_t D>
struct PlanePairs {
  static constexpr std::size_t products = Planar<D>::slope_matrix;
  static constexpr std::size_t pairs = D + 1 + (products + 1) / 2;
  static constexpr std::size_t numbers = 2 * pairs;

  static BILATERAL_INLINE void add(double* sums, double c, double t,
                                   const std::array<double, D>& offset) {
    const Pair data{c, c * t};
    const auto add_pair = [&](std::size_t i, Pair pair) {
      store_lanes(sums + 2 * i, load_lanes<Pair>(sums + 2 * i) + pair);
    };
    add_pair(0, data);
    for (std::size_t d = 0; d < D; ++d) add_pair(d + 1, offset[d] * data);
    std::array<double, products + 1> product{};
    for (std::size_t a = 0; a < D; ++a)
      for (std::size_t b = 0; b <= a; ++b) product[triangle(a, b)] = c * offset[a] * offset[b];
    for (std::size_t i = 0; i < products; i += 2)
      add_pair(D + 1 + i / 2, Pair{product[i], product[i + 1]});
  }

  // Writes the numbers in the order of PlaneSums.
  static void sort(const double* sums, double* sorted) {
    for (std::size_t a = 0; a <= D; ++a) {
      sorted[triangle(a, 0)] = sums[2 * a];
      sorted[Planar<D>::matrix + a] = sums[2 * a + 1];
      for (std::size_t b = 1; b <= a; ++b)
        sorted[triangle(a, b)] = sums[2 * (D + 1) + triangle(a - 1, b - 1)];
    }
  }
};

}  // namespace detail

// A pixel with a non-finite target counts as confidence 0. `confidence` may be null for 1
// everywhere.
template <std::size_t D, class T>
InputStats splat_planes(const Grid& grid, const Centres<D>& centres, const T* target,
                        const T* confidence, std::size_t channels, const PlaneSums<T>& out,
                        int threads) {
  constexpr std::size_t unknowns = D + 1, matrix = Planar<D>::matrix;
  using Pairs = detail::PlanePairs<D>;
  const bool single = channels == 1;
  const std::size_t numbers = single ? Pairs::numbers : matrix + channels * unknowns;
  Buffer<double> sums(grid.vertices * numbers);
  std::vector<InputStats> row_stats(grid.rows());
  each_row(grid, threads, [&](std::size_t row, const auto* index) {
    InputStats& stats = row_stats[row];
    stats.low.assign(channels, std::numeric_limits<double>::infinity());
    stats.high.assign(channels, -std::numeric_limits<double>::infinity());
    const std::size_t first = grid.row_vertex[row];
    const double* centre = centres.position.data() + first * D;
    double* row_sums = sums.data() + first * numbers;
    std::fill(row_sums, sums.data() + grid.row_vertex[row + 1] * numbers, 0.0);
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
        std::array<double, D> offset;
        offset[0] = static_cast<double>(x) * centres.inverse[0] - centre[v * D];
        for (std::size_t d = 1; d < D; ++d) offset[d] = start[d] - centre[v * D + d];
        double* to = row_sums + v * numbers;
        if (single) {
          const auto value = static_cast<double>(t[0]);
          stats.low[0] = std::min(stats.low[0], value);
          stats.high[0] = std::max(stats.high[0], value);
          Pairs::add(to, static_cast<double>(c), value, offset);
          continue;
        }
        std::array<double, unknowns> e;
        e[0] = 1;
        std::copy_n(offset.begin(), D, e.begin() + 1);
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
  std::array<double, matrix + unknowns> sorted;
  for (std::size_t v = 0; v < grid.vertices; ++v) {
    const double* from = sums.data() + v * numbers;
    if (single) {
      Pairs::sort(from, sorted.data());
      from = sorted.data();
    }
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
