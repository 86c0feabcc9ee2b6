// Polish: smooths a solution on the pixel graph, to remove the blocks that the grid's cells leave.
// It minimizes over z, for one channel,
//   sum over edges pq of edge_pq rho(z_p - z_q)
//     + sum over pixels of weight_p (z_p - target_p)^2 + anchor (z_p - start_p)^2
//     + sum over blocks of low_weight_b (mean_b(z) - low_b)^2,
// with the edge weights edge_pq of the pixel graph and Cauchy's loss rho. It uses iteratively
// reweighted least squares, with Jacobi-preconditioned conjugate gradients.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "base/vector_loops.hpp"
#include "filters/block_means.hpp"
#include "filters/pixel_graph.hpp"

namespace bilateral {

namespace detail {

// One row per direction: east, south, south-east, south-west.
template <class T>
using Rows = std::array<T*, directions>;

// Writes out_i = base_i p_i + sum_j w_ij (p_i - p_j), the product with A without the blocks' term.
// Returns p . out.
template <class T>
BILATERAL_INLINE double multiply_row_body(const T* __restrict p, const Rows<const T>& weight,
                                          const T* __restrict base, std::ptrdiff_t down,
                                          std::size_t n, T* __restrict out) {
  const T* __restrict e = weight[0];
  const T* __restrict s = weight[1];
  const T* __restrict se = weight[2];
  const T* __restrict sw = weight[3];
  return eight_sums(n, [=](std::size_t k) __attribute__((always_inline)) {
    const auto i = static_cast<std::ptrdiff_t>(k);
    const T v = p[i];
    T sum = base[i] * v;
    sum += e[i] * (v - p[i + 1]) + e[i - 1] * (v - p[i - 1]);
    sum += s[i] * (v - p[i + down]) + s[i - down] * (v - p[i - down]);
    sum += se[i] * (v - p[i + down + 1]) + se[i - down - 1] * (v - p[i - down - 1]);
    sum += sw[i] * (v - p[i + down - 1]) + sw[i - down + 1] * (v - p[i - down + 1]);
    out[i] = sum;
    return v * sum;
  });
}

// Writes Cauchy's weight edge / (1 + ((z_p - z_q) / scale)^2) for one direction. `unit` is
// 1 / scale.
template <class T>
BILATERAL_INLINE void reweigh_row_body(const T* __restrict z, const T* __restrict neighbours,
                                       const T* __restrict edge, T unit, std::size_t n,
                                       T* __restrict weight) {
  for (std::size_t i = 0; i < n; ++i) {
    const T e = (z[i] - neighbours[i]) * unit;
    weight[i] = edge[i] / (1 + e * e);
  }
}

// Writes base plus the weights of all edges of each pixel: the diagonal of A.
template <class T>
BILATERAL_INLINE void degree_row_body(const Rows<const T>& weight, const T* __restrict base,
                                      std::ptrdiff_t down, std::size_t n, T* __restrict out) {
  const T* __restrict e = weight[0];
  const T* __restrict s = weight[1];
  const T* __restrict se = weight[2];
  const T* __restrict sw = weight[3];
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(n); ++i)
    out[i] = base[i] + e[i] + e[i - 1] + s[i] + s[i - down] + se[i] + se[i - down - 1] + sw[i] +
             sw[i - down + 1];
}

template <class T>
double multiply_row(const T* p, const Rows<const T>& weight, const T* base, std::ptrdiff_t down,
                    std::size_t n, T* out) {
  return multiversion<multiply_row_body<T>>(p, weight, base, down, n, out);
}

template <class T>
void reweigh_row(const T* z, const T* neighbours, const T* edge, T unit, std::size_t n, T* weight) {
  multiversion<reweigh_row_body<T>>(z, neighbours, edge, unit, n, weight);
}

template <class T>
void degree_row(const Rows<const T>& weight, const T* base, std::ptrdiff_t down, std::size_t n,
                T* out) {
  multiversion<degree_row_body<T>>(weight, base, down, n, out);
}

}  // namespace detail

// The data terms of the minimization. A null pointer leaves its term out.
template <class T>
struct PolishData {
  const T* target = nullptr;  // of each pixel; read where weight > 0
  const T* weight = nullptr;
  double anchor = 0;  // weight of the start as a target
  const Blocks<T>* blocks = nullptr;
  const T* low = nullptr;  // low-resolution value of each block; read where low_weight > 0
  const T* low_weight = nullptr;
};

