// How an image goes on beyond its border.
#pragma once

#include <cstddef>

namespace bilateral::detail {

// Index into n items that are mirrored at both ends, the ends included, as often as it takes.
inline std::size_t mirrored(std::ptrdiff_t index, std::size_t n) {
  const auto period = static_cast<std::ptrdiff_t>(2 * n);
  const auto within = static_cast<std::size_t>((index % period + period) % period);
  return within < n ? within : 2 * n - 1 - within;
}

}  // namespace bilateral::detail
