// Positions of pixels along the spatial axes x, y and t, in cells, and the centres of vertices.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/buffer.hpp"
#include "base/lanes.hpp"
#include "grid/grid.hpp"
#include "grid/splat.hpp"

namespace bilateral {

template <std::size_t D>
using Position = std::array<double, D>;

// Calls f(first, y and t) for each line of pixels of a row of tiles, with the line's first pixel
// and its position along the other axes. `inverse` has the cells per pixel along each axis.
template <std::size_t D, class F>
void each_line(const Grid& grid, std::size_t row, const Position<D>& inverse, F&& f) {
  each_pixel_run(grid, row, [&](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; p += grid.width) {
      const std::size_t line = p / grid.width;
      std::array<double, D - 1> at;
      at[0] = static_cast<double>(line % grid.height) * inverse[1];
      if constexpr (D > 2) at[1] = static_cast<double>(line / grid.height) * inverse[2];
      f(p, at);
    }
  });
}

// Sums of a pixel's position and of products of its coordinates, in pairs of SIMD lanes.
template <std::size_t D>
struct PositionSums {
  static constexpr std::size_t products = D * (D + 1) / 2;
  static constexpr std::size_t pairs = (D + products + 1) / 2;
  static constexpr std::size_t numbers = 2 * pairs;

  static BILATERAL_INLINE void add(double* sums, const Position<D>& at) {
    std::array<double, numbers> terms{};
    std::size_t n = 0;
    for (std::size_t d = 0; d < D; ++d) terms[n++] = at[d];
    for (std::size_t a = 0; a < D; ++a)
      for (std::size_t b = 0; b <= a; ++b) terms[n++] = at[a] * at[b];
    for (std::size_t i = 0; i < numbers; i += 2)
      store_lanes(sums + i, load_lanes<Pair>(sums + i) + Pair{terms[i], terms[i + 1]});
  }
};

// The mean position of each vertex's pixels, and the sums of products of their offsets from it.
template <std::size_t D>
struct Centres {
  Position<D> inverse;      // cells per pixel along each axis
  Buffer<double> x;         // position of each column of pixels
  Buffer<double> position;  // D numbers per vertex
  Buffer<float> spread;     // D (D + 1) / 2 numbers per vertex: a lower triangle by rows

  Centres(const Grid& grid, const Position<D>& cells_per_pixel, int threads)
      : inverse(cells_per_pixel),
        x(grid.width),
        position(grid.vertices * D),
        spread(grid.vertices * PositionSums<D>::products) {
    using Sums = PositionSums<D>;
    for (std::size_t i = 0; i < grid.width; ++i) x[i] = static_cast<double>(i) * inverse[0];
    each_row(grid, threads, [&](std::size_t row, const auto* index) {
      const std::size_t first = grid.row_vertex[row], count = grid.row_vertex[row + 1] - first;
      std::vector<double> sums(count * Sums::numbers, 0.0);
      // Positions relative to the row's first line lose no digits.
      std::array<double, D - 1> start{};
      bool started = false;
      each_line<D>(grid, row, inverse, [&](std::size_t p, const std::array<double, D - 1>& line) {
        if (!started) start = line;
        started = true;
        Position<D> at;
        for (std::size_t d = 1; d < D; ++d) at[d] = line[d - 1] - start[d - 1];
        for (std::size_t i = 0; i < grid.width; ++i) {
          at[0] = x[i];
          Sums::add(sums.data() + index[p + i] * Sums::numbers, at);
        }
      });
      for (std::size_t v = 0; v < count; ++v) {
        const double* from = sums.data() + v * Sums::numbers;
        const auto mass = static_cast<double>(grid.mass[first + v]);
        double* mean = position.data() + (first + v) * D;
        float* product = spread.data() + (first + v) * Sums::products;
        for (std::size_t a = 0, n = D; a < D; ++a)
          for (std::size_t b = 0; b <= a; ++b, ++n)
            *product++ = static_cast<float>(from[n] - from[a] * from[b] / mass);
        for (std::size_t d = 0; d < D; ++d) mean[d] = from[d] / mass + (d > 0 ? start[d - 1] : 0);
      }
    });
  }
};

}  // namespace bilateral
