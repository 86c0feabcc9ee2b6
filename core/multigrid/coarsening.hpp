// The graph of aggregates: w_IJ is the sum of w_ij between members of I and of J.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "multigrid/aggregation.hpp"
#include "multigrid/graph.hpp"
#include "multigrid/neighbours.hpp"

namespace bilateral {

// Between two levels. Rows without a parent lead to the coarse level's end, where a vector has a 0;
// padding of the children leads to the fine level's end, where a vector has a 0, too.
struct Transfer {
  Buffer<std::uint32_t> parent;  // of each fine row
  Columns children;              // of each coarse row
};

namespace detail {

// The smallest colour that no earlier neighbour has, aggregate by aggregate.
template <class T>
std::vector<std::uint32_t> greedy_colours(const Neighbours<T>& neighbours, std::size_t count) {
  std::vector<std::uint32_t> colour(count, nowhere), taken;
  for (std::size_t I = 0; I < count; ++I) {
    const Link<T>* link = neighbours.of(I);
    std::uint64_t used = 0;
    for (std::uint32_t e = 0; e < neighbours.count[I]; ++e) {
      const std::uint32_t c = colour[link[e].to];
      used |= std::uint64_t{c < 64} << (c & 63);
    }
    auto mine = static_cast<std::uint32_t>(std::countr_one(used));
    if (mine == 64) {
      taken.clear();
      for (std::uint32_t e = 0; e < neighbours.count[I]; ++e) taken.push_back(colour[link[e].to]);
      while (std::find(taken.begin(), taken.end(), mine) != taken.end()) ++mine;
    }
    colour[I] = mine;
  }
  return colour;
}

// Those of the lists' numbers that are below `last`, which come first in each list.
inline Columns numbers_below(const Columns& lists, std::uint32_t last, std::uint32_t padding,
                             Crew& crew) {
  Columns out;
  const std::size_t slices = lists.first.size() - 1;
  out.first = Buffer<std::uint32_t>(slices + 1);
  out.first[0] = 0;
  each_slice(slices, crew, [&](std::size_t s) {
    std::uint32_t columns = 0;
    for (std::size_t k = lists.first[s]; k < lists.first[s + 1]; ++k) {
      const std::uint32_t* to = lists.to.data() + k * slice_rows;
      columns += *std::min_element(to, to + slice_rows) < last;
    }
    out.first[s + 1] = columns;
  });
  out.allocate();
  each_slice(slices, crew, [&](std::size_t s) {
    const std::uint32_t* from = lists.to.data() + lists.first[s] * slice_rows;
    const std::size_t begin = out.first[s] * slice_rows, end = out.first[s + 1] * slice_rows;
    for (std::size_t e = begin; e < end; ++e) {
      const std::uint32_t number = from[e - begin];
      out.to[e] = number < last ? number : padding;
    }
  });
  return out;
}

inline constexpr std::size_t sorted_run = 4096;  // aggregates

template <class T>
class Coarsening {
 public:
  Coarsening(const Graph<T>& fine, const Aggregates& aggregates, Crew& crew)
      : fine_(fine),
        aggregates_(aggregates),
        crew_(crew),
        members_(aggregates),
        neighbours_(fine, aggregates, members_, crew),
        colour_(greedy_colours(neighbours_, aggregates.count)),
        earlier_(aggregates.count),
        row_(aggregates.count) {}

  // The next coarser graph, and the way there.
  std::pair<Graph<T>, Transfer> run() {
    order();
    graph_.entry.first = Buffer<std::uint32_t>(graph_.slices() + 1);
    graph_.entry.first[0] = 0;
    graph_.middle = Buffer<std::uint32_t>(graph_.slices());
    each_slice(graph_.slices(), crew_, [&](std::size_t s) { measure(s); });
    graph_.allocate_entries();
    each_slice(graph_.slices(), crew_, [&](std::size_t s) { fill(s); });
    Transfer way = transfer();
    return {std::move(graph_), std::move(way)};
  }

 private:
  // Rows by colour, and within runs of aggregates by their numbers of earlier and later neighbours.
  void order() {
    const std::size_t count = aggregates_.count, runs = (count + sorted_run - 1) / sorted_run;
    const auto each_run = [&](auto&& f) {
      crew_.each(team_size(crew_.size(), count, coarse_run), runs, [&](std::size_t r, std::size_t) {
        f(r, r * sorted_run, std::min(count, (r + 1) * sorted_run));
      });
    };
    std::vector<std::vector<std::uint32_t>> at(runs);  // of each run and colour: its first row
    each_run([&](std::size_t r, std::size_t begin, std::size_t end) {
      for (std::size_t I = begin; I < end; ++I) {
        const std::uint32_t mine = colour_[I];
        std::uint32_t earlier = 0;
        neighbours_.each(
            I, [&](std::size_t J) __attribute__((always_inline)) { earlier += colour_[J] < mine; });
        earlier_[I] = earlier;
        if (mine >= at[r].size()) at[r].resize(mine + std::size_t{1}, 0);
        ++at[r][mine];
      }
    });
    std::size_t colours = 0;
    for (const auto& sizes : at) colours = std::max(colours, sizes.size());
    of_row_ = Buffer<std::uint32_t>(count + colours * slice_rows);
    std::uint32_t row = 0;
    for (std::size_t c = 0; c < colours; ++c) {
      graph_.colour.push_back(row);
      for (auto& sizes : at)
        if (c < sizes.size()) row += std::exchange(sizes[c], row);
      while (row % slice_rows != 0) of_row_[row++] = nowhere;
    }
    graph_.colour.push_back(row);
    graph_.rows = row;
    each_run([&](std::size_t r, std::size_t begin, std::size_t end) { sort(begin, end, at[r]); });
  }