template <class T>
class Polish {
 public:
  Polish(const PixelGraph<T>& graph, const PolishData<T>& data, int threads)
      : graph_(graph),
        data_(data),
        height_(graph.height()),
        width_(graph.width()),
        team_(team_size(threads, height_ * width_, 16384)),
        sums_(height_),
        z_(height_, width_),
        p_(height_, width_),
        q_(height_, width_),
        r_(height_, width_),
        base_(height_, width_),
        inverse_(height_, width_),
        weight_(detail::planes<T>(height_, width_)),
        low_(data.blocks ? data.blocks->rows() * data.blocks->columns() : 0),
        scratch_(static_cast<std::size_t>(team_)) {
    for (Scratch& scratch : scratch_)
      scratch = {std::vector<T>(width_ + 1), std::vector<T>(width_)};
  }

  // Improves z in place: `rounds` of reweighting, each with `steps` of conjugate gradients. `scale`
  // is that of Cauchy's loss.
  void run(T* z, double scale, int rounds, int steps) {
    run_team(team_, [&](const Worker& worker) {
      const Lines lines(worker, *this);
      Scratch& scratch = scratch_[static_cast<std::size_t>(worker.rank)];
      lines.each([&](std::size_t y) { load_row(y, z); });
      worker.barrier.wait();
      for (int round = 0; round < rounds; ++round)
        run_round(worker, lines, z, scale, steps, scratch);
      lines.each([&](std::size_t y) { std::copy_n(z_.row(y), width_, z + y * width_); });
    });
  }

 private:
  // Memory of one thread: one row of blocks or pixels, with room for one more, and one row of
  // pixels. Threads that wait for each other must not allocate memory.
  struct Scratch {
    std::vector<T> line, spread;
  };

  // The rows that one thread processes.
  class Lines {
   public:
    Lines(const Worker& worker, const Polish& polish)
        : begin_(polish.height_ * static_cast<std::size_t>(worker.rank) /
                 static_cast<std::size_t>(worker.size)),
          end_(polish.height_ * static_cast<std::size_t>(worker.rank + 1) /
               static_cast<std::size_t>(worker.size)) {}

    template <class F>
    void each(F&& f) const {
      for (std::size_t y = begin_; y < end_; ++y) f(y);
    }

   private:
    std::size_t begin_, end_;
  };

  // Loads a row of z, and writes base_: the part of A's diagonal that comes from the data of
  // pixels.
  void load_row(std::size_t y, const T* z) {
    std::copy_n(z + y * width_, width_, z_.row(y));
    T* base = base_.row(y);
    const auto anchor = static_cast<T>(data_.anchor);
    for (std::size_t x = 0; x < width_; ++x)
      base[x] = anchor + (data_.weight ? data_.weight[y * width_ + x] : T{0});
  }

  // Does one round: computes Cauchy's weights from the current z, then runs conjugate gradients.
  void run_round(const Worker& worker, const Lines& lines, const T* start, double scale, int steps,
                 Scratch& scratch) {
    const auto down = static_cast<std::ptrdiff_t>(z_.stride());
    const auto offset = detail::offsets(z_.stride());
    lines.each([&](std::size_t y) {
      for (std::size_t k = 0; k < directions; ++k)
        detail::reweigh_row(z_.row(y), z_.row(y) + offset[k], graph_.weight()[k].row(y),
                            static_cast<T>(1 / scale), width_, weight_[k].row(y));
    });
    mean_blocks(worker, z_, scratch, true);
    worker.barrier.wait();
    lines.each([&](std::size_t y) {
      detail::degree_row(weights(y), base_.row(y), down, width_, inverse_.row(y));
      multiply(y, z_, scratch);
      sums_[y] = residual(y, start, scratch);
    });
    double energy = total(worker);
    // Steps after convergence change nothing, until the energy underflows and they diverge.
    constexpr auto epsilon = static_cast<double>(std::numeric_limits<T>::epsilon());
    const double least = epsilon * epsilon * epsilon * epsilon * energy;
    for (int step = 0; step < steps && energy > least; ++step) {
      mean_blocks(worker, p_, scratch, false);
      lines.each([&](std::size_t y) { sums_[y] = multiply(y, p_, scratch); });
      const double curvature = total(worker);
      if (!(curvature > 0)) break;
      const T alpha = static_cast<T>(energy / curvature);
      lines.each([&](std::size_t y) {
        sums_[y] = detail::descend(alpha, p_.row(y), q_.row(y), inverse_.row(y), z_.row(y),
                                   r_.row(y), width_);
      });
      const double new_energy = total(worker);
      const T beta = static_cast<T>(new_energy / energy);
      energy = new_energy;
      lines.each([&](std::size_t y) {
        detail::turn(beta, inverse_.row(y), r_.row(y), static_cast<const T*>(nullptr), nullptr,
                     p_.row(y), width_);
      });
      worker.barrier.wait();
    }
  }

