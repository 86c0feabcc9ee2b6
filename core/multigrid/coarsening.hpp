// Coarsening: builds the graph of the aggregates. The weight w_IJ is the sum of w_ij over the
// members i of I and j of J.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "multigrid/aggregation.hpp"
#include "multigrid/coarse_links.hpp"
#include "multigrid/graph.hpp"

namespace bilateral {

// Connects a level with the next coarser one. Rows without a parent lead to the end of the coarse
// level, and padding of the members to the end of the fine level: vectors have a 0 there.
struct Transfer {
  Buffer<std::uint32_t> parent;  // of each fine row
  Columns members;               // of each coarse row
};

namespace detail {

// Gives each aggregate in turn the smallest colour that no earlier neighbour has.
template <class Links>
std::vector<std::uint32_t> greedy_colours(const Links& links, std::size_t count) {
  std::vector<std::uint32_t> colour(count, nowhere), taken;
  for (std::size_t I = 0; I < count; ++I) {
    const auto* link = links.of(I);
    std::uint64_t used = 0;  // one bit for each of the first 64 colours
    for (std::uint32_t e = 0; e < links.count[I]; ++e) {
      const std::uint32_t c = colour[link[e].to];
      used |= std::uint64_t{c < 64} << (c & 63);
    }
    auto smallest = static_cast<std::uint32_t>(std::countr_one(used));
    if (smallest == 64) {
      taken.clear();
      for (std::uint32_t e = 0; e < links.count[I]; ++e) taken.push_back(colour[link[e].to]);
      while (std::find(taken.begin(), taken.end(), smallest) != taken.end()) ++smallest;
    }
    colour[I] = smallest;
  }
  return colour;
}

inline constexpr std::size_t sorted_run = 4096;  // aggregates

template <class T, class Geometry>
class Coarsening {
 public:
  Coarsening(const Graph<T>& fine, const Aggregates& aggregates, Geometry& geometry,
             ThreadPool& pool)
      : fine_(fine),
        aggregates_(aggregates),
        geometry_(geometry),
        pool_(pool),
        members_(aggregates),
        links_(fine, aggregates, members_, placed(geometry), pool),
        colour_(greedy_colours(links_, aggregates.count)),
        earlier_(aggregates.count),
        row_of_(aggregates.count) {}

  std::pair<Graph<T>, Transfer> run() {
    order_rows();
    graph_.entry.first = Buffer<std::uint32_t>(graph_.slices() + 1);
    graph_.entry.first[0] = 0;
    graph_.first_later = Buffer<std::uint32_t>(graph_.slices());
    each_slice(graph_.slices(), pool_, [&](std::size_t s) { count_columns(s); });
    graph_.allocate_entries();
    geometry_.add_level(graph_);
    each_slice(graph_.slices(), pool_, [&](std::size_t s) { fill_entries(s); });
    geometry_.order_rows(aggregate_in_, graph_.rows, pool_);
    Transfer transfer{find_parents(), list_members()};
    return {std::move(graph_), std::move(transfer)};
  }

 private:
  const Geometry& placed(Geometry& geometry) const {
    geometry.place_aggregates(aggregates_, members_, pool_);
    return geometry;
  }

  // Sorts rows by colour, and within each run of aggregates by the numbers of neighbours with
  // earlier and with later colours.
  void order_rows() {
    const std::size_t count = aggregates_.count, runs = (count + sorted_run - 1) / sorted_run;
    const auto each_run = [&](auto&& f) {
      pool_.each(team_size(pool_.size(), count, coarse_run), runs,
                 [&](std::size_t run, std::size_t) {
                   f(run, run * sorted_run, std::min(count, (run + 1) * sorted_run));
                 });
    };
    // Of each run and colour: the number of aggregates, then the first row.
    std::vector<std::vector<std::uint32_t>> first_row(runs);
    each_run([&](std::size_t run, std::size_t begin, std::size_t end) {
      auto& sizes = first_row[run];
      for (std::size_t I = begin; I < end; ++I) {
        const std::uint32_t colour = colour_[I];
        std::uint32_t earlier = 0;
        links_.each(I, [&](std::size_t J)
                           __attribute__((always_inline)) { earlier += colour_[J] < colour; });
        earlier_[I] = earlier;
        if (colour >= sizes.size()) sizes.resize(colour + std::size_t{1}, 0);
        ++sizes[colour];
      }
    });
    std::size_t colours = 0;
    for (const auto& sizes : first_row) colours = std::max(colours, sizes.size());
    aggregate_in_ = Buffer<std::uint32_t>(count + colours * slice_rows);
    std::uint32_t row = 0;
    for (std::size_t c = 0; c < colours; ++c) {
      graph_.colour.push_back(row);
      for (auto& sizes : first_row)
        if (c < sizes.size()) row += std::exchange(sizes[c], row);
      while (row % slice_rows != 0) aggregate_in_[row++] = nowhere;
    }
    graph_.colour.push_back(row);
    graph_.rows = row;
    each_run([&](std::size_t run, std::size_t begin, std::size_t end) {
      sort_run(begin, end, first_row[run]);
    });
  }

