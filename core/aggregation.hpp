// Aggregates by matching along strong edges: pairs of rows that are each other's strongest free
// neighbour, and what clings to them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "crew.hpp"
#include "graph.hpp"
#include "lanes.hpp"

namespace bilateral {

struct Aggregates {
  std::uint32_t count = 0;
  Buffer<std::uint32_t> of;  // each row's aggregate; `nowhere` for a row without neighbours
};

namespace detail {

// Decided in float32, whatever T.
template <class T>
class Matching {
 public:
  Matching(const Graph<T>& graph, Crew& crew)
      : graph_(graph),
        crew_(crew),
        least_(graph.rows),
        nearest_(graph.rows),
        pick_(graph.rows),
        mate_(graph.rows) {}

  Aggregates aggregates() {
    each_half([&](std::size_t row) { find_nearest(row); });
    for (int round = 0; round < 2; ++round) {
      each_half([&](std::size_t row) { find_pick(row); });
      each_half([&](std::size_t row) { match(row); });
    }
    each_slice([&](std::size_t s) {
      for (std::size_t i = s * slice_rows; i < (s + 1) * slice_rows; ++i) pick_[i] = root(i);
    });
    return number();
  }

 private:
  static constexpr std::size_t half = slice_rows / 2;  // a slice is worked on in halves
  using Floats = Lanes<float, half>;
  using Rows = Lanes<std::uint32_t, half>;
  using Mask = Lanes<std::int32_t, half>;

  template <class F>
  void each_slice(F&& f) {
    bilateral::each_slice(graph_.slices(), crew_, f);
  }

  template <class F>
  void each_half(F&& f) {
    each_slice([&](std::size_t s) {
      f(s * slice_rows);
      f(s * slice_rows + half);
    });
  }

  static BILATERAL_INLINE Rows own_rows(std::size_t row) {
    return Rows{0, 1, 2, 3} + static_cast<std::uint32_t>(row);
  }

  template <class V, class From>
  static BILATERAL_INLINE V gather(const From* from, Rows at) {
    return V{from[at[0]], from[at[1]], from[at[2]], from[at[3]]};
  }

  BILATERAL_INLINE Floats weights(std::size_t entry) const {
    const T* w = graph_.weight.data() + entry;
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
    for (std::size_t k = graph_.entry.first[s]; k < graph_.entry.first[s + 1]; ++k) {
      const Floats weight = weights(k * slice_rows + lane);
      const auto to = load_lanes<Rows>(graph_.entry.to.data() + k * slice_rows + lane);
      const Rows hash = (to ^ own) * 0x9e3779b1u;
      const Mask better = allowed(weight, to) & (weight > 0.0f) &
                          ((weight > best) | ((weight == best) & (Mask)(hash >= rank)));
      best = better ? weight : best;
      rank = (Rows)better ? hash : rank;
      choice = (Rows)better ? to : choice;
    }
    heaviest = best;
    return choice;
  }

  // Each row's nearest neighbour, and the least weight of a strong edge.
  void find_nearest(std::size_t row) {
    Floats weight;
    const Rows nearest =
        heaviest(row, [](Floats, Rows) __attribute__((always_inline)) { return ~Mask{}; }, weight);
    store_lanes(nearest_.data() + row, nearest);
    store_lanes(least_.data() + row, 0.5f * weight);
    store_lanes(mate_.data() + row, Rows{} + nowhere);
  }

  // The nearest free one along edges that are strong from both ends.
  void find_pick(std::size_t row) {
    const float* least = least_.data();
    const auto mine = load_lanes<Floats>(least + row);
    Floats weight;
    const Rows pick = heaviest(
        row,
        [=](Floats w, Rows to) __attribute__((always_inline)) {
          return (w >= mine) & (w >= gather<Floats>(least, to));
        },
        weight);
    store_lanes(pick_.data() + row, pick);
  }

  // Edges of a row that is no longer free are never strong.
  void match(std::size_t row) {
    const Rows own = own_rows(row);
    const auto pick = load_lanes<Rows>(pick_.data() + row);
    const Rows there = pick == nowhere ? own : pick;
    const Mask mutual = (Mask)(gather<Rows>(pick_.data(), there) == own);
    const auto mate = load_lanes<Rows>(mate_.data() + row);
    const auto least = load_lanes<Floats>(least_.data() + row);
    store_lanes(mate_.data() + row, (Rows)mutual ? pick : mate);
    store_lanes(least_.data() + row,
                mutual ? Floats{} + std::numeric_limits<float>::infinity() : least);
  }

  // The first row of an aggregate, or nowhere.
  std::uint32_t root(std::size_t i) const {
    const std::uint32_t nearest = nearest_[i], mate = mate_[i];
    if (nearest == nowhere) return nowhere;
    const auto own = static_cast<std::uint32_t>(i);
    const std::uint32_t member = mate != nowhere ? own : nearest;
    const std::uint32_t other = mate_[member];
    return other != nowhere ? std::min(member, other) : own;
  }

  Aggregates number() {
    constexpr std::size_t run = 4096;
    const std::size_t rows = graph_.rows, runs = (rows + run - 1) / run;
    Aggregates out;
    out.of = Buffer<std::uint32_t>(rows);
    std::vector<std::uint32_t> start(runs + 1, 0);
    const auto each_run = [&](auto&& f) {
      crew_.each(team_size(crew_.size(), rows, run), runs,
                 [&](std::size_t i, std::size_t) { f(i, i * run, std::min(rows, (i + 1) * run)); });
    };
    each_run([&](std::size_t i, std::size_t begin, std::size_t end) {
      std::uint32_t roots = 0;
      for (std::size_t v = begin; v < end; ++v) roots += pick_[v] == v;
      start[i + 1] = roots;
    });
    for (std::size_t i = 0; i < runs; ++i) start[i + 1] += start[i];
    out.count = start[runs];
    each_run([&](std::size_t i, std::size_t begin, std::size_t end) {
      std::uint32_t next = start[i];
      for (std::size_t v = begin; v < end; ++v) {
        mate_[v] = next;  // of use where v is a root
        next += pick_[v] == v;
      }
    });
    each_run([&](std::size_t, std::size_t begin, std::size_t end) {
      for (std::size_t v = begin; v < end; ++v)
        out.of[v] = pick_[v] == nowhere ? nowhere : mate_[pick_[v]];
    });
    return out;
  }

  const Graph<T>& graph_;
  Crew& crew_;
  Buffer<float> least_;
  Buffer<std::uint32_t> nearest_, pick_, mate_;
};

}  // namespace detail

template <class T>
Aggregates aggregate(const Graph<T>& graph, Crew& crew) {
  return detail::Matching<T>(graph, crew).aggregates();
}

}  // namespace bilateral
