// Smoothing on the graph of pixels, each joined to its eight neighbours: what takes away the
// blocks that a grid's cells leave. Minimizes over z, for one channel,
//   sum over neighbours of smoothness * colour_pq * nearness_pq * rho(z_p - z_q)
//     + sum over pixels of weight_p (z_p - target_p)^2 + anchor (z_p - start_p)^2
//     + sum over blocks of weight_b (mean_b(z) - low_b)^2,
// with Cauchy's rho, by reweighting and Jacobi-preconditioned conjugate gradients.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "base/exponential.hpp"
#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "base/vectors.hpp"
#include "filters/block_means.hpp"

namespace bilateral {

// To the right, down, and down along both diagonals: half of the eight neighbours.
inline constexpr std::size_t directions = 4;

namespace detail {

// Rows of one plane with a margin of one pixel all around, whose values never count.
template <class T>
class Plane {
 public:
  Plane(std::size_t height, std::size_t width)
      : stride_(width + 2), data_((height + 2) * stride_, T{0}) {}

  T* row(std::size_t y) { return data_.data() + (y + 1) * stride_ + 1; }
  const T* row(std::size_t y) const { return data_.data() + (y + 1) * stride_ + 1; }
  std::size_t stride() const { return stride_; }

 private:
  std::size_t stride_;
  Buffer<T> data_;
};

// One for each direction.
template <class T>
using Planes = std::array<Plane<T>, directions>;

template <class T>
Planes<T> planes(std::size_t height, std::size_t width) {
  const auto plane = [&] { return Plane<T>(height, width); };
  return {plane(), plane(), plane(), plane()};
}

// Where the neighbour of a direction lies.
inline std::array<std::ptrdiff_t, directions> offsets(std::size_t stride) {
  const auto down = static_cast<std::ptrdiff_t>(stride);
  return {1, down, down + 1, down - 1};
}

template <class T>
using Rows = std::array<T*, directions>;

// out = base * p + the sum of the differences from all neighbours by weight; returns p . out.
template <class T>
BILATERAL_INLINE double multiply_row_body(const T* __restrict p, const Rows<const T>& weight,
                                          const T* __restrict base, std::ptrdiff_t down,
                                          std::size_t n, T* __restrict out) {
  const T* __restrict e = weight[0];
  const T* __restrict s = weight[1];
  const T* __restrict d = weight[2];
  const T* __restrict u = weight[3];
  return eight_sums(n, [=](std::size_t k) __attribute__((always_inline)) {
    const auto i = static_cast<std::ptrdiff_t>(k);
    const T v = p[i];
    T sum = base[i] * v;
    sum += e[i] * (v - p[i + 1]) + e[i - 1] * (v - p[i - 1]);
    sum += s[i] * (v - p[i + down]) + s[i - down] * (v - p[i - down]);
    sum += d[i] * (v - p[i + down + 1]) + d[i - down - 1] * (v - p[i - down - 1]);
    sum += u[i] * (v - p[i + down - 1]) + u[i - down + 1] * (v - p[i - down + 1]);
    out[i] = sum;
    return v * sum;
  });
}

// weight = colour / (1 + (difference / scale)^2) for one direction.
template <class T>
BILATERAL_INLINE void reweigh_row_body(const T* __restrict z, const T* __restrict other,
                                       const T* __restrict colour, T unit, std::size_t n,
                                       T* __restrict weight) {
  for (std::size_t i = 0; i < n; ++i) {
    const T e = (z[i] - other[i]) * unit;
    weight[i] = colour[i] / (1 + e * e);
  }
}

template <class T>
BILATERAL_INLINE void degree_row_body(const Rows<const T>& weight, const T* __restrict base,
                                      std::ptrdiff_t down, std::size_t n, T* __restrict out) {
  const T* __restrict e = weight[0];
  const T* __restrict s = weight[1];
  const T* __restrict d = weight[2];
  const T* __restrict u = weight[3];
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(n); ++i)
    out[i] = base[i] + e[i] + e[i - 1] + s[i] + s[i - down] + d[i] + d[i - down - 1] + u[i] +
             u[i - down + 1];
}

#define BILATERAL_POLISH_LOOPS(T)                                                             \
  BILATERAL_MULTIVERSION inline double multiply_row(const T* p, const Rows<const T>& weight,  \
                                                    const T* base, std::ptrdiff_t down,       \
                                                    std::size_t n, T* out) {                  \
    return multiply_row_body(p, weight, base, down, n, out);                                  \
  }                                                                                           \
  BILATERAL_MULTIVERSION inline void reweigh_row(const T* z, const T* other, const T* colour, \
                                                 T unit, std::size_t n, T* weight) {          \
    reweigh_row_body(z, other, colour, unit, n, weight);                                      \
  }                                                                                           \
  BILATERAL_MULTIVERSION inline void degree_row(const Rows<const T>& weight, const T* base,   \
                                                std::ptrdiff_t down, std::size_t n, T* out) { \
    degree_row_body(weight, base, down, n, out);                                              \
  }
BILATERAL_POLISH_LOOPS(float)
BILATERAL_POLISH_LOOPS(double)
#undef BILATERAL_POLISH_LOOPS

}  // namespace detail

