// Preconditioned conjugate gradients (supplement, Algorithm 2) on
//   A = lambda (D_m - D_n B-bar D_n) + diag(S c).
//
// With m = n * (B-bar n), D_m - D_n B-bar D_n is a graph Laplacian with edge weights n_i n_j B_ij,
// so A d is computed from differences,
//   (A d)_i = sum_j lambda n_i n_j B_ij (d_i - d_j) + (S c)_i d_i,
// which keeps constants exactly and does not lose a small S c beside a large lambda m in float32.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "edges.hpp"
#include "grid.hpp"
#include "hierarchy.hpp"
#include "threads.hpp"
#include "vectors.hpp"

namespace bilateral {

enum class Preconditioner { jacobi, pyramid };

struct PcgOptions {
  double smoothness = 0;
  Preconditioner preconditioner = Preconditioner::pyramid;
  int least_steps = 2;
  int most_steps = 25;
  double tolerance = -1;  // negative: always most_steps
  int threads = 1;
  // Called by the calling thread after each step with the step's number and its error estimate;
  // true ends the solve.
  std::function<bool(int, double)> after_step;
};

struct PcgResult {
  std::vector<double> residuals;  // per step: the estimated remaining error, relative to `scale`
  bool converged = false;
  bool cancelled = false;
};

namespace detail {

template <class T, std::size_t K>
class Pcg {
 public:
  using Sums = std::array<double, K>;

  Pcg(const Grid& grid, const T* n, const T* weight, const std::uint8_t* active,
      const PcgOptions& options)
      : grid_(grid),
        n_(n),
        weight_(weight),
        active_(active),
        options_(options),
        depth_(options.preconditioner == Preconditioner::pyramid ? grid.levels.size() : 0),
        d_(grid.vertices * K),
        r_(grid.vertices * K),
        q_(grid.vertices * K),
        inverse_(grid.vertices),
        parts_(3 * grid.bands()),
        parts_z_(depth_) {
    for (std::size_t kind = 0; kind < edge_kinds; ++kind)
      conductance_[kind] = Buffer<T>(grid.edges[kind].edge.size());
    if (depth_ > 0) {
      z_ = pyramid_vector<T>(grid, K);
      scale_ = pyramid_vector<T>(grid, 1);
    }
    // Levels too small to share are left to one thread.
    while (shared_ < depth_ && grid.levels[shared_].parent_band.back() >= 2048) ++shared_;
  }

  // On entry x is the start, on return the solution. `scale` is the size of the answer, per
  // channel, in which the error estimate is given.
  PcgResult run(const T* b, T* x, const Sums& scale) {
    PcgResult result;
    const int team = team_size(options_.threads, grid_.vertices, 4096);
    run_team(team, [&](const Worker& worker) { iterate(worker, b, x, scale, result); });
    return result;
  }

 private:
  enum { curvature, movement, energy };  // the three sums kept per band

  template <class F>
  void each_band(const Worker& worker, F&& f) {
    const Share share(grid_.band_vertex, worker);
    for (std::size_t band = share.begin; band < share.end; ++band)
      f(band, grid_.band_vertex[band], grid_.band_vertex[band + 1]);
  }

  Sums& part(int kind, std::size_t band) {
    return parts_[3 * band + static_cast<std::size_t>(kind)];
  }

  Sums total(int kind) {
    Sums sum{};
    for (std::size_t band = 0; band < grid_.bands(); ++band)
      for (std::size_t k = 0; k < K; ++k) sum[k] += part(kind, band)[k];
    return sum;
  }

  // out = A in, for the vertices of one band.
  void product(std::size_t band, const T* in, T* out) {
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

  // Edge weights lambda n_a n_b B_ab.
  void weigh_edges(const Worker& worker) {
    each_band(worker, [&](std::size_t band, std::size_t, std::size_t) {
      const Band rows(grid_, band);
      for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
        const T factor =
            static_cast<T>(options_.smoothness * (kind == range_edges ? grid_.range : grid_.space));
        const EdgeList& list = grid_.edges[kind];
        for (std::size_t e = list.row[rows.row]; e < list.row[rows.row_end]; ++e)
          conductance_[kind][e] = factor * n_[list.edge[e].a] * n_[list.edge[e].b];
      }
    });
    worker.barrier.wait();
  }

