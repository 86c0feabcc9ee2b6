// What lies in and beside each aggregate.
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

namespace detail {

inline constexpr std::size_t coarse_run = 512;  // aggregates

// f(run, begin, end, rank) for runs of the aggregates.
template <class F>
void each_coarse_run(std::size_t count, Crew& crew, F&& f) {
  crew.each(team_size(crew.size(), count, coarse_run), (count + coarse_run - 1) / coarse_run,
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

template <class T>
struct Link {
  std::uint32_t to;
  T weight;
};

// The neighbours of each aggregate, in the order of the aggregates' numbers.
template <class T>
class Neighbours {
 public:
  Buffer<std::uint32_t> count;  // of each aggregate

  Neighbours(const Graph<T>& fine, const Aggregates& aggregates, const Members& members, Crew& crew)
      : count(aggregates.count),
        run_((aggregates.count + coarse_run - 1) / coarse_run),
        begin_(aggregates.count),
        fine_(fine),
        of_(aggregates.of.data()),
        members_(members) {
    std::vector<Scratch> scratch(static_cast<std::size_t>(crew.size()));
    each_coarse_run(aggregates.count, crew,
                    [&](std::size_t r, std::size_t from, std::size_t to, std::size_t rank) {
                      Scratch& mine = scratch[rank];
                      if (mine.place.empty()) mine.place.resize(aggregates.count, nowhere);
                      collect(from, to, mine);
                      const std::size_t links = merge(from, to, mine);
                      run_[r] = Buffer<Link<T>>(links + usual);
                      std::copy_n(mine.merged.data(), links, run_[r].data());
                    });
  }

  const Link<T>* of(std::size_t I) const { return run_[I / coarse_run].data() + begin_[I]; }

  // f(J) for each neighbour J of I, and f(I) for those that I lacks to `usual` ones: a loop that
  // ends anywhere below would be mispredicted for most aggregates.
  template <class F>
  BILATERAL_INLINE void each(std::size_t I, F&& f) const {
    const Link<T>* link = of(I);
    const std::uint32_t own = static_cast<std::uint32_t>(I), links = count[I];
    for (std::uint32_t k = 0; k < usual; ++k) {
      const std::uint32_t J = link[k].to;
      f(k < links ? J : own);
    }
    for (std::uint32_t k = usual; k < links; ++k) f(link[k].to);
  }

 private:
  static constexpr std::uint32_t usual = 8;  // neighbours; few aggregates have more

  struct Scratch {
    std::vector<Link<T>> links, merged;         // of a run of aggregates
    std::array<std::uint32_t, coarse_run> end;  // of each aggregate's links
    std::vector<std::uint32_t> place;
    std::uint32_t base = 0;
  };

  // What leads out of aggregates [from, to), perhaps several links to the same aggregate. Rows
  // rarely have more than `spare_columns` columns; a loop that ends anywhere below would be
  // mispredicted for most rows.
  void collect(std::size_t from, std::size_t to, Scratch& scratch) {
    constexpr std::size_t read = Graph<T>::spare_columns;
    const std::uint32_t *first = fine_.entry.first.data(), *of = of_;
    const std::uint32_t begin = members_.first[from], end = members_.first[to];
    std::size_t most = 1;
    for (std::uint32_t m = begin; m < end; ++m) {
      const std::size_t s = members_.row[m] / slice_rows;
      most += first[s + 1] - first[s];
    }
    if (scratch.links.size() < most) {
      scratch.links.resize(most);
      scratch.merged.resize(most);
    }
    Link<T>* out = scratch.links.data();
    for (std::uint32_t m = begin; m < end; ++m) {
      const std::size_t row = members_.row[m], s = row / slice_rows;
      const std::size_t columns = first[s + 1] - first[s];
      const std::size_t entry = first[s] * slice_rows + row % slice_rows;
      const std::uint32_t* at = fine_.entry.to.data() + entry;
      const T* weights = fine_.weight.data() + entry;
      const std::uint32_t own = of[row];
      const auto add = [&](std::size_t k) __attribute__((always_inline)) {
        const T weight = weights[k * slice_rows];
        const std::uint32_t there = of[at[k * slice_rows]];
        *out = {there, weight};
        out += (k < columns) & (there != own);
      };
      for (std::size_t k = 0; k < read; ++k) add(k);
      for (std::size_t k = read; k < columns; ++k) add(k);
      scratch.end[own - from] = static_cast<std::uint32_t>(out - scratch.links.data());
    }
  }

  // Links to the same aggregate become one. place[J] - base is where the current list has J; what
  // it says of other lists is out of range. Without branches: whether J is new is anyone's guess.
  // Returns the length of `merged`.
  std::size_t merge(std::size_t from, std::size_t to, Scratch& scratch) {
    Link<T>* list = scratch.merged.data();
    const Link<T>* link = scratch.links.data();
    std::uint32_t* place = scratch.place.data();
    const std::uint32_t base = scratch.base;
    std::uint32_t end = 0;
    for (std::size_t I = from; I < to; ++I) {
      const std::uint32_t start = end;
      const Link<T>* last = scratch.links.data() + scratch.end[I - from];
      for (; link < last; ++link) {
        const std::uint32_t at = place[link->to] - base;
        const std::uint32_t fresh = at - start >= end - start;
        const std::uint32_t here = at ^ ((at ^ end) & -fresh);
        list[end].weight = T{0};
        list[here] = {link->to, list[here].weight + link->weight};
        place[link->to] = base + here;
        end += fresh;
      }
      begin_[I] = start;
      count[I] = end - start;
    }
    scratch.base += end;
    return end;
  }

  std::vector<Buffer<Link<T>>> run_;
  Buffer<std::uint32_t> begin_;  // of each aggregate, within its run
  const Graph<T>& fine_;
  const std::uint32_t* of_;
  const Members& members_;
};

}  // namespace detail

}  // namespace bilateral
