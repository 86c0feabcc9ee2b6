// Draw random right-hand sides b with the covariance A, so that A^-1 b has the covariance A^-1.
//
// A = sum over edges of conductance (e_a - e_b) (e_a - e_b)^T + sum over vertices of weight e_v
// e_v^T. So b is the sum of the same vectors, each times a random sign and the root of its factor.
// The sign is a hash of the term's number: it depends neither on threads nor on the order of work.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/threads.hpp"
#include "grid/edges.hpp"
#include "grid/grid.hpp"

namespace bilateral {

inline constexpr std::size_t max_probes = 64;  // of one call: the bits of a hash

// The output function of SplitMix64 (Steele, Lea, Flood 2014).
inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Random access to the sequence of a SplitMix64 that starts at a mixture of seed and stream.
class Signs {
 public:
  Signs(std::uint64_t seed, std::uint64_t stream) : start_(mix(mix(seed + step) + stream * step)) {}

  std::uint64_t operator[](std::size_t i) const { return mix(start_ + (i + 1) * step); }

 private:
  static constexpr std::uint64_t step = 0x9E3779B97F4A7C15u;
  std::uint64_t start_;
};

// Fills b, which has `probes` columns; n comes from bistochastize.
template <class T>
void draw_probes(const Grid& grid, const T* n, const T* weight, double smoothness,
                 std::uint64_t seed, std::size_t probes, T* b, int threads) {
  const Signs of_vertex(seed, edge_kinds);
  const auto sign = [](std::uint64_t bits, std::size_t k) {
    return (bits >> k) & 1 ? T{1} : T{-1};
  };
  parallel_for(
      team_size(threads, grid.vertices, 4096), grid.bands(), [&](std::size_t band, std::size_t) {
        const Band rows(grid, band);
        for (std::size_t v = rows.first; v < rows.last; ++v) {
          const T root = std::sqrt(weight[v]);
          const std::uint64_t bits = of_vertex[v];
          for (std::size_t k = 0; k < probes; ++k) b[v * probes + k] = root * sign(bits, k);
        }
        for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
          const double factor = smoothness * (kind == range_edges ? grid.range : grid.space);
          const Signs of_edge(seed, kind);
          each_edge(grid, band, kind, [&](std::size_t e, std::size_t a, std::size_t c, auto ends) {
            const auto root = static_cast<T>(
                std::sqrt(factor * static_cast<double>(n[a]) * static_cast<double>(n[c])));
            const std::uint64_t bits = of_edge[e];
            for (std::size_t k = 0; k < probes; ++k) {
              const T flow = root * sign(bits, k);
              if constexpr (ends != Ends::only_b) b[a * probes + k] += flow;
              if constexpr (ends != Ends::only_a) b[c * probes + k] -= flow;
            }
          });
        }
      });
}

}  // namespace bilateral