  // diag(A) of one band, into inverse_.
  void diagonal(std::size_t band) {
    const Band rows(grid_, band);
    std::copy(weight_ + rows.first, weight_ + rows.last, inverse_.data() + rows.first);
    for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
      const Edge* edges = grid_.edges[kind].edge.data();
      const T* conductance = conductance_[kind].data();
      const auto to_a = [&](std::size_t e) { inverse_[edges[e].a] += conductance[e]; };
      const auto to_b = [&](std::size_t e) { inverse_[edges[e].b] += conductance[e]; };
      each_edge(grid_, rows, kind, [&](std::size_t e) { to_a(e), to_b(e); }, to_a, to_b);
    }
  }

  // The preconditioner's diagonals: 1 / diag(A), and 2^-(5 + k) P(1) / P(diag A) at level k.
  void prepare(const Worker& worker) {
    each_band(worker, [&](std::size_t band, std::size_t begin, std::size_t end) {
      diagonal(band);
      if (depth_ > 0) lift_band<1>(grid_.levels[0], band, inverse_.data(), scale_[0].data());
      for (std::size_t i = begin; i < end; ++i)
        inverse_[i] = inverse_[i] > T{0} ? T{1} / inverse_[i] : T{0};
    });
    worker.barrier.wait();
    for (std::size_t k = 1; k < depth_; ++k) {
      const Share share(grid_.levels[k].band, worker);
      for (std::size_t band = share.begin; band < share.end; ++band)
        lift_band<1>(grid_.levels[k], band, scale_[k - 1].data(), scale_[k].data());
      worker.barrier.wait();
    }
    if (worker.rank == 0)
      for (std::size_t k = 0; k < depth_; ++k) {
        parts_z_[k].resize(bands_above(k).size() - 1);
        const double weight = std::pow(2.0, -static_cast<double>(5 + k + 1));
        for (std::size_t i = 0; i < scale_[k].size(); ++i) {
          const double diagonal = static_cast<double>(scale_[k][i]);
          scale_[k][i] =
              static_cast<T>(diagonal > 0 ? weight * grid_.levels[k].size[i] / diagonal : 0);
        }
      }
    worker.barrier.wait();
  }

  // z_{k+2} = lift of z_{k+1}, for the bands of one share.
  void lift(std::size_t k, std::size_t begin, std::size_t end) {
    for (std::size_t band = begin; band < end; ++band)
      lift_band<K>(grid_.levels[k], band, z_[k - 1].data(), z_[k].data());
  }

  // Scales level k + 1, adds what comes from level k + 2, and sums z^T (scale z).
  void lower(std::size_t k, std::size_t band, std::size_t begin, std::size_t end) {
    Sums sum{};
    T* z = z_[k].data();
    const T* scale = scale_[k].data();
    const bool top = k + 1 == depth_;
    const std::uint32_t* parent = top ? nullptr : grid_.levels[k + 1].parent.data();
    const T* above = top ? nullptr : z_[k + 1].data();
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t c = 0; c < K; ++c) {
        const T scaled = scale[i] * z[i * K + c];
        sum[c] += static_cast<double>(scaled) * static_cast<double>(z[i * K + c]);
        z[i * K + c] = top ? scaled : scaled + above[parent[i] * K + c];
      }
    parts_z_[k][band] = sum;
  }

  // The bands of level k + 1's vertices; the top, one vertex, is a band by itself.
  const std::vector<std::uint32_t>& bands_above(std::size_t k) const {
    return k + 1 < depth_ ? grid_.levels[k + 1].band : top_band_;
  }

  void lower_bands(std::size_t k, std::size_t begin, std::size_t end) {
    const auto& band = bands_above(k);
    for (std::size_t i = begin; i < end; ++i) lower(k, i, band[i], band[i + 1]);
  }

