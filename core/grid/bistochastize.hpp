// Blur by B-bar, and bistochastize it (supplement, Algorithm 1).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/vector_loops.hpp"
#include "grid/edges.hpp"
#include "grid/grid.hpp"
#include "grid/neighbour_sums.hpp"

namespace bilateral {

// Adds up all channels of each vertex of a band and its neighbours, with the given weights.
template <class T, class Channels>
void blur_band(const Grid& grid, std::size_t band, const BlurWeights& weights, const T* in,
               Channels channels, T* out) {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<T, float>)
    if (channels == 1 && !grid.neighbours.empty())
      return detail::blur_by_table(grid, band, weights, in, out);
#endif
  const Band rows(grid, band);
  const T centre = static_cast<T>(weights.centre);
  for (std::size_t i = rows.first * channels; i < rows.last * channels; ++i)
    out[i] = centre * in[i];
  for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
    const T weight = static_cast<T>(kind == range_edges ? weights.range : weights.space);
    each_run(grid, band, kind,
             [&](auto ends, std::size_t first_a, std::size_t first_b, const auto* edges,
                 std::size_t begin, std::size_t end) {
               const T* in_a = in + first_a * channels;
               const T* in_b = in + first_b * channels;
               T* out_a = out + first_a * channels;
               T* out_b = out + first_b * channels;
               in_turns(begin, end, [=](std::size_t e) {
                 const std::size_t a = edges[e].a * channels, b = edges[e].b * channels;
                 for (std::size_t k = 0; k < channels; ++k) {
                   if constexpr (ends != Ends::only_b) out_a[a + k] += weight * in_b[b + k];
                   if constexpr (ends != Ends::only_a) out_b[b + k] += weight * in_a[a + k];
                 }
               });
             });
  }
}

template <class T>
void blur(const Grid& grid, const T* in, std::size_t channels, T* out, int threads) {
  parallel_for(team_size(threads, grid.vertices, 8192), grid.bands(),
               [&](std::size_t band, std::size_t) {
                 blur_band(grid, band, blur_weights(grid), in, channels, out);
               });
}

struct BistochastizeOptions {
  double tolerance;          // largest relative error of a row sum
  double lowest_eigenvalue;  // that the Chebyshev steps assume, at least -1
  int max_iterations = 500;
};

// Improves n until n * (B-bar n) = m holds at all vertices up to the relative tolerance.
// Returns the number of iterations.
//
// The paper's iteration n <- sqrt(n m / (B-bar n)) moves log n by half the residual
// g = log(m / (n B-bar n)). Linearized, a step of omega g makes g <- (I - omega (I + P)) g with P
// similar to a symmetric matrix whose eigenvalues lie in [mu, 1]. So after one of the paper's steps
// the iteration continues with Chebyshev steps for the interval [1 + mu, 2].
template <class T>
int bistochastize(const Grid& grid, Buffer<T>& n, const BistochastizeOptions& options,
                  int threads) {
  using One = std::integral_constant<std::size_t, 1>;
  const std::size_t vertices = grid.vertices;
  Buffer<T> change(vertices, T{0}), blurred(vertices);
  // mu of a vertex with all neighbours in space, and one of two along each range dimension. Few
  // vertices have more neighbours; there the iteration only converges more slowly.
  const double around = 2 * static_cast<double>(grid.space_dimensions) * grid.space +
                        static_cast<double>(grid.layout.channels) * grid.range;
  const double mu = (grid.centre - around) / (grid.centre + around);
  const double from = 1 + std::clamp(mu, options.lowest_eigenvalue, 0.0), to = 2;
  const double middle = (from + to) / 2, half = (to - from) / 2;
  std::vector<std::uint8_t> moving(grid.bands());
  int iterations = 0;
  bool done = false;
  const int team = team_size(threads, vertices, 4096);
  BandQueue bands(grid.band_vertex, team);
  run_team(team, [&](const Worker& worker) {
    double rho = 0;
    for (int step = 0; step < options.max_iterations && !done; ++step) {
      const double last = rho;
      rho = step <= 1 ? half / middle : 1 / (2 * middle / half - last);
      const double gain = step <= 1 ? 1 / middle : 2 * rho / half;
      const double momentum = step <= 1 ? 0 : rho * last;
      bands.each(worker, [&](std::size_t band) {
        blur_band(grid, band, blur_weights(grid), n.data(), One{}, blurred.data());
      });
      worker.barrier.wait();
      bands.each(worker, [&](std::size_t band) {
        const std::size_t first = grid.band_vertex[band], end = grid.band_vertex[band + 1];
        if (step == 0) {
          for (std::size_t i = first; i < end; ++i)
            n[i] = std::sqrt(n[i] * static_cast<T>(grid.mass[i]) / blurred[i]);
          moving[band] = true;
        } else {
          moving[band] = detail::bistochastize_step(
              n.data() + first, change.data() + first, blurred.data() + first,
              grid.mass.data() + first, end - first, static_cast<T>(gain), static_cast<T>(momentum),
              static_cast<T>(options.tolerance));
        }
      });
      worker.barrier.wait();
      if (worker.rank == 0) {
        iterations = step + 1;
        done = std::find(moving.begin(), moving.end(), 1) == moving.end();
      }
      worker.barrier.wait();
    }
  });
  return iterations;
}

}  // namespace bilateral
