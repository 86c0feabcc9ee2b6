// Matching along strong edges, half a slice at a time: pairs of rows that are each other's
// strongest free neighbour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"
#include "multigrid/graph.hpp"

namespace bilateral {

namespace detail {

// Decided in float32, whatever T.
template <class T>
struct MatchingRows {
  const std::uint32_t *first, *to;  // the graph's entries
  const T* weight;
  float* least;            // weight of a strong edge
  std::uint32_t* nearest;  // neighbour
  std::uint32_t *pick, *mate;

  static constexpr std::size_t half = slice_rows / 2;
  using Floats = Lanes<float, half>;
  using Rows = Lanes<std::uint32_t, half>;
  using Mask = Lanes<std::int32_t, half>;

  static BILATERAL_INLINE Rows own_rows(std::size_t row) {
    return Rows{0, 1, 2, 3} + static_cast<std::uint32_t>(row);
  }

  template <class V, class From>
  static BILATERAL_INLINE V gather(const From* from, Rows at) {
    return V{from[at[0]], from[at[1]], from[at[2]], from[at[3]]};
  }

  BILATERAL_INLINE Floats weights(std::size_t entry) const {
    const T* w = weight + entry;
    return Floats{static_cast<float>(w[0]), static_cast<float>(w[1]), static_cast<float>(w[2]),
                  static_cast<float>(w[3])};
  }

  // The heaviest entry of each row of half a slice for which `allowed(weight, to)`, or nowhere.
  // Ties go by a hash of the edge that both ends agree on.
  template <class Allowed>
  BILATERAL_INLINE Rows heaviest(std::size_t row, Allowed allowed, Floats& heaviest) const {
    const Rows own = own_rows(row);
    const std::size_t s = row / slice_rows, lane = row % slice_rows;
    Floats best{};
    Rows rank{}, choice = Rows{} + nowhere;
    for (std::size_t k = first[s]; k < first[s + 1]; ++k) {
      const Floats w = weights(k * slice_rows + lane);
      const auto there = load_lanes<Rows>(to + k * slice_rows + lane);
      const Rows hash = (there ^ own) * 0x9e3779b1u;
      const Mask better =
          allowed(w, there) & (w > 0.0f) & ((w > best) | ((w == best) & (Mask)(hash >= rank)));
      best = better ? w : best;
      rank = (Rows)better ? hash : rank;
      choice = (Rows)better ? there : choice;
    }
    heaviest = best;
    return choice;
  }

  // Each row's nearest neighbour, which is its first pick, and the least weight of a strong edge.
  BILATERAL_INLINE void find_nearest(std::size_t row) {
    Floats most;
    const Rows choice =
        heaviest(row, [](Floats, Rows) __attribute__((always_inline)) { return ~Mask{}; }, most);
    store_lanes(nearest + row, choice);
    store_lanes(pick + row, choice);
    store_lanes(least + row, 0.5f * most);
    store_lanes(mate + row, Rows{} + nowhere);
  }

  // The nearest free one along edges that are strong from both ends.
  BILATERAL_INLINE void find_pick(std::size_t row) {
    const auto mine = load_lanes<Floats>(least + row);
    Floats most;
    const Rows choice = heaviest(
        row,
        [=, this](Floats w, Rows there) __attribute__((always_inline)) {
          return (w >= mine) & (w >= gather<Floats>(least, there));
        },
        most);
    store_lanes(pick + row, choice);
  }

  // Edges of a row that is no longer free are never strong.
  BILATERAL_INLINE void match(std::size_t row) {
    const Rows own = own_rows(row);
    const auto mine = load_lanes<Rows>(pick + row);
    const Rows there = mine == nowhere ? own : mine;
    const Mask mutual = (Mask)(gather<Rows>(pick, there) == own);
    const auto before = load_lanes<Rows>(mate + row);
    const auto still = load_lanes<Floats>(least + row);
    store_lanes(mate + row, (Rows)mutual ? mine : before);
    store_lanes(least + row, mutual ? Floats{} + std::numeric_limits<float>::infinity() : still);
  }
};

// For the slices [begin, end).
#define BILATERAL_MATCHING(step, T)                                                 \
  BILATERAL_MULTIVERSION inline void step(MatchingRows<T> rows, std::size_t begin,  \
                                          std::size_t end) {                        \
    constexpr std::size_t half = MatchingRows<T>::half;                             \
    for (std::size_t row = begin * slice_rows; row < end * slice_rows; row += half) \
      rows.step(row);                                                               \
  }
BILATERAL_MATCHING(find_nearest, float)
BILATERAL_MATCHING(find_nearest, double)
BILATERAL_MATCHING(find_pick, float)
BILATERAL_MATCHING(find_pick, double)
BILATERAL_MATCHING(match, float)
BILATERAL_MATCHING(match, double)
#undef BILATERAL_MATCHING

}  // namespace detail

}  // namespace bilateral
