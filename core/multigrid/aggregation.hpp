// Aggregation by matching: an aggregate is a matched pair of rows and the unmatched rows that join
// it, at most two edges away.
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
  Buffer<std::uint32_t> of;  // aggregate of each row; `nowhere` for a row without neighbours
};

namespace detail {

template <class T>
class Aggregation {
 public:
  Aggregation(const Graph<T>& graph, ThreadPool& pool)
      : graph_(graph),
        pool_(pool),
        least_(graph.rows),
        nearest_(graph.rows),
        pick_(graph.rows),
        mate_(graph.rows) {}

  Aggregates run() {
    const Matching<T> matching{
        graph_.entry.first.data(), graph_.entry.to.data(), graph_.weight.data(), least_.data(),
        nearest_.data(),           pick_.data(),           mate_.data()};
    each_part([&](std::size_t begin, std::size_t end) { find_nearest(matching, begin, end); });
    each_part([&](std::size_t begin, std::size_t end) { match(matching, begin, end); });
    each_part([&](std::size_t begin, std::size_t end) { find_pick(matching, begin, end); });
    each_part([&](std::size_t begin, std::size_t end) { match(matching, begin, end); });
    return number_aggregates();
  }

 private:
  template <class F>
  void each_part(F&& f) {
    each_part_of_slices(graph_.slices(), pool_, f);
  }

  // Returns the root of row i's aggregate, which is the first row of its pair, or nowhere. An
  // unmatched row joins the pair of its nearest neighbour. If that neighbour is unmatched, too, the
  // row joins the pair of the neighbour's nearest, unless their edge is weak: less than an eighth
  // of the neighbour's heaviest. A row that finds no pair is an aggregate by itself.
  std::uint32_t root(std::size_t i) const {
    if (nearest_[i] == nowhere) return nowhere;
    const auto row = static_cast<std::uint32_t>(i);
    const std::uint32_t close = choose(mate_[row] == nowhere, nearest_[row], row);
    const std::uint32_t unmatched = mate_[close] == nowhere;
    const std::uint32_t strong = 8 * least_[row] >= least_[close];
    const std::uint32_t member = choose((unmatched & strong) != 0, nearest_[close], close);
    const std::uint32_t mate = mate_[member];
    return choose(mate == nowhere, row, choose(mate < member, mate, member));
  }

  // Returns condition ? a : b without a branch: every second row would mispredict it.
  static std::uint32_t choose(bool condition, std::uint32_t a, std::uint32_t b) {
    return b ^ ((a ^ b) & -std::uint32_t{condition});
  }

  // Numbers the aggregates in the order of their roots. Reuses pick_ for the root of each row, and
  // mate_ for the number of each root.
  Aggregates number_aggregates() {
    constexpr std::size_t run = 1024;
    const std::size_t rows = graph_.rows, runs = (rows + run - 1) / run;
    Aggregates aggregates;
    aggregates.of = Buffer<std::uint32_t>(rows);
    std::vector<std::uint32_t> first_number(runs + 1, 0);  // of each run
    const auto each_run = [&](auto&& f) {
      pool_.each(team_size(pool_.size(), rows, run), runs,
                 [&](std::size_t i, std::size_t) { f(i, i * run, std::min(rows, (i + 1) * run)); });
    };
    each_run([&](std::size_t i, std::size_t begin, std::size_t end) {
      std::uint32_t roots = 0;
      for (std::size_t v = begin; v < end; ++v) {
        pick_[v] = root(v);
        roots += pick_[v] == v;
      }
      first_number[i + 1] = roots;
    });
    for (std::size_t i = 0; i < runs; ++i) first_number[i + 1] += first_number[i];
    aggregates.count = first_number[runs];
    each_run([&](std::size_t i, std::size_t begin, std::size_t end) {
      std::uint32_t next = first_number[i];
      for (std::size_t v = begin; v < end; ++v) {
        mate_[v] = next;  // read only where v is a root
        next += pick_[v] == v;
      }
    });
    each_run([&](std::size_t, std::size_t begin, std::size_t end) {
      for (std::size_t v = begin; v < end; ++v)
        aggregates.of[v] = pick_[v] == nowhere ? nowhere : mate_[pick_[v]];
    });
    return aggregates;
  }

  const Graph<T>& graph_;
  ThreadPool& pool_;
  Buffer<float> least_;
  Buffer<std::uint32_t> nearest_, pick_, mate_;  // as in Matching
};

}  // namespace detail

template <class T>
Aggregates aggregate(const Graph<T>& graph, ThreadPool& pool) {
  return detail::Aggregation<T>(graph, pool).run();
}

}  // namespace bilateral