  // On entry z_[0] holds the lifted residual; on return the collapsed correction from all levels
  // above the grid.
  void cycle(const Worker& worker) {
    worker.barrier.wait();
    for (std::size_t k = 1; k < shared_; ++k) {
      const Share share(grid_.levels[k].band, worker);
      lift(k, share.begin, share.end);
      worker.barrier.wait();
    }
    const std::size_t first = std::max<std::size_t>(shared_, 1);
    if (worker.rank == 0) {
      for (std::size_t k = first; k < depth_; ++k) lift(k, 0, grid_.levels[k].band.size() - 1);
      for (std::size_t k = depth_; k-- > shared_;) lower_bands(k, 0, bands_above(k).size() - 1);
    }
    worker.barrier.wait();
    for (std::size_t k = shared_; k-- > 0;) {
      const Share share(bands_above(k), worker);
      lower_bands(k, share.begin, share.end);
      worker.barrier.wait();
    }
  }

  // r^T M^-1 r = sum over the levels of z^T (scale z).
  Sums preconditioned_norm() {
    Sums sum = total(energy);
    for (const auto& level : parts_z_)
      for (const Sums& band : level)
        for (std::size_t k = 0; k < K; ++k) sum[k] += band[k];
    return sum;
  }

  // r = b - A x and the first direction from it. Returns r^T M^-1 r.
  Sums begin(const Worker& worker, const T* b, const T* x) {
    each_band(worker, [&](std::size_t band, std::size_t begin, std::size_t end) {
      product(band, x, q_.data());
      Sums sum{};
      for (std::size_t i = begin; i < end; ++i)
        for (std::size_t k = 0; k < K; ++k) {
          const T r = active_ && !active_[i] ? T{0} : b[i * K + k] - q_[i * K + k];
          r_[i * K + k] = r;
          d_[i * K + k] = T{0};
          sum[k] += static_cast<double>(r * (inverse_[i] * r));
        }
      part(energy, band) = sum;
      if (depth_ > 0) lift_band<K>(grid_.levels[0], band, r_.data(), z_[0].data());
    });
    if (depth_ > 0) cycle(worker);
    worker.barrier.wait();
    const Sums norm = preconditioned_norm();
    direction(worker, Sums{});
    return norm;
  }

  void iterate(const Worker& worker, const T* b, T* x, const Sums& scale, PcgResult& result) {
    // Steps too small to change a T are noise.
    const double tolerance =
        std::max(options_.tolerance, 0.05 * static_cast<double>(std::numeric_limits<T>::epsilon()));
    weigh_edges(worker);
    prepare(worker);
    Sums norm = begin(worker, b, x);
    std::array<bool, K> finished{};
    for (int step = 1; step <= options_.most_steps; ++step) {
      multiply(worker);
      const Sums bend = total(curvature), moved = total(movement);
      Sums alpha{}, beta{};
      double estimate = 0;
      bool all = true;
      for (std::size_t k = 0; k < K; ++k) {
        if (!finished[k] && bend[k] > 0) alpha[k] = norm[k] / bend[k];
        const double rms =
            std::sqrt(moved[k] / static_cast<double>(grid_.pixels())) * alpha[k] / scale[k];
        finished[k] = finished[k] || (step >= options_.least_steps && 1.5 * rms <= tolerance);
        all = all && finished[k];
        estimate = std::max(estimate, 1.5 * rms);
      }
      update(worker, alpha, x);
      if (worker.rank == 0) {
        result.residuals.push_back(estimate);
        result.converged = all;
        result.cancelled = options_.after_step && options_.after_step(step, estimate);
      }
      if (all || step == options_.most_steps) break;
      if (depth_ > 0) cycle(worker);
      worker.barrier.wait();
      if (result.cancelled) break;
      const Sums next = preconditioned_norm();
      for (std::size_t k = 0; k < K; ++k) beta[k] = norm[k] > 0 ? next[k] / norm[k] : 0;
      norm = next;
      direction(worker, beta);
    }
  }

