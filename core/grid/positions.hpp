// Positions of pixels along the spatial axes x, y and t, in cells, and the centres of vertices.
#pragma once

#include <array>
#include <cstddef>

#include "base/buffer.hpp"
#include "grid/grid.hpp"
#include "grid/splat.hpp"

namespace bilateral {

template <std::size_t D>
using Position = std::array<double, D>;

// Calls f(first, start) for each line of pixels of a row of tiles: `first` is the line's first
// pixel, and `start` its position. The next pixels follow at steps of `inverse[0]` along x.
// `inverse` has the cells per pixel along each axis.
template <std::size_t D, class F>
void each_line(const Grid& grid, std::size_t row, const Position<D>& inverse, F&& f) {
  each_pixel_run(grid, row, [&](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; p += grid.width) {
      const std::size_t line = p / grid.width;
      Position<D> start{};
      start[1] = static_cast<double>(line % grid.height) * inverse[1];
      if constexpr (D > 2) start[2] = static_cast<double>(line / grid.height) * inverse[2];
      f(p, start);
    }
  });
}

// The mean position of each vertex's pixels, and the sums of products of their offsets from it.
template <std::size_t D>
struct Centres {
  Position<D> inverse;      // cells per pixel along each axis
  Buffer<double> position;  // D numbers per vertex
  Buffer<double> spread;    // D (D + 1) / 2 numbers per vertex: a lower triangle by rows

  Centres(const Grid& grid, const Position<D>& cells_per_pixel, int threads)
      : inverse(cells_per_pixel),
        position(grid.vertices * D, 0.0),
        spread(grid.vertices * (D * (D + 1) / 2), 0.0) {
    each_row(grid, threads, [&](std::size_t row, const auto* index) {
      const std::size_t first = grid.row_vertex[row], last = grid.row_vertex[row + 1];
      double* sum = position.data() + first * D;
      each_line<D>(grid, row, inverse, [&](std::size_t p, Position<D> at) {
        for (std::size_t x = 0; x < grid.width; ++x, at[0] = static_cast<double>(x) * inverse[0])
          for (std::size_t d = 0; d < D; ++d) sum[index[p + x] * D + d] += at[d];
      });
      for (std::size_t v = first; v < last; ++v)
        for (std::size_t d = 0; d < D; ++d)
          position[v * D + d] /= static_cast<double>(grid.mass[v]);
      double* product = spread.data() + first * (D * (D + 1) / 2);
      each_line<D>(grid, row, inverse, [&](std::size_t p, Position<D> at) {
        for (std::size_t x = 0; x < grid.width; ++x) {
          at[0] = static_cast<double>(x) * inverse[0];
          const std::size_t v = index[p + x];
          std::array<double, D> offset;
          for (std::size_t d = 0; d < D; ++d) offset[d] = at[d] - sum[v * D + d];
          double* to = product + v * (D * (D + 1) / 2);
          for (std::size_t i = 0; i < D; ++i)
            for (std::size_t j = 0; j <= i; ++j) *to++ += offset[i] * offset[j];
        }
      });
    });
  }
};

}  // namespace bilateral
