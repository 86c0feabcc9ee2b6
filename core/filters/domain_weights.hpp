// Domain weights: the feedback coefficients a^d of the domain transform (Gastal & Oliveira 2011),
// with d the distance of two neighbouring pixels along the curve (x, I(x)) of a reference image.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "base/buffer.hpp"
#include "base/exponential.hpp"
#include "base/multiversion.hpp"
#include "base/threads.hpp"

namespace bilateral {

// Pixels of a reference image, row-major with interleaved channels: height x width x channels.
template <class R>
struct ReferenceImage {
  const R* data;
  std::size_t height, width, channels;
};

// The scale of a^d = exp(-(step + level * sum_c |I_c(p) - I_c(q)|)) for neighbours p and q.
struct DomainScale {
  double step, level;
};

// The weights of the first pass; each later pass squares them. `across` belongs to the neighbour on
// the left, `down` to the neighbour above. Pixels without such a neighbour have weight 0.
template <class T>
struct DomainWeights {
  std::size_t height, width;
  Buffer<T> across, down;
};

namespace detail {

// The type of sum_c |I_c(p) - I_c(q)|: exact for integers, and small enough for a table for bytes.
template <class T, class R>
using Difference =
    std::conditional_t<std::is_integral_v<R>, std::int32_t, std::common_type_t<T, R>>;

template <class D, class R>
BILATERAL_INLINE D difference(const R* p, const R* q, std::size_t channels) {
  D sum = 0;
  for (std::size_t k = 0; k < channels; ++k) {
    const auto a = static_cast<D>(p[k]), b = static_cast<D>(q[k]);
    sum += a > b ? a - b : b - a;
  }
  return sum;
}

template <class D, class R>
BILATERAL_INLINE void differences_of(const R* p, const R* q, std::size_t n, std::size_t channels,
                                     D* to) {
  if (channels == 3)
    for (std::size_t x = 0; x < n; ++x) to[x] = difference<D>(p + 3 * x, q + 3 * x, 3);
  else if (channels == 1)
    for (std::size_t x = 0; x < n; ++x) to[x] = difference<D>(p + x, q + x, 1);
  else
    for (std::size_t x = 0; x < n; ++x)
      to[x] = difference<D>(p + channels * x, q + channels * x, channels);
}

// Returns whether all |values| are at most `limit`. A NaN is not.
template <class R>
bool bounded(const R* values, std::size_t n, R limit) {
  std::conditional_t<sizeof(R) == 4, std::int32_t, std::int64_t> beyond = 0;
  for (std::size_t i = 0; i < n; ++i) beyond |= std::abs(values[i]) <= limit ? 0 : 1;
  return beyond == 0;
}

// Writes exp(-(step + level * difference)).
template <class D, class T>
BILATERAL_INLINE void weights_of(const D* __restrict difference, std::size_t n, DomainScale scale,
                                 T* __restrict to) {
  using Real = std::conditional_t<std::is_integral_v<D>, T, D>;
  constexpr Real max = std::numeric_limits<Real>::max(), far = 1e4;  // exp(-far) is 0
  const auto step = static_cast<Real>(std::min(scale.step, static_cast<double>(max)));
  const auto level = static_cast<Real>(std::min(scale.level, static_cast<double>(max)));
  for (std::size_t x = 0; x < n; ++x) {
    const auto levels = static_cast<Real>(difference[x]);
    const Real exponent = step + level * (levels < max ? levels : max);  // never 0 * infinity
    to[x] = decay(static_cast<T>(exponent < far ? exponent : far));
  }
}

template <class D, class R>
void differences(const R* p, const R* q, std::size_t n, std::size_t channels, D* to) {
  multiversion<differences_of<D, R>>(p, q, n, channels, to);
}

template <class D, class T>
void decay_weights(const D* difference, std::size_t n, DomainScale scale, T* to) {
  multiversion<weights_of<D, T>>(difference, n, scale, to);
}

// Turns differences into weights, by a table for references of bytes.
template <class T, class R>
class Decay {
 public:
  using D = Difference<T, R>;

  explicit Decay(DomainScale scale) : scale_(scale) {
    if constexpr (tabulated) {
      std::array<D, table_size> differences;
      std::iota(differences.begin(), differences.end(), D{0});
      decay_weights(differences.data(), table_size, scale, table_.data());
    }
  }

  void operator()(const D* difference, std::size_t n, T* to) const {
    if constexpr (tabulated)
      for (std::size_t x = 0; x < n; ++x) to[x] = table_[static_cast<std::size_t>(difference[x])];
    else
      decay_weights(difference, n, scale_, to);
  }

 private:
  static constexpr bool tabulated = std::is_same_v<R, std::uint8_t>;
  static constexpr std::size_t table_size = tabulated ? 3 * 255 + 1 : 0;

  DomainScale scale_;
  std::array<T, table_size> table_{};
};

}  // namespace detail

// Computes the weights along a reference. Throws std::domain_error if one of its values is not
// finite.
template <class T, class R>
DomainWeights<T> domain_weights(const ReferenceImage<R>& reference, DomainScale scale,
                                int threads) {
  const std::size_t width = reference.width, row = width * reference.channels;
  DomainWeights<T> weights{reference.height, width, Buffer<T>(reference.height * width),
                           Buffer<T>(reference.height * width)};
  const detail::Decay<T, R> weigh(scale);
  const int team = team_size(threads, reference.height * width, 65536);
  std::vector<std::vector<detail::Difference<T, R>>> scratch(static_cast<std::size_t>(team));
  parallel_for(team, reference.height, [&](std::size_t y, std::size_t rank) {
    auto& difference = scratch[rank];
    difference.resize(width);
    const R* pixels = reference.data + y * row;
    if constexpr (std::is_floating_point_v<R>)
      if (!detail::bounded(pixels, row, std::numeric_limits<R>::max()))
        throw std::domain_error("reference: expected finite values, got others.");
    T* across = weights.across.data() + y * width;
    across[0] = T{0};
    detail::differences(pixels + reference.channels, pixels, width - 1, reference.channels,
                        difference.data());
    weigh(difference.data(), width - 1, across + 1);
    T* down = weights.down.data() + y * width;
    if (y == 0) {
      std::fill_n(down, width, T{0});
    } else {
      detail::differences(pixels, pixels - row, width, reference.channels, difference.data());
      weigh(difference.data(), width, down);
    }
  });
  return weights;
}

}  // namespace bilateral
