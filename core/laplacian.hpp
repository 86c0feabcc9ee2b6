// The matrix A = lambda (D_m - D_n B-bar D_n) + diag(S c) of the system.
//
// With m = n * (B-bar n), D_m - D_n B-bar D_n is a graph Laplacian with edge weights n_i n_j B_ij,
// so A d is computed from differences,
//   (A d)_i = sum_j lambda n_i n_j B_ij (d_i - d_j) + (S c)_i d_i,
// which keeps constants exactly and does not lose a small S c beside a large lambda m in float32.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "edges.hpp"
#include "grid.hpp"

namespace bilateral {

template <class T>
class Laplacian {
 public:
  Laplacian(const Grid& grid, const T* n, const T* weight, double smoothness)
      : grid_(grid), n_(n), weight_(weight), smoothness_(smoothness) {
    for (std::size_t kind = 0; kind < edge_kinds; ++kind)
      conductance_[kind] = Buffer<T>(grid.edges[kind].edge.size());
  }

  const Grid& grid() const { return grid_; }

  // lambda n_a n_b B_ab of the edges that start in one band. Comes before everything else.
  void prepare(std::size_t band) {
    const Band rows(grid_, band);
    for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
      const T factor =
          static_cast<T>(smoothness_ * (kind == range_edges ? grid_.range : grid_.space));
      const EdgeList& list = grid_.edges[kind];
      for (std::size_t e = list.row[rows.row]; e < list.row[rows.row_end]; ++e)
        conductance_[kind][e] = factor * n_[list.edge[e].a] * n_[list.edge[e].b];
    }
  }

  // out = A in, K channels, for the vertices of one band.
  template <std::size_t K>
  void multiply(std::size_t band, const T* in, T* out) const {
    const Band rows(grid_, band);
    for (std::size_t i = rows.first; i < rows.last; ++i)
      for (std::size_t k = 0; k < K; ++k) out[i * K + k] = weight_[i] * in[i * K + k];
    for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
      const Edge* edges = grid_.edges[kind].edge.data();
      const T* conductance = conductance_[kind].data();
      const auto flow = [=](std::size_t e, std::size_t k) {
        return conductance[e] * (in[edges[e].a * K + k] - in[edges[e].b * K + k]);
      };
      each_edge(
          grid_, rows, kind,
          [&](std::size_t e) {
            for (std::size_t k = 0; k < K; ++k) {
              const T f = flow(e, k);
              out[edges[e].a * K + k] += f;
              out[edges[e].b * K + k] -= f;
            }
          },
          [&](std::size_t e) {
            for (std::size_t k = 0; k < K; ++k) out[edges[e].a * K + k] += flow(e, k);
          },
          [&](std::size_t e) {
            for (std::size_t k = 0; k < K; ++k) out[edges[e].b * K + k] -= flow(e, k);
          });
    }
  }

  // diag(A) of one band.
  void diagonal(std::size_t band, T* out) const {
    const Band rows(grid_, band);
    std::copy(weight_ + rows.first, weight_ + rows.last, out + rows.first);
    for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
      const Edge* edges = grid_.edges[kind].edge.data();
      const T* conductance = conductance_[kind].data();
      const auto to_a = [&](std::size_t e) { out[edges[e].a] += conductance[e]; };
      const auto to_b = [&](std::size_t e) { out[edges[e].b] += conductance[e]; };
      const auto to_both = [&](std::size_t e) {
        to_a(e);
        to_b(e);
      };
      each_edge(grid_, rows, kind, to_both, to_a, to_b);
    }
  }

 private:
  const Grid& grid_;
  const T* n_;
  const T* weight_;
  double smoothness_;
  std::array<Buffer<T>, edge_kinds> conductance_;
};

}  // namespace bilateral
