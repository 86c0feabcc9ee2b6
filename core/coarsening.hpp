// The graph of aggregates: w_IJ is the sum of w_ij between members of I and of J.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "aggregation.hpp"
#include "graph.hpp"
#include "threads.hpp"

namespace bilateral {

// Between two levels: the vertices below each coarse vertex I are [first[I], first[I + 1]) of
// `child`, those of colour 0 before middle[I].
struct Transfer {
  Buffer<std::uint32_t> parent;  // of each fine vertex; the coarse level's size if it has none
  Buffer<std::uint32_t> first, middle, child;
};

namespace detail {

inline constexpr std::size_t coarse_run = 2048;

// f(run, begin, end) for runs of [0, count).
template <class F>
void each_coarse_run(std::size_t count, int threads, F&& f) {
  parallel_for(team_size(threads, count, 4 * coarse_run), (count + coarse_run - 1) / coarse_run,
               [&](std::size_t run, std::size_t rank) {
                 f(run, run * coarse_run, std::min(count, (run + 1) * coarse_run), rank);
               });
}

// Members of each aggregate, in order of their numbers; those of colour 0 first.
struct Members {
  Buffer<std::uint32_t> first, middle, vertex;

  // `early(v)`: whether v goes first.
  template <class Early>
  Members(const Aggregates& aggregates, Early&& early)
      : first(aggregates.count + 1, 0u), middle(aggregates.count, 0u) {
    const std::size_t vertices = aggregates.of.size();
    for (std::size_t v = 0; v < vertices; ++v) {
      const std::uint32_t I = aggregates.of[v];
      if (I == nowhere) continue;
      ++first[I + 1];
      middle[I] += early(v);
    }
    for (std::uint32_t I = 0; I < aggregates.count; ++I) {
      first[I + 1] += first[I];
      middle[I] += first[I];
    }
    vertex = Buffer<std::uint32_t>(first[aggregates.count]);
    std::vector<std::array<std::uint32_t, 2>> cursor(aggregates.count);
    for (std::uint32_t I = 0; I < aggregates.count; ++I) cursor[I] = {first[I], middle[I]};
    for (std::size_t v = 0; v < vertices; ++v)
      if (const std::uint32_t I = aggregates.of[v]; I != nowhere)
        vertex[cursor[I][early(v) ? 0 : 1]++] = static_cast<std::uint32_t>(v);
  }
};

// Entries of the aggregates in the order of their numbers.
template <class T>
struct Sums {
  struct Run {
    std::vector<std::uint32_t> neighbour;
    std::vector<T> weight;
  };
  std::vector<Run> run;
  Buffer<std::uint32_t> begin, count;  // of each aggregate, within its run

  Sums(const Graph<T>& fine, const std::uint32_t* row_of, const Aggregates& aggregates,
       const Members& members, int threads)
      : run((aggregates.count + coarse_run - 1) / coarse_run),
        begin(aggregates.count),
        count(aggregates.count) {
    const int team = team_size(threads, aggregates.count, 4 * coarse_run);
    std::vector<std::vector<std::uint32_t>> places(static_cast<std::size_t>(team));
    each_coarse_run(aggregates.count, threads,
                    [&](std::size_t r, std::size_t from, std::size_t to, std::size_t rank) {
                      auto& place = places[rank];
                      if (place.empty()) place.assign(aggregates.count, 0);
                      add(fine, row_of, aggregates, members, from, to, place, run[r]);
                    });
  }

