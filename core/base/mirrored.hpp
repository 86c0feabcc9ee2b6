// Mirror indices at the border of an image.
#pragma once

#include <cstddef>

namespace bilateral::detail {

// Maps any index to [0, n) by mirroring n items at both ends. The mirror repeats the end items.
inline std::size_t mirrored(std::ptrdiff_t index, std::size_t n) {
  const auto period = static_cast<std::ptrdiff_t>(2 * n);
  const auto within = static_cast<std::size_t>((index % period + period) % period);
  return within < n ? within : 2 * n - 1 - within;
}

}  // namespace bilateral::detail
