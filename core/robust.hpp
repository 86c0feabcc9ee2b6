// Iteratively reweighted least squares (supplement, section "Robustness"): confidences from the
// residuals of the last solution.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "multiversion.hpp"
#include "splat.hpp"

namespace bilateral {

// The weight rho'(e) / e of a robust loss, as a function of e^2:
//   power: gain (1 + rate e^2)^exponent, exponential: gain exp(-rate e^2),
//   huber: gain min(1, 1 / sqrt(rate e^2)).
struct Loss {
  enum class Shape { power, exponential, huber };
  Shape shape = Shape::power;
  double gain = 1, rate = 1, exponent = -2;
};

namespace detail {

template <class T, class F>
BILATERAL_INLINE void each_weight(T* squares, std::size_t n, F weight) {
  // A residual that is no number belongs to a pixel without data.
  for (std::size_t i = 0; i < n; ++i)
    squares[i] = squares[i] <= std::numeric_limits<T>::max() ? weight(squares[i]) : T{0};
}

// Squared residuals to weights, in place. The exponents of the named losses need no pow.
template <class T>
BILATERAL_INLINE void weigh_residuals_body(const Loss& loss, T* squares, std::size_t n) {
  const auto gain = static_cast<T>(loss.gain), rate = static_cast<T>(loss.rate);
  const auto exponent = static_cast<T>(loss.exponent);
  const auto all = [=](auto weight)
                       __attribute__((always_inline)) { each_weight(squares, n, weight); };
  if (loss.shape == Loss::Shape::exponential) {
    all([=](T square) { return gain * std::exp(-rate * square); });
  } else if (loss.shape == Loss::Shape::huber) {
    all([=](T square) {
      const T scaled = rate * square;
      return scaled > T{1} ? gain / std::sqrt(scaled) : gain;
    });
  } else if (loss.exponent == -2) {
    all([=](T square) {
      const T base = T{1} / (T{1} + rate * square);
      return gain * base * base;
    });
  } else if (loss.exponent == -1) {
    all([=](T square) { return gain / (T{1} + rate * square); });
  } else if (loss.exponent == -0.5) {
    all([=](T square) { return gain / std::sqrt(T{1} + rate * square); });
  } else if (loss.exponent == 0) {
    all([=](T) { return gain; });
  } else {
    // log1p: the family's rate tends to 0 as its exponent tends to -infinity
    all([=](T square) { return gain * std::exp(exponent * std::log1p(rate * square)); });
  }
}

BILATERAL_MULTIVERSION inline void weigh_residuals(const Loss& loss, float* squares,
                                                   std::size_t n) {
  weigh_residuals_body(loss, squares, n);
}
BILATERAL_MULTIVERSION inline void weigh_residuals(const Loss& loss, double* squares,
                                                   std::size_t n) {
  weigh_residuals_body(loss, squares, n);
}

}  // namespace detail

// The confidences of one IRLS round, for `splat_target`: the loss's weight at the distance, over
// all channels, of the target from the last solution y.
template <class T>
class RobustConfidence {
 public:
  RobustConfidence(const Loss& loss, const T* target, const T* y, std::size_t channels)
      : loss_(loss), target_(target), y_(y), channels_(channels) {}

  template <class Index>
  const T* of(std::size_t p, std::size_t run, const Index* index, std::size_t first) {
    const T* y = y_ + first * channels_;
    const T* target = target_ + p * channels_;
    if (channels_ == 1) {
      for (std::size_t i = 0; i < run; ++i) {
        const T e = y[index[p + i]] - target[i];
        weights_[i] = e * e;
      }
    } else {
      for (std::size_t i = 0; i < run; ++i) {
        T square{0};
        for (std::size_t k = 0; k < channels_; ++k) {
          const T e = y[index[p + i] * channels_ + k] - target[i * channels_ + k];
          square += e * e;
        }
        weights_[i] = square;
      }
    }
    detail::weigh_residuals(loss_, weights_.data(), run);
    return weights_.data();
  }

 private:
  Loss loss_;
  const T* target_;
  const T* y_;
  std::size_t channels_;
  std::vector<T> weights_ = std::vector<T>(longest_run);
};

}  // namespace bilateral
