// BoundStats: the statistics of a target and its confidence as the bindings return them.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

#include "grid/splat.hpp"

namespace bilateral {

// The number of known pixels, the lowest and the highest value of each channel, and the first pixel
// with an invalid confidence.
using BoundStats =
    std::tuple<std::size_t, std::vector<double>, std::vector<double>, std::optional<std::size_t>>;

inline BoundStats bound_stats(const InputStats& stats) {
  std::optional<std::size_t> invalid;
  if (stats.invalid != InputStats::none) invalid = stats.invalid;
  return {stats.known, stats.low, stats.high, invalid};
}

}  // namespace bilateral
