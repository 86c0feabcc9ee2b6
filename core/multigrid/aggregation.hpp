// Aggregates by matching along strong edges: pairs of rows that are each other's strongest free
// neighbour, and what clings to them, at most two edges away.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "multigrid/graph.hpp"
#include "multigrid/matching.hpp"

namespace bilateral {

struct Aggregates {
  std::uint32_t count = 0;
  Buffer<std::uint32_t> of;  // each row's aggregate; `nowhere` for a row without neighbours
};

namespace detail {

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
    const MatchingRows<T> rows{
        graph_.entry.first.data(), graph_.entry.to.data(), graph_.weight.data(), least_.data(),
        nearest_.data(),           pick_.data(),           mate_.data()};
    each_part([&](std::size_t begin, std::size_t end) { find_nearest(rows, begin, end); });
    each_part([&](std::size_t begin, std::size_t end) { match(rows, begin, end); });
    each_part([&](std::size_t begin, std::size_t end) { find_pick(rows, begin, end); });
    each_part([&](std::size_t begin, std::size_t end) { match(rows, begin, end); });
    return number();
  }

 private:
  template <class F>
  void each_part(F&& f) {
    each_part_of_slices(graph_.slices(), crew_, f);
  }

  // The first row of an aggregate, or nowhere. A row without a mate clings to the nearest one's
  // pair; if that has none either, to the pair which that one clings to, unless their edge is weak
  // for it.
  std::uint32_t root(std::size_t i) const {
    if (nearest_[i] == nowhere) return nowhere;
    const auto own = static_cast<std::uint32_t>(i);
    const std::uint32_t close = choose(mate_[own] == nowhere, nearest_[own], own);
    const bool farther = (mate_[close] == nowhere) & (8 * least_[own] >= least_[close]);
    const std::uint32_t member = choose(farther, nearest_[close], close), mate = mate_[member];
    return choose(mate == nowhere, own, choose(mate < member, mate, member));
  }

  // condition ? a : b, without a branch that would be mispredicted for every other row
  static std::uint32_t choose(bool condition, std::uint32_t a, std::uint32_t b) {
    return b ^ ((a ^ b) & -std::uint32_t{condition});
  }

  Aggregates number() {
    constexpr std::size_t run = 1024;
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
      for (std::size_t v = begin; v < end; ++v) {
        pick_[v] = root(v);
        roots += pick_[v] == v;
      }
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
