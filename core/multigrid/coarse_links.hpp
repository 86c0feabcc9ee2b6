// Coarse links: the members of each aggregate, and its links to other aggregates. All edges between
// two aggregates become one link, which has the sum of their weights.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "multigrid/aggregation.hpp"
#include "multigrid/graph.hpp"

namespace bilateral {

// Geometry of the constant model: links have only weights. A model whose links have more offers the
// same functions, which Hierarchy calls while it builds the levels.
struct NoGeometry {
  // What a link has besides its weight; the sum over the edges that become one link.
  struct LinkData {
    friend LinkData operator+(LinkData, LinkData) { return {}; }
  };
  // The edges of one row of the last level.
  struct Row {
    template <class T>
    LinkData edge(std::size_t, T) const {
      return {};
    }
  };
  void place_grid(const auto&, const auto&, ThreadPool&) {}
  void place_aggregates(const auto&, const auto&, ThreadPool&) {}
  Row row(std::size_t) const { return {}; }
  void add_level(const auto&) {}
  void write(std::size_t, std::size_t, const auto&, std::size_t) {}
  void write_padding(std::size_t, std::size_t) {}
  void order_rows(const auto&, std::size_t, ThreadPool&) {}
  void finish() {}
};

namespace detail {

inline constexpr std::size_t coarse_run = 512;  // aggregates

// Calls f(run, begin, end, rank) for consecutive runs of the aggregates, in parallel.
template <class F>
void each_coarse_run(std::size_t count, ThreadPool& pool, F&& f) {
  pool.each(team_size(pool.size(), count, coarse_run), (count + coarse_run - 1) / coarse_run,
            [&](std::size_t run, std::size_t rank) {
              f(run, run * coarse_run, std::min(count, (run + 1) * coarse_run), rank);
            });
}

// The rows of each aggregate I, ascending: row[first[I]] to row[first[I + 1] - 1].
struct AggregateMembers {
  Buffer<std::uint32_t> first, row;