  // Puts aggregates [begin, end) in their rows; `start` has the first one of each colour.
  void sort(std::size_t begin, std::size_t end, const std::vector<std::uint32_t>& start) {
    constexpr std::uint32_t most = 15;
    constexpr std::size_t keys = (most + 1) * (most + 1);
    std::vector<std::uint32_t> at(start.size() * keys, 0);
    const auto key = [&](std::size_t I) {
      const std::uint32_t later = neighbours_.count[I] - earlier_[I];
      return colour_[I] * keys + std::min(earlier_[I], most) * (most + 1) + std::min(later, most);
    };
    for (std::size_t I = begin; I < end; ++I) ++at[key(I)];
    for (std::size_t c = 0; c < start.size(); ++c) {
      std::uint32_t row = start[c];
      for (std::size_t k = c * keys; k < (c + 1) * keys; ++k) row += std::exchange(at[k], row);
    }
    for (std::size_t I = begin; I < end; ++I) {
      const std::uint32_t row = at[key(I)]++;
      of_row_[row] = static_cast<std::uint32_t>(I);
      row_[I] = row;
    }
  }

  void measure(std::size_t s) {
    std::uint32_t earlier = 0, later = 0;
    for (std::size_t i = s * slice_rows; i < (s + 1) * slice_rows; ++i)
      if (const std::uint32_t I = of_row_[i]; I != nowhere) {
        earlier = std::max(earlier, earlier_[I]);
        later = std::max(later, neighbours_.count[I] - earlier_[I]);
      }
    graph_.middle[s] = earlier;
    graph_.entry.first[s + 1] = earlier + later;
  }

  void fill(std::size_t s) {
    for (std::size_t i = s * slice_rows; i < (s + 1) * slice_rows; ++i) {
      std::size_t early = graph_.entry.first[s], late = graph_.middle[s];
      const auto put = [&](std::size_t column, std::uint32_t to, T weight) {
        graph_.entry.to[column * slice_rows + i % slice_rows] = to;
        graph_.weight[column * slice_rows + i % slice_rows] = weight;
      };
      T degree{0};
      if (const std::uint32_t I = of_row_[i]; I != nowhere) {
        const Link<T>* link = neighbours_.of(I);
        for (std::uint32_t e = 0; e < neighbours_.count[I]; ++e) {
          const std::uint32_t to = row_[link[e].to];
          const std::size_t earlier = to < i;
          put(late ^ ((early ^ late) & -earlier), to, link[e].weight);
          early += earlier;
          late += 1 - earlier;
          degree += link[e].weight;
        }
      }
      graph_.degree[i] = degree;
      while (early < graph_.middle[s]) put(early++, static_cast<std::uint32_t>(i), T{0});
      while (late < graph_.entry.first[s + 1]) put(late++, static_cast<std::uint32_t>(i), T{0});
    }
  }

  Transfer transfer() {
    Transfer out;
    const auto none = static_cast<std::uint32_t>(graph_.rows);
    out.parent = Buffer<std::uint32_t>(fine_.rows);
    each_slice(fine_.slices(), crew_, [&](std::size_t s) {
      for (std::size_t i = s * slice_rows; i < (s + 1) * slice_rows; ++i)
        out.parent[i] = aggregates_.of[i] == nowhere ? none : row_[aggregates_.of[i]];
    });
    out.children = children();
    return out;
  }

  // Of each coarse row, in order of their numbers.
  Columns children() const {
    Columns out;
    const std::size_t slices = graph_.slices();
    const auto count = [&](std::size_t i) {
      const std::uint32_t I = of_row_[i];
      return I == nowhere ? 0 : members_.first[I + 1] - members_.first[I];
    };
    out.first = Buffer<std::uint32_t>(slices + 1);
    out.first[0] = 0;
    each_slice(slices, crew_, [&](std::size_t s) {
      std::uint32_t most = 0;
      for (std::size_t lane = 0; lane < slice_rows; ++lane)
        most = std::max(most, count(s * slice_rows + lane));
      out.first[s + 1] = most;
    });
    out.allocate();
    const auto none = static_cast<std::uint32_t>(fine_.rows);
    each_slice(slices, crew_, [&](std::size_t s) {
      const std::size_t columns = out.first[s + 1] - out.first[s];
      for (std::size_t lane = 0; lane < slice_rows; ++lane) {
        const std::size_t i = s * slice_rows + lane, size = count(i);
        const std::uint32_t* row =
            members_.row.data() + (size > 0 ? members_.first[of_row_[i]] : 0);
        std::uint32_t* to = out.to.data() + out.first[s] * slice_rows + lane;
        for (std::size_t k = 0; k < columns; ++k) {
          const std::uint32_t child = row[k < size ? k : 0];
          to[k * slice_rows] = k < size ? child : none;
        }
      }
    });
    return out;
  }

 private:
  const Graph<T>& fine_;
  const Aggregates& aggregates_;
  Crew& crew_;
  Members members_;
  Neighbours<T> neighbours_;
  std::vector<std::uint32_t> colour_;
  Buffer<std::uint32_t> earlier_;  // neighbours of an earlier colour, of each aggregate
  Buffer<std::uint32_t> row_;      // of each aggregate
  Buffer<std::uint32_t> of_row_;   // the aggregate of each row, or nowhere
  Graph<T> graph_;
};

}  // namespace detail

}  // namespace bilateral