// smoothness * nearness * exp(-sum_c |I_c(p) - I_c(q)| / sigma) between neighbours.
template <class T>
class PixelGraph {
 public:
  template <class R>
  PixelGraph(const R* pixels, std::size_t height, std::size_t width, std::size_t channels,
             double smoothness, double sigma, int threads)
      : height_(height), width_(width), colour_(detail::planes<T>(height, width)) {
    const T unit = static_cast<T>(1 / sigma);
    parallel_for(
        team_size(threads, height * width, 16384), height, [&](std::size_t y, std::size_t) {
          for (std::size_t k = 0; k < directions; ++k) {
            if (k > 0 && y + 1 == height) break;
            const std::size_t begin = k == 3, end = width - (k % 2 == 0);
            const auto factor = static_cast<T>(smoothness * (k < 2 ? 1 : std::sqrt(0.5)));
            const R* here = pixels + y * width * channels;
            const std::ptrdiff_t across = k == 0 || k == 2 ? 1 : k == 3 ? -1 : 0;
            const R* there = here + ((k > 0 ? static_cast<std::ptrdiff_t>(width) : 0) + across) *
                                        static_cast<std::ptrdiff_t>(channels);
            T* out = colour_[k].row(y);
            for (std::size_t x = begin; x < end; ++x) {
              T distance = 0;
              for (std::size_t c = x * channels; c < (x + 1) * channels; ++c)
                distance += std::abs(static_cast<T>(here[c]) - static_cast<T>(there[c]));
              out[x] = factor * decay(distance * unit);
            }
          }
        });
  }

  std::size_t height() const { return height_; }
  std::size_t width() const { return width_; }
  const detail::Planes<T>& colour() const { return colour_; }

 private:
  std::size_t height_, width_;
  detail::Planes<T> colour_;
};

// What is known of z. Null: nothing of that kind.
template <class T>
struct PolishData {
  const T* target = nullptr;  // by pixel; read where weight > 0
  const T* weight = nullptr;
  double anchor = 0;  // the start counts as a target with this weight
  const Blocks<T>* blocks = nullptr;
  const T* low = nullptr;  // by block; read where low_weight > 0
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
        low_(data.blocks ? data.blocks->rows() * data.blocks->columns() : 0) {}

  // Improves z in place.
  void run(T* z, double scale, int rounds, int steps) {
    run_team(team_, [&](const Worker& worker) {
      const Lines lines(worker, *this);
      Scratch scratch{{}, std::vector<T>(width_)};
      lines.each([&](std::size_t y) { begin(y, z); });
      worker.barrier.wait();
      for (int round = 0; round < rounds; ++round) reweigh(worker, lines, z, scale, steps, scratch);
      lines.each([&](std::size_t y) { std::copy_n(z_.row(y), width_, z + y * width_); });
    });
  }

 private:
  // One row of blocks and one of pixels, of each thread.
  struct Scratch {
    std::vector<T> line, spread;
  };

  // The rows of one thread.
  class Lines {
   public:
    Lines(const Worker& worker, const Polish& of)
        : begin_(of.height_ * static_cast<std::size_t>(worker.rank) /
                 static_cast<std::size_t>(worker.size)),
          end_(of.height_ * static_cast<std::size_t>(worker.rank + 1) /
               static_cast<std::size_t>(worker.size)) {}

    template <class F>
    void each(F&& f) const {
      for (std::size_t y = begin_; y < end_; ++y) f(y);
    }

   private:
    std::size_t begin_, end_;
  };

  // base = what the data terms add to the diagonal of A.
  void begin(std::size_t y, const T* z) {
    std::copy_n(z + y * width_, width_, z_.row(y));
    T* base = base_.row(y);
    const auto anchor = static_cast<T>(data_.anchor);
    for (std::size_t x = 0; x < width_; ++x)
      base[x] = anchor + (data_.weight ? data_.weight[y * width_ + x] : T{0});
  }

  // One round: the weights of z as it is, then conjugate gradients.
  void reweigh(const Worker& worker, const Lines& lines, const T* start, double scale, int steps,
               Scratch& scratch) {
    const auto down = static_cast<std::ptrdiff_t>(z_.stride());
    const auto to = detail::offsets(z_.stride());
    lines.each([&](std::size_t y) {
      for (std::size_t k = 0; k < directions; ++k)
        detail::reweigh_row(z_.row(y), z_.row(y) + to[k], graph_.colour()[k].row(y),
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
    for (int step = 0; step < steps && energy > 0; ++step) {
      mean_blocks(worker, p_, scratch, false);
      lines.each([&](std::size_t y) { sums_[y] = multiply(y, p_, scratch); });
      const double curvature = total(worker);
      if (!(curvature > 0)) break;
      const T alpha = static_cast<T>(energy / curvature);
      lines.each([&](std::size_t y) {
        sums_[y] = detail::descend(alpha, p_.row(y), q_.row(y), inverse_.row(y), z_.row(y),
                                   r_.row(y), width_);
      });
      const double left = total(worker);
      const T beta = static_cast<T>(left / energy);
      energy = left;
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

  // low_ = weight * (mean of v, less the low-resolution value if `against`). Ends with a barrier.
  void mean_blocks(const Worker& worker, const detail::Plane<T>& v, Scratch& scratch,
                   bool against) {
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
        out[i] = w > 0 ? w * (out[i] - (against ? data_.low[b] : T{0})) : T{0};
      }
    }
    worker.barrier.wait();
  }

  // q = A v for one row; returns v . q.
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

  // From q = A z without the targets: r, 1 / diagonal and the first direction; returns r . p.
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

  // The sum of sums_, the same for all threads.
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
  std::vector<double> sums_;  // by row
  detail::Plane<T> z_, p_, q_, r_, base_, inverse_;
  detail::Planes<T> weight_;
  std::vector<T> low_;
};

}  // namespace bilateral