  explicit AggregateMembers(const Aggregates& aggregates) : first(aggregates.count + 2, 0u) {
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

template <class T, class Data>
struct Link {
  std::uint32_t to;
  T weight;
  [[no_unique_address]] Data data;
};

// The links of each aggregate, in the order in which its members' entries first reach each target.
template <class T, class Geometry>
class CoarseLinks {
 public:
  using Link = detail::Link<T, typename Geometry::LinkData>;
  Buffer<std::uint32_t> count;  // links of each aggregate

  CoarseLinks(const Graph<T>& fine, const Aggregates& aggregates, const AggregateMembers& members,
              const Geometry& geometry, ThreadPool& pool)
      : count(aggregates.count),
        run_((aggregates.count + coarse_run - 1) / coarse_run),
        begin_(aggregates.count),
        fine_(fine),
        aggregate_of_(aggregates.of.data()),
        members_(members),
        geometry_(geometry) {
    std::vector<Scratch> scratches(static_cast<std::size_t>(pool.size()));
    each_coarse_run(aggregates.count, pool,
                    [&](std::size_t run, std::size_t from, std::size_t to, std::size_t rank) {
                      Scratch& scratch = scratches[rank];
                      if (scratch.place.empty()) scratch.place.resize(aggregates.count, nowhere);
                      collect_links(from, to, scratch);
                      const std::size_t links = merge_links(from, to, scratch);
                      run_[run] = Buffer<Link>(links + common_links);
                      std::copy_n(scratch.merged.data(), links, run_[run].data());
                    });
  }

  const Link* of(std::size_t I) const { return run_[I / coarse_run].data() + begin_[I]; }

  // Calls f(J) for each neighbour J of I. If I has fewer than `common_links` neighbours, calls f(I)
  // for each missing one: a loop of variable length would mispredict its end for most aggregates.
  template <class F>
  BILATERAL_INLINE void each(std::size_t I, F&& f) const {
    const Link* link = of(I);
    const std::uint32_t self = static_cast<std::uint32_t>(I), links = count[I];
    for (std::uint32_t k = 0; k < common_links; ++k) {
      const std::uint32_t J = link[k].to;
      f(k < links ? J : self);
    }
    for (std::uint32_t k = common_links; k < links; ++k) f(link[k].to);
  }

 private:
  static constexpr std::uint32_t common_links = 8;  // few aggregates have more

  // Memory of one thread.
  struct Scratch {
    std::vector<Link> links, merged;            // of a run of aggregates
    std::array<std::uint32_t, coarse_run> end;  // of each aggregate in `links`
    std::vector<std::uint32_t> place;           // of each target aggregate in `merged`, plus base
    std::uint32_t base = 0;
  };

  // Lists the edges that leave each of the aggregates [from, to). Several may lead to the same
  // aggregate. Rows rarely have more than `spare_columns` columns, so that many are always read: a
  // loop of variable length would mispredict its end for most rows.
  void collect_links(std::size_t from, std::size_t to, Scratch& scratch) {
    constexpr std::size_t read = Graph<T>::spare_columns;
    const std::uint32_t *first = fine_.entry.first.data(), *aggregate_of = aggregate_of_;
    const std::uint32_t begin = members_.first[from], end = members_.first[to];
    std::size_t max_links = 1;
    for (std::uint32_t m = begin; m < end; ++m) {
      const std::size_t s = members_.row[m] / slice_rows;
      max_links += first[s + 1] - first[s];
    }
    if (scratch.links.size() < max_links) {
      scratch.links.resize(max_links);
      scratch.merged.resize(max_links);
    }
    Link* next = scratch.links.data();
    for (std::uint32_t m = begin; m < end; ++m) {
      const std::size_t row = members_.row[m], s = row / slice_rows;
      const std::size_t columns = first[s + 1] - first[s];
      const std::size_t entry = first[s] * slice_rows + row % slice_rows;
      const std::uint32_t* neighbours = fine_.entry.to.data() + entry;
      const T* weights = fine_.weight.data() + entry;
      const std::uint32_t source = aggregate_of[row];
      const auto edges = geometry_.row(row);
      const auto add = [&](std::size_t k) __attribute__((always_inline)) {
        const T weight = weights[k * slice_rows];
        const std::uint32_t target = aggregate_of[neighbours[k * slice_rows]];
        *next = {target, weight, edges.edge(k, weight)};
        next += (k < columns) & (target != source);
      };
      for (std::size_t k = 0; k < read; ++k) add(k);
      for (std::size_t k = read; k < columns; ++k) add(k);
      scratch.end[source - from] = static_cast<std::uint32_t>(next - scratch.links.data());
    }
  }

  // Merges links of an aggregate that have the same target, and returns the length of `merged`.
  // place[J] - base is the place of J in the current list; places in other lists are out of range.
  // There are no branches: the processor could not predict whether J is new.
  std::size_t merge_links(std::size_t from, std::size_t to, Scratch& scratch) {
    Link* merged = scratch.merged.data();
    const Link* link = scratch.links.data();
    std::uint32_t* place = scratch.place.data();
    const std::uint32_t base = scratch.base;
    std::uint32_t end = 0;
    for (std::size_t I = from; I < to; ++I) {
      const std::uint32_t start = end;
      const Link* last = scratch.links.data() + scratch.end[I - from];
      for (; link < last; ++link) {
        const std::uint32_t at = place[link->to] - base;
        const std::uint32_t is_new = at - start >= end - start;
        const std::uint32_t here = at ^ ((at ^ end) & -is_new);
        merged[end] = Link{};
        merged[here] = {link->to, merged[here].weight + link->weight,
                        merged[here].data + link->data};
        place[link->to] = base + here;
        end += is_new;
      }
      begin_[I] = start;
      count[I] = end - start;
    }
    scratch.base += end;
    return end;
  }

  std::vector<Buffer<Link>> run_;  // links of each run of aggregates
  Buffer<std::uint32_t> begin_;    // of each aggregate's links in its run
  const Graph<T>& fine_;
  const std::uint32_t* aggregate_of_;
  const AggregateMembers& members_;
  const Geometry& geometry_;
};

}  // namespace detail

}  // namespace bilateral
