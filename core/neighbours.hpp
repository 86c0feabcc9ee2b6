// What lies in and beside each aggregate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregation.hpp"
#include "graph.hpp"
#include "threads.hpp"

namespace bilateral {

namespace detail {

inline constexpr std::size_t coarse_run = 1024;  // aggregates

// f(run, begin, end, rank) for runs of the aggregates.
template <class F>
void each_coarse_run(std::size_t count, int threads, F&& f) {
  parallel_for(team_size(threads, count, 4 * coarse_run), (count + coarse_run - 1) / coarse_run,
               [&](std::size_t run, std::size_t rank) {
                 f(run, run * coarse_run, std::min(count, (run + 1) * coarse_run), rank);
               });
}

// Members of each aggregate, in order of their numbers.
struct Members {
  Buffer<std::uint32_t> first, row;

  explicit Members(const Aggregates& aggregates) : first(aggregates.count + 2, 0u) {
    const std::size_t rows = aggregates.of.size();
    for (std::size_t i = 0; i < rows; ++i)
      if (aggregates.of[i] != nowhere) ++first[aggregates.of[i] + 2];
    for (std::uint32_t I = 0; I < aggregates.count; ++I) first[I + 2] += first[I + 1];
    row = Buffer<std::uint32_t>(first[aggregates.count + 1]);
    for (std::size_t i = 0; i < rows; ++i)
      if (const std::uint32_t I = aggregates.of[i]; I != nowhere)
        row[first[I + 1]++] = static_cast<std::uint32_t>(i);
  }
};

// The neighbours of each aggregate, in the order of the aggregates' numbers.
template <class T>
struct Neighbours {
  struct Run {
    std::vector<std::uint32_t> to;
    std::vector<T> weight;
  };
  std::vector<Run> run;
  Buffer<std::uint32_t> begin, count;  // of each aggregate, within its run

  Neighbours(const Graph<T>& fine, const Aggregates& aggregates, const Members& members,
             int threads)
      : run((aggregates.count + coarse_run - 1) / coarse_run),
        begin(aggregates.count),
        count(aggregates.count) {
    const int team = team_size(threads, aggregates.count, 4 * coarse_run);
    std::vector<Places> places(static_cast<std::size_t>(team));
    each_coarse_run(aggregates.count, threads,
                    [&](std::size_t r, std::size_t from, std::size_t to, std::size_t rank) {
                      auto& mine = places[rank];
                      if (mine.place.empty()) mine.place.resize(aggregates.count, nowhere);
                      add(fine, aggregates, members, from, to, mine, run[r]);
                    });
  }

  const std::uint32_t* to(std::size_t I) const { return run[I / coarse_run].to.data() + begin[I]; }
  const T* weight(std::size_t I) const { return run[I / coarse_run].weight.data() + begin[I]; }

 private:
  struct Places {
    std::vector<std::uint32_t> place;
    std::uint32_t base = 0;
  };

  // place[J] - base is where the current list has J; what it says of other lists is out of range.
  void add(const Graph<T>& fine, const Aggregates& aggregates, const Members& members,
           std::size_t from, std::size_t to, Places& places, Run& out) {
    std::size_t most = 0;  // entries
    for (std::uint32_t m = members.first[from]; m < members.first[to]; ++m) {
      const std::size_t s = members.row[m] / slice_rows;
      most += fine.entry.first[s + 1] - fine.entry.first[s] + 1;
    }
    out.to.resize(most + to - from + 1);
    out.weight.resize(most + to - from + 1);
    std::uint32_t* list = out.to.data();
    T* weights = out.weight.data();
    std::uint32_t* place = places.place.data();
    const std::uint32_t base = places.base;
    std::uint32_t end = 0;
    for (std::size_t I = from; I < to; ++I) {
      const std::uint32_t start = end;  // holds what the aggregate has within itself
      list[end++] = static_cast<std::uint32_t>(I);
      weights[start] = T{0};
      place[I] = base + start;
      for (std::uint32_t m = members.first[I]; m < members.first[I + 1]; ++m) {
        const std::size_t row = members.row[m], s = row / slice_rows;
        for (std::size_t k = fine.entry.first[s]; k < fine.entry.first[s + 1]; ++k) {
          const std::size_t e = k * slice_rows + row % slice_rows;
          const T weight = fine.weight[e];
          if (!(weight > T{0})) continue;
          const std::uint32_t J = aggregates.of[fine.entry.to[e]];
          const std::uint32_t at = place[J] - base;
          const bool fresh = at - start >= end - start;
          const std::uint32_t here = fresh ? end : at;
          place[J] = base + here;
          list[here] = J;
          weights[end] = T{0};
          weights[here] += weight;
          end += fresh;
        }
      }
      begin[I] = start + 1;
      count[I] = end - start - 1;
    }
    places.base += end;
  }
};

}  // namespace detail

}  // namespace bilateral
