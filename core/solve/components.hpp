// Find the connected components of the grid. The smoothness term does not change if a constant is
// added to a whole component.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "grid/edges.hpp"
#include "grid/grid.hpp"
#include "multigrid/hierarchy.hpp"

namespace bilateral {

struct Components {
  std::size_t count = 0;
  std::vector<std::uint32_t> of;  // the component of each vertex
  std::vector<double> mass;       // number of pixels of each component
};

namespace detail {

inline void sum_mass(const Grid& grid, Components& components) {
  components.mass.resize(components.count, 0.0);
  for (std::size_t v = 0; v < grid.vertices; ++v)
    components.mass[components.of[v]] += static_cast<double>(grid.mass[v]);
}

}  // namespace detail

inline Components find_components(const Grid& grid) {
  std::vector<std::uint32_t> root(grid.vertices);  // union-find; a root is the smallest vertex
  std::iota(root.begin(), root.end(), 0u);
  auto find = [&](std::uint32_t v) {
    while (root[v] != v) v = root[v] = root[root[v]];
    return v;
  };
  for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
    if ((kind == range_edges ? grid.range : grid.space) == 0) continue;
    for (std::size_t band = 0; band < grid.bands(); ++band)
      each_edge(grid, band, kind, [&](std::size_t, std::size_t a, std::size_t b, auto ends) {
        if constexpr (ends != Ends::only_b) {
          const std::uint32_t one = find(static_cast<std::uint32_t>(a));
          const std::uint32_t two = find(static_cast<std::uint32_t>(b));
          root[std::max(one, two)] = std::min(one, two);
        }
      });
  }
  Components components;
  components.of.resize(grid.vertices);
  for (std::uint32_t v = 0; v < grid.vertices; ++v) {
    const std::uint32_t first = find(v);
    components.of[v] =
        first == v ? static_cast<std::uint32_t>(components.count++) : components.of[first];
  }
  detail::sum_mass(grid, components);
  return components;
}

// The same from a multigrid hierarchy, where a row without a parent represents a component.
template <class T>
Components find_components(const Grid& grid, const Hierarchy<T>& multigrid) {
  const Graph<T>& last = multigrid.depth() == 0 ? multigrid.fine : multigrid.coarse.back();
  if (last.entry.size() > 0) return find_components(grid);
  Components components;
  Buffer<std::uint32_t> of(last.rows);
  std::iota(of.data(), of.data() + last.rows, 0u);
  auto count = static_cast<std::uint32_t>(last.rows);
  for (std::size_t k = multigrid.depth(); k-- > 0;) {
    const Buffer<std::uint32_t>& parent = multigrid.transfers[k].parent;
    const std::size_t none = multigrid.coarse[k].rows;
    Buffer<std::uint32_t> below(parent.size());
    for (std::size_t i = 0; i < parent.size(); ++i)
      below[i] = parent[i] == none ? count++ : of[parent[i]];
    of = std::move(below);
  }
  components.count = count;
  components.of.resize(grid.vertices);
  for (std::size_t i = 0; i < multigrid.fine.rows; ++i)
    if (multigrid.fine.vertex[i] != nowhere) components.of[multigrid.fine.vertex[i]] = of[i];
  detail::sum_mass(grid, components);
  return components;
}

// Whether the component of each vertex has data.
template <class T>
std::vector<std::uint8_t> with_data(const Components& components, const T* weight) {
  std::vector<std::uint8_t> any(components.count, 0), out(components.of.size());
  for (std::size_t v = 0; v < out.size(); ++v) any[components.of[v]] |= weight[v] > T{0};
  for (std::size_t v = 0; v < out.size(); ++v) out[v] = any[components.of[v]];
  return out;
}

// Shifts each component by a constant so that its residuals sum to 0. Since L 1 = 0, that sum is
// sum c (t - x) exactly. The shift removes the one error that a large smoothness hides from
// conjugate gradients. Returns the shift of the worst channel, RMS over the image and relative to
// `scale`, or 0 if the shift is a rounding error.
template <std::size_t K, class T>
double shift_components(const Grid& grid, const Components& components, const T* weight, const T* b,
                        const std::array<double, K>& scale, T* x) {
  struct Sum {
    double weight = 0;
    std::array<double, K> residual{};
  };
  std::vector<Sum> sums(components.count);
  for (std::size_t v = 0; v < components.of.size(); ++v) {
    Sum& sum = sums[components.of[v]];
    const auto w = static_cast<double>(weight[v]);
    sum.weight += w;
    for (std::size_t k = 0; k < K; ++k)
      sum.residual[k] += static_cast<double>(b[v * K + k]) - w * static_cast<double>(x[v * K + k]);
  }
  std::array<double, K> moved{}, size{};
  for (std::size_t c = 0; c < components.count; ++c)
    for (std::size_t k = 0; k < K; ++k) {
      const double shift = sums[c].weight > 0 ? sums[c].residual[k] / sums[c].weight : 0;
      sums[c].residual[k] = shift;
      moved[k] += components.mass[c] * shift * shift;
    }
  for (std::size_t v = 0; v < components.of.size(); ++v)
    for (std::size_t k = 0; k < K; ++k) {
      const double value = static_cast<double>(x[v * K + k]) + sums[components.of[v]].residual[k];
      x[v * K + k] = static_cast<T>(value);
      size[k] = std::max(size[k], std::abs(value));
    }
  constexpr auto epsilon = static_cast<double>(std::numeric_limits<T>::epsilon());
  double largest = 0;
  for (std::size_t k = 0; k < K; ++k) {
    const double rms = std::sqrt(moved[k] / static_cast<double>(grid.pixels()));
    if (rms > 8 * epsilon * (size[k] + scale[k])) largest = std::max(largest, rms / scale[k]);
  }
  return largest;
}

}  // namespace bilateral
