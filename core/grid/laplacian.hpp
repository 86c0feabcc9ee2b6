// Multiply by the matrix A = lambda (D_m - D_n B-bar D_n) + diag(S c) of the system.
//
// With m = n * (B-bar n), D_m - D_n B-bar D_n is a graph Laplacian with edge weights n_i n_j B_ij.
// So A d is computed from differences,
//   (A d)_i = sum_j lambda n_i n_j B_ij (d_i - d_j) + (S c)_i d_i.
// Differences keep constants exact and do not lose a small S c beside a large lambda m in float32.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/pack.hpp"
#include "base/threads.hpp"
#include "grid/edges.hpp"
#include "grid/grid.hpp"
#include "grid/neighbour_sums.hpp"

namespace bilateral {

template <class T>
class Laplacian {
 public:
  // For vectors of `channels` channels.
  Laplacian(const Grid& grid, const T* n, std::size_t channels)
      : grid_(grid),
        n_(n),
        by_table_(std::is_same_v<T, float> && channels == 1 && !grid.neighbours.empty()),
        degree_(by_table_ ? 0 : grid.vertices) {
    for (std::size_t kind = 0; kind < edge_kinds && !by_table_; ++kind)
      conductance_[kind] = Buffer<T>(grid.edges[kind].size());
  }

  // Sets the problem; call `set` first. Returns whether the conductances are out of date: then call
  // `prepare` for all bands, then `sum_degrees` for all bands.
  bool set(const T* weight, double smoothness) {
    weight_ = weight;
    return smoothness != std::exchange(smoothness_, smoothness);
  }

  const Grid& grid() const { return grid_; }

  // Computes lambda n_a n_b B_ab of the edges that start in one band.
  void prepare(std::size_t band) {
    if (by_table_) return;
    for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
      const T factor =
          static_cast<T>(smoothness_ * (kind == range_edges ? grid_.range : grid_.space));
      T* conductance = conductance_[kind].data();
      each_edge(grid_, band, kind, [&](std::size_t e, std::size_t a, std::size_t b, auto ends) {
        if constexpr (ends != Ends::only_b) conductance[e] = factor * n_[a] * n_[b];
      });
    }
  }

  // Computes lambda (m - n B-bar n)_ii of one band.
  void sum_degrees(std::size_t band) {
    if (by_table_) return;
    const Band rows(grid_, band);
    T* degree = degree_.data();
    std::fill(degree + rows.first, degree + rows.last, T{0});
    for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
      const T* conductance = conductance_[kind].data();
      each_edge(grid_, band, kind, [=](std::size_t e, std::size_t a, std::size_t b, auto ends) {
        if constexpr (ends != Ends::only_b) degree[a] += conductance[e];
        if constexpr (ends != Ends::only_a) degree[b] += conductance[e];
      });
    }
  }

#if defined(__x86_64__)
  // Whether to multiply by `multiply_and_sum`.
  bool by_table() const { return by_table_; }

  // out = A in for the vertices of one band, and the sums of in_i out_i and of mass_i in_i^2.
  detail::ProductSums multiply_and_sum(std::size_t band, const float* in, float* out) const {
    return detail::multiply_by_table(grid_, band, neighbour_weights(), weight_, n_, in, out);
  }
#endif

  // out = A in, K channels, for the vertices of one band.
  template <std::size_t K>
  void multiply(std::size_t band, const T* in, T* out) const {
#if defined(__x86_64__)
    if constexpr (std::is_same_v<T, float> && K == 1)
      if (by_table_) {
        multiply_and_sum(band, in, out);
        return;
      }
#endif
    const Band rows(grid_, band);
    for (std::size_t i = rows.first; i < rows.last; ++i)
      put<K>(out + i * K, weight_[i] * get<K>(in + i * K));
    for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
      const T* conductance = conductance_[kind].data();
      each_run(grid_, band, kind,
               [&](auto ends, std::size_t first_a, std::size_t first_b, const auto* edges,
                   std::size_t begin, std::size_t end) {
                 const T* in_a = in + first_a * K;
                 const T* in_b = in + first_b * K;
                 T* out_a = out + first_a * K;
                 T* out_b = out + first_b * K;
                 in_turns(begin, end, [=](std::size_t e) {
                   const std::size_t a = edges[e].a * K, b = edges[e].b * K;
                   const auto flow = conductance[e] * (get<K>(in_a + a) - get<K>(in_b + b));
                   if constexpr (ends != Ends::only_b) put<K>(out_a + a, get<K>(out_a + a) + flow);
                   if constexpr (ends != Ends::only_a) put<K>(out_b + b, get<K>(out_b + b) - flow);
                 });
               });
    }
  }

  // diag(A) of one band.
  void diagonal(std::size_t band, T* out) const {
    const Band rows(grid_, band);
#if defined(__x86_64__)
    if constexpr (std::is_same_v<T, float>)
      if (by_table_) {
        detail::blur_by_table(grid_, band, neighbour_weights(), n_, out);
        for (std::size_t i = rows.first; i < rows.last; ++i) out[i] = weight_[i] + n_[i] * out[i];
        return;
      }
#endif
    for (std::size_t i = rows.first; i < rows.last; ++i) out[i] = weight_[i] + degree_[i];
  }

 private:
  // lambda B-bar without its diagonal.
  BlurWeights neighbour_weights() const {
    return {0, smoothness_ * grid_.space, smoothness_ * grid_.range};
  }

  const Grid& grid_;
  const T* n_;
  const T* weight_ = nullptr;
  double smoothness_ = 0;
  bool by_table_;  // by the table of neighbours instead of the edges' conductances
  std::array<Buffer<T>, edge_kinds> conductance_;
  Buffer<T> degree_;
};

// x^T (D_m - D_n B-bar D_n) y, summed over the channels. Differences keep the result accurate if x
// and y have large means.
template <class T>
double smoothness_product(const Grid& grid, const T* n, const T* x, const T* y,
                          std::size_t channels, int threads) {
  std::vector<double> sums(grid.bands());
  parallel_for(
      team_size(threads, grid.vertices, 16384), grid.bands(), [&](std::size_t band, std::size_t) {
        for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
          const double factor = kind == range_edges ? grid.range : grid.space;
          each_edge(grid, band, kind, [&](std::size_t, std::size_t a, std::size_t b, auto ends) {
            if constexpr (ends == Ends::only_b) return;
            double sum = 0;
            for (std::size_t k = 0; k < channels; ++k)
              sum += static_cast<double>(x[a * channels + k] - x[b * channels + k]) *
                     static_cast<double>(y[a * channels + k] - y[b * channels + k]);
            sums[band] += factor * static_cast<double>(n[a]) * static_cast<double>(n[b]) * sum;
          });
        }
      });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace bilateral
