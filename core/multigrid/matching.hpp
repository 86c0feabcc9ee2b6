// Matching along strong edges, half a slice at a time: it pairs rows that are each other's nearest
// free neighbour. The nearest neighbour is the one with the heaviest edge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"
#include "multigrid/graph.hpp"

namespace bilateral {

namespace detail {

// Compares weights in float32 for every T.
template <class T>
struct Matching {
  const std::uint32_t *first, *to;  // the graph's entries
  const T* weight;
  float* least;            // of each row: least weight of its strong edges
  std::uint32_t* nearest;  // neighbour of each row
  std::uint32_t* pick;     // free neighbour that each row would match
  std::uint32_t* mate;     // of each row that is matched

  static constexpr std::size_t half_slice = slice_rows / 2;
  using Floats = Lanes<float, half_slice>;
  using Rows = Lanes<std::uint32_t, half_slice>;
  using Mask = Lanes<std::int32_t, half_slice>;

  static BILATERAL_INLINE Rows rows_from(std::size_t row) {
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

  // Returns, for each row of half a slice, the neighbour with the heaviest of the edges for which
  // `allowed(weight, neighbour)` holds, or nowhere. A hash of the edge, the same from both ends,
  // breaks ties.
  template <class Allowed>
  BILATERAL_INLINE Rows heaviest(std::size_t row, Allowed allowed, Floats& heaviest) const {
    const Rows rows = rows_from(row);
    const std::size_t s = row / slice_rows, lane = row % slice_rows;
    Floats best{};
    Rows rank{}, choice = Rows{} + nowhere;
    for (std::size_t k = first[s]; k < first[s + 1]; ++k) {
      const Floats w = weights(k * slice_rows + lane);
      const auto neighbour = load_lanes<Rows>(to + k * slice_rows + lane);
      const Rows hash = (neighbour ^ rows) * 0x9e3779b1u;
      const Mask better =
          allowed(w, neighbour) & (w > 0.0f) & ((w > best) | ((w == best) & (Mask)(hash >= rank)));
      best = better ? w : best;
      rank = (Rows)better ? hash : rank;
      choice = (Rows)better ? neighbour : choice;
    }
    heaviest = best;
    return choice;
  }

  // First step: each row picks its nearest neighbour. An edge is strong for a row if its weight is
  // at least half of the row's heaviest.
  BILATERAL_INLINE void find_nearest(std::size_t row) {
    Floats weight_of_nearest;
    const Rows choice = heaviest(
        row, [](Floats, Rows) __attribute__((always_inline)) { return ~Mask{}; },
        weight_of_nearest);
    store_lanes(nearest + row, choice);
    store_lanes(pick + row, choice);
    store_lanes(least + row, 0.5f * weight_of_nearest);
    store_lanes(mate + row, Rows{} + nowhere);
  }

  // Second step: each row picks the nearest free neighbour along edges that are strong for both
  // ends.
  BILATERAL_INLINE void find_pick(std::size_t row) {
    const auto own_least = load_lanes<Floats>(least + row);
    Floats weight_of_pick;
    const Rows choice = heaviest(
        row,
        [=, this](Floats w, Rows neighbour) __attribute__((always_inline)) {
          return (w >= own_least) & (w >= gather<Floats>(least, neighbour));
        },
        weight_of_pick);
    store_lanes(pick + row, choice);
  }

  // Matches rows that pick each other. An infinite `least` then keeps their edges from being
  // strong: the rows are no longer free.
  BILATERAL_INLINE void match(std::size_t row) {
    const Rows rows = rows_from(row);
    const auto picks = load_lanes<Rows>(pick + row);
    const Rows neighbour = picks == nowhere ? rows : picks;
    const Mask mutual = (Mask)(gather<Rows>(pick, neighbour) == rows);
    const auto old_mate = load_lanes<Rows>(mate + row);
    const auto old_least = load_lanes<Floats>(least + row);
    store_lanes(mate + row, (Rows)mutual ? picks : old_mate);
    store_lanes(least + row,
                mutual ? Floats{} + std::numeric_limits<float>::infinity() : old_least);
  }
};

// Does one step for the slices [begin, end).
#define BILATERAL_MATCHING(step)                                                                \
  template <class T>                                                                            \
  BILATERAL_INLINE void step##_body(Matching<T> matching, std::size_t begin, std::size_t end) { \
    constexpr std::size_t half_slice = Matching<T>::half_slice;                                 \
    for (std::size_t row = begin * slice_rows; row < end * slice_rows; row += half_slice)       \
      matching.step(row);                                                                       \
  }                                                                                             \
  template <class T>                                                                            \
  void step(const Matching<T>& matching, std::size_t begin, std::size_t end) {                  \
    multiversion<step##_body<T>>(matching, begin, end);                                         \
  }
BILATERAL_MATCHING(find_nearest)
BILATERAL_MATCHING(find_pick)
BILATERAL_MATCHING(match)
#undef BILATERAL_MATCHING

}  // namespace detail

}  // namespace bilateral
