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
#include "crew.hpp"
#include "graph.hpp"
#include "neighbours.hpp"

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
    return {std::move(graph_), transfer()};
  }

 private:
  // Rows by colour, and within runs of a colour by their numbers of earlier and later neighbours.
  void order() {
    const std::size_t count = aggregates_.count;
    each_coarse_run(count, crew_, [&](std::size_t, std::size_t begin, std::size_t end, auto) {
      for (std::size_t I = begin; I < end; ++I) {
        const Link<T>* link = neighbours_.of(I);
        std::uint32_t earlier = 0;
        for (std::uint32_t e = 0; e < neighbours_.count[I]; ++e)
          earlier += colour_[link[e].to] < colour_[I];
        earlier_[I] = earlier;
      }
    });
    std::vector<std::uint32_t> size;
    for (const std::uint32_t c : colour_) {
      if (c >= size.size()) size.resize(c + 1, 0);
      ++size[c];
    }
    graph_.colour.assign(1, 0);
    for (const std::uint32_t rows : size)
      graph_.colour.push_back(graph_.colour.back() +
                              static_cast<std::uint32_t>(whole_slices(rows)));
    graph_.rows = graph_.colour.back();
    of_row_ = Buffer<std::uint32_t>(graph_.rows, nowhere);
    std::vector<std::uint32_t> at(graph_.colour.begin(), graph_.colour.end() - 1);
    for (std::size_t I = 0; I < count; ++I)
      of_row_[at[colour_[I]]++] = static_cast<std::uint32_t>(I);
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    for (std::size_t c = 0; c < size.size(); ++c)
      for (std::size_t i = graph_.colour[c]; i < at[c]; i += coarse_run)
        runs.emplace_back(i, std::min<std::size_t>(at[c], i + coarse_run));
    crew_.each(team_size(crew_.size(), count, 2 * coarse_run), runs.size(),
               [&](std::size_t r, std::size_t) { sort_run(runs[r].first, runs[r].second); });
  }

  void sort_run(std::size_t begin, std::size_t end) {
    constexpr std::uint32_t most = 31;
    std::array<std::uint32_t, (most + 1) * (most + 1) + 1> at{};
    std::array<std::uint32_t, coarse_run> sorted;
    const auto key = [&](std::uint32_t I) {
      return std::min(earlier_[I], most) * (most + 1) +
             std::min(neighbours_.count[I] - earlier_[I], most);
    };
    for (std::size_t i = begin; i < end; ++i) ++at[key(of_row_[i]) + 1];
    for (std::size_t k = 1; k < at.size(); ++k) at[k] += at[k - 1];
    for (std::size_t i = begin; i < end; ++i) sorted[at[key(of_row_[i])]++] = of_row_[i];
    for (std::size_t i = begin; i < end; ++i) {
      of_row_[i] = sorted[i - begin];
      row_[of_row_[i]] = static_cast<std::uint32_t>(i);
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
    const auto none = static_cast<std::uint32_t>(of_row_.size());
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
    const std::size_t slices = of_row_.size() / slice_rows;
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
