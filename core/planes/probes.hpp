// Draw random right-hand sides b with the covariance of a planar matrix A (see probes.hpp).
//
// A = sum of f u u^T over its terms: per edge one for the values where the planes meet and one per
// slope, per vertex one per slope for the ridge. The data term of a vertex is L diag(d) L^T, so the
// columns of L are terms.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "grid/edges.hpp"
#include "multigrid/model.hpp"
#include "planes/matrix.hpp"
#include "planes/positions.hpp"
#include "solve/probes.hpp"

namespace bilateral {

// Fills b: D + 1 numbers per vertex, one probe after another; n comes from bistochastize.
template <std::size_t D, class T>
void draw_plane_probes(const Grid& grid, const Centres<D>& centres, const T* n, const T* moments,
                       double smoothness, const SlopeWeights& slopes, std::uint64_t seed,
                       std::size_t probes, T* b, int threads) {
  constexpr std::size_t U = D + 1;
  const std::size_t stride = grid.vertices * U;
  const auto sign = [](std::uint64_t bits, std::size_t k) { return (bits >> k) & 1 ? 1.0 : -1.0; };
  const auto stream = [&](std::size_t kind, std::size_t term) {
    return Signs(seed, kind * (2 * U) + term);
  };
  parallel_for(
      team_size(threads, grid.vertices, 4096), grid.bands(), [&](std::size_t band, std::size_t) {
        const Band here(grid, band);
        for (std::size_t v = here.first; v < here.last; ++v) {
          PlaneMatrix<D> matrix;
          for (std::size_t i = 0; i < matrix.size(); ++i)
            matrix[i] = static_cast<double>(moments[v * matrix.size() + i]);
          const PlaneFactors<D, double> factors(matrix);
          const double ridge =
              std::sqrt(smoothness * slopes.ridge * static_cast<double>(grid.mass[v]));
          for (std::size_t k = 0; k < probes; ++k) {
            std::array<double, U> sum{};
            for (std::size_t j = 0; j < U; ++j) {
              const double s = sign(stream(edge_kinds, j)[v], k);
              const double root = s * std::sqrt(factors.diagonal[j]);
              sum[j] += root;
              for (std::size_t i = j + 1; i < U; ++i)
                sum[i] += factors.lower[triangle(i, j)] * root;
              if (j > 0) sum[j] += ridge * sign(stream(edge_kinds, U + j)[v], k);
            }
            for (std::size_t i = 0; i < U; ++i) b[k * stride + v * U + i] = static_cast<T>(sum[i]);
          }
        }
        for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
          const double factor = smoothness * (kind == range_edges ? grid.range : grid.space);
          if (!(factor > 0)) continue;
          each_edge(grid, band, kind, [&](std::size_t e, std::size_t a, std::size_t c, auto ends) {
            const double root =
                std::sqrt(factor * static_cast<double>(n[a]) * static_cast<double>(n[c]));
            const double turn = root * std::sqrt(slopes.smoothness);
            std::array<double, D> half;
            for (std::size_t d = 0; d < D; ++d)
              half[d] = (centres.position[c * D + d] - centres.position[a * D + d]) / 2;
            std::array<std::uint64_t, U> bits;
            for (std::size_t u = 0; u < U; ++u) bits[u] = stream(kind, u)[e];
            for (std::size_t k = 0; k < probes; ++k) {
              T *at_a = b + k * stride + a * U, *at_c = b + k * stride + c * U;
              const double force = root * sign(bits[0], k);
              if constexpr (ends != Ends::only_b) at_a[0] += static_cast<T>(force);
              if constexpr (ends != Ends::only_a) at_c[0] -= static_cast<T>(force);
              for (std::size_t d = 0; d < D; ++d) {
                const double bend = turn * sign(bits[d + 1], k);
                if constexpr (ends != Ends::only_b)
                  at_a[d + 1] += static_cast<T>(force * half[d] + bend);
                if constexpr (ends != Ends::only_a)
                  at_c[d + 1] += static_cast<T>(force * half[d] - bend);
              }
            }
          });
        }
      });
}

}  // namespace bilateral