  // Assigns rows to the aggregates [begin, end), by counting sort. `first_row` has the first row of
  // each colour.
  void sort_run(std::size_t begin, std::size_t end, const std::vector<std::uint32_t>& first_row) {
    constexpr std::uint32_t max_count = 15;  // larger numbers of neighbours are sorted as this one
    constexpr std::size_t keys = (max_count + 1) * (max_count + 1);
    std::vector<std::uint32_t> next_row(first_row.size() * keys, 0);
    const auto key = [&](std::size_t I) {
      const std::uint32_t later = links_.count[I] - earlier_[I];
      return colour_[I] * keys + std::min(earlier_[I], max_count) * (max_count + 1) +
             std::min(later, max_count);
    };
    for (std::size_t I = begin; I < end; ++I) ++next_row[key(I)];
    for (std::size_t c = 0; c < first_row.size(); ++c) {
      std::uint32_t row = first_row[c];
      for (std::size_t k = c * keys; k < (c + 1) * keys; ++k)
        row += std::exchange(next_row[k], row);
    }
    for (std::size_t I = begin; I < end; ++I) {
      const std::uint32_t row = next_row[key(I)]++;
      aggregate_in_[row] = static_cast<std::uint32_t>(I);
      row_of_[I] = row;
    }
  }

  void count_columns(std::size_t s) {
    std::uint32_t earlier = 0, later = 0;
    for (std::size_t i = s * slice_rows; i < (s + 1) * slice_rows; ++i)
      if (const std::uint32_t I = aggregate_in_[i]; I != nowhere) {
        earlier = std::max(earlier, earlier_[I]);
        later = std::max(later, links_.count[I] - earlier_[I]);
      }
    graph_.first_later[s] = earlier;
    graph_.entry.first[s + 1] = earlier + later;
  }

  void fill_entries(std::size_t s) {
    for (std::size_t i = s * slice_rows; i < (s + 1) * slice_rows; ++i) {
      // The next free columns that lead to earlier and to later colours.
      std::size_t early = graph_.entry.first[s], late = graph_.first_later[s];
      const auto put = [&](std::size_t column, std::uint32_t to, T weight) {
        graph_.entry.to[column * slice_rows + i % slice_rows] = to;
        graph_.weight[column * slice_rows + i % slice_rows] = weight;
      };
      const auto pad = [&](std::size_t column) {
        put(column, static_cast<std::uint32_t>(i), T{0});
        geometry_.write_padding(column, i % slice_rows);
      };
      T degree{0};
      if (const std::uint32_t I = aggregate_in_[i]; I != nowhere) {
        const auto* link = links_.of(I);
        for (std::uint32_t e = 0; e < links_.count[I]; ++e) {
          const std::uint32_t to = row_of_[link[e].to];
          const std::size_t earlier = to < i;
          const std::size_t column = late ^ ((early ^ late) & -earlier);
          put(column, to, link[e].weight);
          geometry_.write(column, i % slice_rows, link[e], I);
          early += earlier;
          late += 1 - earlier;
          degree += link[e].weight;
        }
      }
      graph_.degree[i] = degree;
      while (early < graph_.first_later[s]) pad(early++);
      while (late < graph_.entry.first[s + 1]) pad(late++);
    }
  }

  // Returns the coarse row of each fine row.
  Buffer<std::uint32_t> find_parents() const {
    Buffer<std::uint32_t> parent(fine_.rows);
    const auto no_parent = static_cast<std::uint32_t>(graph_.rows);
    each_slice(fine_.slices(), pool_, [&](std::size_t s) {
      for (std::size_t i = s * slice_rows; i < (s + 1) * slice_rows; ++i)
        parent[i] = aggregates_.of[i] == nowhere ? no_parent : row_of_[aggregates_.of[i]];
    });
    return parent;
  }

  // Returns the fine rows of each coarse row, ascending.
  Columns list_members() const {
    Columns members;
    const std::size_t slices = graph_.slices();
    const auto count = [&](std::size_t i) {
      const std::uint32_t I = aggregate_in_[i];
      return I == nowhere ? 0 : members_.first[I + 1] - members_.first[I];
    };
    members.first = Buffer<std::uint32_t>(slices + 1);
    members.first[0] = 0;
    each_slice(slices, pool_, [&](std::size_t s) {
      std::uint32_t columns = 0;
      for (std::size_t lane = 0; lane < slice_rows; ++lane)
        columns = std::max(columns, count(s * slice_rows + lane));
      members.first[s + 1] = columns;
    });
    members.allocate();
    const auto padding = static_cast<std::uint32_t>(fine_.rows);
    each_slice(slices, pool_, [&](std::size_t s) {
      const std::size_t columns = members.first[s + 1] - members.first[s];
      for (std::size_t lane = 0; lane < slice_rows; ++lane) {
        const std::size_t i = s * slice_rows + lane, size = count(i);
        const std::uint32_t* row =
            members_.row.data() + (size > 0 ? members_.first[aggregate_in_[i]] : 0);
        std::uint32_t* to = members.to.data() + members.first[s] * slice_rows + lane;
        for (std::size_t k = 0; k < columns; ++k) {
          const std::uint32_t member = row[k < size ? k : 0];
          to[k * slice_rows] = k < size ? member : padding;
        }
      }
    });
    return members;
  }

  const Graph<T>& fine_;
  const Aggregates& aggregates_;
  Geometry& geometry_;
  ThreadPool& pool_;
  AggregateMembers members_;
  CoarseLinks<T, Geometry> links_;
  std::vector<std::uint32_t> colour_;   // of each aggregate
  Buffer<std::uint32_t> earlier_;       // number of each aggregate's neighbours of earlier colours
  Buffer<std::uint32_t> row_of_;        // row of each aggregate
  Buffer<std::uint32_t> aggregate_in_;  // aggregate of each row, or nowhere
  Graph<T> graph_;
};

}  // namespace detail

template <class T, class Geometry>
std::pair<Graph<T>, Transfer> coarsen(const Graph<T>& fine, const Aggregates& aggregates,
                                      Geometry& geometry, ThreadPool& pool) {
  return detail::Coarsening<T, Geometry>(fine, aggregates, geometry, pool).run();
}

}  // namespace bilateral