 private:
  // `place` says where the current row has an aggregate's entry, if there.
  void add(const Graph<T>& fine, const std::uint32_t* row_of, const Aggregates& aggregates,
           const Members& members, std::size_t from, std::size_t to,
           std::vector<std::uint32_t>& place, Run& out) {
    for (std::size_t I = from; I < to; ++I) {
      const std::size_t start = out.neighbour.size();
      begin[I] = static_cast<std::uint32_t>(start);
      for (std::uint32_t m = members.first[I]; m < members.first[I + 1]; ++m) {
        const std::uint32_t v = members.vertex[m], row = row_of ? row_of[v] : v;
        for (std::uint32_t e = fine.first[row]; e < fine.first[row + 1]; ++e) {
          const std::uint32_t J = aggregates.of[fine.neighbour[e]];
          if (J == I) continue;
          const std::size_t at = place[J];
          if (at >= start && at < out.neighbour.size() && out.neighbour[at] == J) {
            out.weight[at] += fine.weight[e];
          } else {
            place[J] = static_cast<std::uint32_t>(out.neighbour.size());
            out.neighbour.push_back(J);
            out.weight.push_back(fine.weight[e]);
          }
        }
      }
      count[I] = static_cast<std::uint32_t>(out.neighbour.size() - start);
    }
  }
};

// The smallest colour that no earlier neighbour has, vertex by vertex.
template <class T>
std::vector<std::uint32_t> greedy_colours(const Sums<T>& sums, std::size_t vertices) {
  std::vector<std::uint32_t> colour(vertices, nowhere);
  std::vector<std::uint32_t> taken;
  for (std::size_t I = 0; I < vertices; ++I) {
    const std::uint32_t* neighbour = sums.run[I / coarse_run].neighbour.data() + sums.begin[I];
    std::uint64_t used = 0;
    for (std::uint32_t e = 0; e < sums.count[I]; ++e) {
      const std::uint32_t c = colour[neighbour[e]];
      if (c < 64) used |= std::uint64_t{1} << c;
    }
    auto mine = static_cast<std::uint32_t>(std::countr_one(used));
    if (mine == 64) {
      taken.clear();
      for (std::uint32_t e = 0; e < sums.count[I]; ++e) taken.push_back(colour[neighbour[e]]);
      while (std::find(taken.begin(), taken.end(), mine) != taken.end()) ++mine;
    }
    colour[I] = mine;
  }
  return colour;
}

// Rows by colour, and within runs of equal colour by their numbers of earlier and later entries.
// Fills graph.colour; returns the aggregate of each row, and the earlier entries of each aggregate.
template <class T>
std::pair<Buffer<std::uint32_t>, Buffer<std::uint32_t>> row_order(
    const Sums<T>& sums, const std::vector<std::uint32_t>& colour, Graph<T>& graph, int threads) {
  const std::size_t vertices = colour.size();
  Buffer<std::uint32_t> order(vertices), earlier(vertices);
  each_coarse_run(vertices, threads,
                  [&](std::size_t run, std::size_t begin, std::size_t end, std::size_t) {
                    for (std::size_t I = begin; I < end; ++I) {
                      const std::uint32_t* to = sums.run[run].neighbour.data() + sums.begin[I];
                      std::uint32_t number = 0;
                      for (std::uint32_t e = 0; e < sums.count[I]; ++e)
                        number += colour[to[e]] < colour[I];
                      earlier[I] = number;
                    }
                  });
  std::vector<std::uint32_t> at;
  for (const std::uint32_t c : colour) {
    if (c + 2 > at.size()) at.resize(c + 2, 0);
    ++at[c + 1];
  }
  for (std::size_t c = 0; c + 1 < at.size(); ++c) at[c + 1] += at[c];
  graph.colour = at;
  for (std::size_t I = 0; I < vertices; ++I) order[at[colour[I]]++] = static_cast<std::uint32_t>(I);
  for (std::size_t c = 0; c < graph.colours(); ++c) {
    const std::size_t first = graph.colour[c];
    each_coarse_run(graph.colour[c + 1] - first, threads,
                    [&](std::size_t, std::size_t begin, std::size_t end, std::size_t) {
                      std::sort(order.data() + first + begin, order.data() + first + end,
                                [&](std::uint32_t I, std::uint32_t J) {
                                  if (earlier[I] != earlier[J]) return earlier[I] < earlier[J];
                                  if (sums.count[I] != sums.count[J])
                                    return sums.count[I] < sums.count[J];
                                  return I < J;
                                });
                    });
  }
  return {std::move(order), std::move(earlier)};
}

}  // namespace detail

// The next coarser graph, and the way there. `row_of` holds each fine vertex's row, or is null
// where they are the same; `early(v)` says which vertices a Transfer has first.
template <class T, class Early>
std::pair<Graph<T>, Transfer> coarsen(const Graph<T>& fine, const std::uint32_t* row_of,
                                      const Aggregates& aggregates, Early&& early, int threads) {
  const std::size_t vertices = aggregates.count;
  const detail::Members members(aggregates, early);
  const detail::Sums<T> sums(fine, row_of, aggregates, members, threads);
  const auto colour = detail::greedy_colours(sums, vertices);
  Graph<T> graph;
  graph.vertices = vertices;
  const auto [order, earlier] = detail::row_order(sums, colour, graph, threads);
  Buffer<std::uint32_t> row(vertices);
  graph.first = Buffer<std::uint32_t>(vertices + 1);
  graph.middle = Buffer<std::uint32_t>(vertices);
  Transfer transfer;
  transfer.first = Buffer<std::uint32_t>(vertices + 1);
  transfer.middle = Buffer<std::uint32_t>(vertices);
  std::uint32_t entry = 0, child = 0;
  for (std::size_t i = 0; i < vertices; ++i) {
    const std::uint32_t I = order[i];
    row[I] = static_cast<std::uint32_t>(i);
    graph.first[i] = entry;
    graph.middle[i] = entry + earlier[I];
    entry += sums.count[I];
    transfer.first[i] = child;
    transfer.middle[i] = child + members.middle[I] - members.first[I];
    child += members.first[I + 1] - members.first[I];
  }
  graph.first[vertices] = entry;
  transfer.first[vertices] = child;
  graph.neighbour = Buffer<std::uint32_t>(entry);
  graph.weight = Buffer<T>(entry);
  graph.degree = Buffer<T>(vertices);
  transfer.child = Buffer<std::uint32_t>(child);
  detail::each_coarse_run(
      vertices, threads, [&](std::size_t, std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) {
          const std::uint32_t I = order[i];
          const auto& run = sums.run[I / detail::coarse_run];
          std::uint32_t early_entry = graph.first[i], late_entry = graph.middle[i];
          T degree{0};
          for (std::uint32_t e = sums.begin[I]; e < sums.begin[I] + sums.count[I]; ++e) {
            const std::uint32_t J = run.neighbour[e];
            const std::uint32_t to = colour[J] < colour[I] ? early_entry++ : late_entry++;
            graph.neighbour[to] = row[J];
            graph.weight[to] = run.weight[e];
            degree += run.weight[e];
          }
          graph.degree[i] = degree;
          std::copy(members.vertex.data() + members.first[I],
                    members.vertex.data() + members.first[I + 1],
                    transfer.child.data() + transfer.first[i]);
        }
      });
  transfer.parent = Buffer<std::uint32_t>(fine.vertices);
  detail::each_coarse_run(
      fine.vertices, threads, [&](std::size_t, std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t v = begin; v < end; ++v)
          transfer.parent[v] = aggregates.of[v] == nowhere ? static_cast<std::uint32_t>(vertices)
                                                           : row[aggregates.of[v]];
      });
  return {std::move(graph), std::move(transfer)};
}

}  // namespace bilateral