  detail::Rows<const T> weights(std::size_t y) const {
    return {weight_[0].row(y), weight_[1].row(y), weight_[2].row(y), weight_[3].row(y)};
  }

  // Writes low_ = low_weight * (block means of v), or low_weight * (block means of v - low) if
  // `subtract_low`. Ends with a barrier.
  void mean_blocks(const Worker& worker, const detail::Plane<T>& v, Scratch& scratch,
                   bool subtract_low) {
    if (!data_.blocks) return;
    worker.barrier.wait();
    const std::size_t rows = data_.blocks->rows(), columns = data_.blocks->columns();
    const auto rank = static_cast<std::size_t>(worker.rank),
               size = static_cast<std::size_t>(worker.size);
    for (std::size_t row = rows * rank / size; row < rows * (rank + 1) / size; ++row) {
      T* out = low_.data() + row * columns;
      data_.blocks->mean(row, v.row(0), v.stride(), scratch.line, out);
      for (std::size_t i = 0; i < columns; ++i) {
        const std::size_t b = row * columns + i;
        const T w = data_.low_weight[b];
        out[i] = w > 0 ? w * (out[i] - (subtract_low ? data_.low[b] : T{0})) : T{0};
      }
    }
    worker.barrier.wait();
  }

  // Writes a row of q = A v, with the blocks' term from low_. Returns v . q.
  double multiply(std::size_t y, const detail::Plane<T>& v, Scratch& scratch) {
    double sum = detail::multiply_row(v.row(y), weights(y), base_.row(y),
                                      static_cast<std::ptrdiff_t>(v.stride()), width_, q_.row(y));
    if (!data_.blocks) return sum;
    const std::vector<T>& spread = scratch.spread;
    data_.blocks->spread(y, low_.data(), scratch.line, scratch.spread.data());
    T* q = q_.row(y);
    const T* p = v.row(y);
    for (std::size_t x = 0; x < width_; ++x) {
      q[x] += spread[x];
      sum += static_cast<double>(p[x] * spread[x]);
    }
    return sum;
  }

  // Writes a row of r = b - A z, 1 / diag(A) and the first direction p = r / diag(A). Expects A z,
  // with the low-resolution values already subtracted, in q, and the diagonal without the blocks'
  // term in inverse_. Returns r . p.
  double residual(std::size_t y, const T* start, Scratch& scratch) {
    T* inverse = inverse_.row(y);
    if (data_.blocks) {
      data_.blocks->spread_squares(y, data_.low_weight, scratch.line, scratch.spread.data());
      for (std::size_t x = 0; x < width_; ++x) inverse[x] += scratch.spread[x];
    }
    const auto anchor = static_cast<T>(data_.anchor);
    T* r = r_.row(y);
    T* p = p_.row(y);
    const T* q = q_.row(y);
    double sum = 0;
    for (std::size_t x = 0; x < width_; ++x) {
      const std::size_t i = y * width_ + x;
      T b = anchor * start[i];
      if (data_.weight && data_.weight[i] > 0) b += data_.weight[i] * data_.target[i];
      inverse[x] = inverse[x] > 0 ? 1 / inverse[x] : T{0};
      r[x] = b - q[x];
      p[x] = inverse[x] * r[x];
      sum += static_cast<double>(r[x]) * static_cast<double>(p[x]);
    }
    return sum;
  }

  // Returns the sum of sums_, the same for all threads. Has a barrier before and after.
  double total(const Worker& worker) {
    worker.barrier.wait();
    double sum = 0;
    for (const double part : sums_) sum += part;
    worker.barrier.wait();
    return sum;
  }

  const PixelGraph<T>& graph_;
  PolishData<T> data_;
  std::size_t height_, width_;
  int team_;
  std::vector<double> sums_;  // one per row of pixels
  detail::Plane<T> z_, p_, q_, r_, base_, inverse_;
  detail::Planes<T> weight_;  // of the edges in this round
  std::vector<T> low_;        // one per block
  std::vector<Scratch> scratch_;
};

}  // namespace bilateral