  // q = A d, with d^T q and the sum of mass d^2.
  void multiply(const Worker& worker) {
    each_band(worker, [&](std::size_t band, std::size_t begin, std::size_t end) {
      product(band, d_.data(), q_.data());
      const T* d = d_.data();
      const T* q = q_.data();
      const float* mass = grid_.mass.data();
      Sums bend{}, moved{};
      if constexpr (K == 1) {
        bend[0] = dot(d + begin, q + begin, end - begin);
        moved[0] = weighted_square(d + begin, mass + begin, end - begin);
      } else {
        for (std::size_t i = begin; i < end; ++i)
          for (std::size_t k = 0; k < K; ++k) {
            const T value = d[i * K + k];
            bend[k] += static_cast<double>(value * q[i * K + k]);
            moved[k] += static_cast<double>(static_cast<T>(mass[i]) * value * value);
          }
      }
      part(curvature, band) = bend;
      part(movement, band) = moved;
    });
    worker.barrier.wait();
  }

  // x += alpha d, r -= alpha q; starts M^-1 r.
  void update(const Worker& worker, const Sums& alpha, T* x) {
    std::array<T, K> step;
    for (std::size_t k = 0; k < K; ++k) step[k] = static_cast<T>(alpha[k]);
    each_band(worker, [&](std::size_t band, std::size_t begin, std::size_t end) {
      const T* d = d_.data();
      const T* q = q_.data();
      const T* inverse = inverse_.data();
      T* r = r_.data();
      Sums sum{};
      if constexpr (K == 1) {
        sum[0] = descend(step[0], d + begin, q + begin, inverse + begin, x + begin, r + begin,
                         end - begin);
      } else {
        for (std::size_t i = begin; i < end; ++i)
          for (std::size_t k = 0; k < K; ++k) {
            x[i * K + k] += step[k] * d[i * K + k];
            const T left = r[i * K + k] - step[k] * q[i * K + k];
            r[i * K + k] = left;
            sum[k] += static_cast<double>(left * (inverse[i] * left));
          }
      }
      part(energy, band) = sum;
      if (depth_ > 0) lift_band<K>(grid_.levels[0], band, r, z_[0].data());
    });
  }

  // d = M^-1 r + beta d
  void direction(const Worker& worker, const Sums& beta) {
    std::array<T, K> keep;
    for (std::size_t k = 0; k < K; ++k) keep[k] = static_cast<T>(beta[k]);
    const std::uint32_t* parent = depth_ > 0 ? grid_.levels[0].parent.data() : nullptr;
    const T* z = depth_ > 0 ? z_[0].data() : nullptr;
    each_band(worker, [&](std::size_t, std::size_t begin, std::size_t end) {
      if constexpr (K == 1) {
        turn(keep[0], inverse_.data() + begin, r_.data() + begin, z, z ? parent + begin : nullptr,
             d_.data() + begin, end - begin);
      } else {
        for (std::size_t i = begin; i < end; ++i)
          for (std::size_t k = 0; k < K; ++k) {
            const T s = inverse_[i] * r_[i * K + k] + (z ? z[parent[i] * K + k] : T{0});
            d_[i * K + k] = s + keep[k] * d_[i * K + k];
          }
      }
      if (active_)
        for (std::size_t i = begin; i < end; ++i)
          if (!active_[i]) std::fill_n(d_.data() + i * K, K, T{0});
    });
    worker.barrier.wait();
  }

  const Grid& grid_;
  const T* n_;
  const T* weight_;
  const std::uint8_t* active_;  // null: every vertex
  const PcgOptions& options_;
  std::size_t depth_, shared_ = 0;
  Buffer<T> d_, r_, q_, inverse_;
  std::array<Buffer<T>, edge_kinds> conductance_;
  std::vector<Buffer<T>> z_, scale_;
  const std::vector<std::uint32_t> top_band_{0, 1};
  std::vector<Sums> parts_;
  std::vector<std::vector<Sums>> parts_z_;
};

}  // namespace detail

}  // namespace bilateral
