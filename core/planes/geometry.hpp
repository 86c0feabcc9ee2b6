// Plane geometry: where the planes of neighbouring rows meet, on each level of a hierarchy. It
// depends on the grid alone, so it is built once per grid.
//
// On the grid, the planes of neighbours meet midway between their centres. An aggregate has one
// plane for all its members. So two aggregates meet wherever their members do, and edges within an
// aggregate vanish. The mean of these points is stored. Their covariance would give the exact
// product P^T A P, and costs steps: it makes coarse levels stiffer than they are already.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/lanes.hpp"
#include "base/thread_pool.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/model.hpp"
#include "planes/positions.hpp"

namespace bilateral {

// One level. Numbers of a row or of an entry lie in groups of eight: those of all eight rows of a
// slice or column are consecutive.
template <class T, std::size_t D>
struct PlaneLevel {
  Buffer<T> near;  // per entry: the meeting point, from the centre of the row; D numbers
  Buffer<T> far;   // and from the centre of the neighbour; D numbers; on the grid it is -near
  Buffer<T> lift;  // per row: its centre, from the centre of its parent; D numbers
};

// The place of a number of a row or of an entry, of which each has `numbers`.
inline std::size_t in_groups(std::size_t item, std::size_t numbers, std::size_t number) {
  return item / slice_rows * (slice_rows * numbers) + number * slice_rows + item % slice_rows;
}

template <class T, std::size_t D>
class PlaneGeometry {
 public:
  std::vector<PlaneLevel<T, D>> levels;  // [0] is the grid

  // Per row of the grid: the number of its pixels, then the sums of products of their offsets from
  // the centre.
  Buffer<T> pixel_moments;

  explicit PlaneGeometry(const Centres<D>& centres) : centres_(centres) {}

  // Hierarchy calls the functions below while it builds the levels, in this order for each level.
  // Places the vertices, and computes where they meet.
  void place_grid(const Grid& grid, const GridGraph<T>& graph, ThreadPool& pool) {
    constexpr std::size_t numbers = 1 + triangle_size;
    places_ = Places(graph.rows, Place{});
    pixel_moments = Buffer<T>(graph.rows * numbers);
    each_slice(graph.slices(), pool, [&](std::size_t s) {
      for (std::size_t row = s * slice_rows; row < (s + 1) * slice_rows; ++row) {
        const std::size_t v = graph.vertex[row];
        if (v != nowhere) {
          places_[row].mass = static_cast<double>(grid.mass[v]);
          std::copy_n(centres_.position.data() + v * D, D, places_[row].at.begin());
        }
        pixel_moments[in_groups(row, numbers, 0)] = static_cast<T>(places_[row].mass);
        for (std::size_t i = 0; i < triangle_size; ++i)
          pixel_moments[in_groups(row, numbers, i + 1)] =
              v == nowhere ? T{0} : static_cast<T>(centres_.spread[v * triangle_size + i]);
      }
    });
    add_level(graph);
    PlaneLevel<T, D>& level = levels.back();
    each_slice(graph.slices(), pool, [&](std::size_t s) {
      for (std::size_t c = graph.entry.first[s]; c < graph.entry.first[s + 1]; ++c)
        for (std::size_t lane = 0; lane < slice_rows; ++lane) {
          const Place& here = places_[s * slice_rows + lane];
          const Place& there = places_[graph.entry.to[c * slice_rows + lane]];
          for (std::size_t d = 0; d < D; ++d)
            level.near[(c * D + d) * slice_rows + lane] =
                static_cast<T>((there.at[d] - here.at[d]) / 2);
        }
    });
  }

  // Places the aggregates of the last level's rows.
  template <class Members>
  void place_aggregates(const Aggregates& aggregates, const Members& members, ThreadPool& pool) {
    aggregate_ = Places(aggregates.count);
    PlaneLevel<T, D>& level = levels.back();
    level.lift = level_vector<T>(places_.size(), D);
    detail::each_coarse_run(aggregates.count, pool,
                            [&](std::size_t, std::size_t from, std::size_t to, std::size_t) {
                              for (std::size_t I = from; I < to; ++I)
                                place(I, members.row.data() + members.first[I],
                                      members.row.data() + members.first[I + 1]);
                            });
  }

  // Numbers of one meeting point, padded to a SIMD vector.
  using LinkData = Lanes<T, D <= 2 ? 2 : 4>;

  // The edges of one row: w times the meeting point, from the centre of the row's aggregate.
  struct Row {
    LinkData lift;
    const T* near;
    BILATERAL_INLINE LinkData edge(std::size_t column, T weight) const {
      LinkData q = lift;
      for (std::size_t d = 0; d < D; ++d) q[d] += near[(column * D + d) * slice_rows];
      return weight * q;
    }
  };
  BILATERAL_INLINE Row row(std::size_t i) const {
    const PlaneLevel<T, D>& level = levels[levels.size() - 1];
    Row out{{}, level.near.data() + first_[i / slice_rows] * slice_rows * D + i % slice_rows};
    for (std::size_t d = 0; d < D; ++d) out.lift[d] = level.lift[in_groups(i, D, d)];
    return out;
  }

  // Adds the level of the aggregates, whose entries are written next.
  void add_level(const Graph<T>& graph) {
    // Loops read as many spare columns as those of the graph, and ignore them.
    constexpr std::size_t spare = Graph<T>::spare_columns * slice_rows * D;
    PlaneLevel<T, D>& level = levels.emplace_back();
    level.near = Buffer<T>(graph.entry.size() * D + spare);
    std::fill_n(level.near.data() + graph.entry.size() * D, spare, T{0});
    if (levels.size() > 1) level.far = Buffer<T>(graph.entry.size() * D);
    first_ = graph.entry.first.data();
  }

  // Writes an entry: the link of aggregate I in a row of a column.
  BILATERAL_INLINE void write(std::size_t column, std::size_t lane, const auto& link,
                              std::size_t I) {
    PlaneLevel<T, D>& level = levels[levels.size() - 1];
    const T inverse = T{1} / link.weight;
    const std::size_t at = column * slice_rows * D + lane;
    for (std::size_t d = 0; d < D; ++d) {
      const T mean = inverse * link.data[d];
      level.near[at + d * slice_rows] = mean;
      level.far[at + d * slice_rows] =
          mean + static_cast<T>(aggregate_[I].at[d] - aggregate_[link.to].at[d]);
    }
  }
  BILATERAL_INLINE void write_padding(std::size_t column, std::size_t lane) {
    PlaneLevel<T, D>& level = levels[levels.size() - 1];
    const std::size_t at = column * slice_rows * D + lane;
    for (std::size_t d = 0; d < D; ++d)
      level.near[at + d * slice_rows] = level.far[at + d * slice_rows] = T{0};
  }

  // Takes the aggregate of each row of the new level.
  void order_rows(const Buffer<std::uint32_t>& aggregate_in, std::size_t rows, ThreadPool& pool) {
    places_ = Places(rows);
    each_slice(rows / slice_rows, pool, [&](std::size_t s) {
      for (std::size_t i = s * slice_rows; i < (s + 1) * slice_rows; ++i)
        places_[i] = aggregate_in[i] == nowhere ? Place{} : aggregate_[aggregate_in[i]];
    });
  }

  // Ends with a level whose rows have no parents.
  void finish() {
    levels.back().lift = level_vector<T>(places_.size(), D);
    places_ = {};
    aggregate_ = {};
  }

 private:
  struct Place {
    double mass = 0;
    Position<D> at{};
  };
  using Places = Buffer<Place>;
  static constexpr std::size_t triangle_size = Planar<D>::slope_matrix;

  // Places an aggregate at the mean position of its pixels.
  void place(std::size_t I, const std::uint32_t* begin, const std::uint32_t* end) {
    Place sum;
    for (const std::uint32_t* i = begin; i < end; ++i) {
      sum.mass += places_[*i].mass;
      for (std::size_t d = 0; d < D; ++d) sum.at[d] += places_[*i].mass * places_[*i].at[d];
    }
    for (std::size_t d = 0; d < D && sum.mass > 0; ++d) sum.at[d] /= sum.mass;
    aggregate_[I] = sum;
    for (const std::uint32_t* i = begin; i < end; ++i)
      for (std::size_t d = 0; d < D; ++d)
        levels[levels.size() - 1].lift[in_groups(*i, D, d)] =
            static_cast<T>(places_[*i].at[d] - sum.at[d]);
  }

  const Centres<D>& centres_;
  Places places_;                         // of the rows of the last level
  Places aggregate_;                      // of its aggregates
  const std::uint32_t* first_ = nullptr;  // first column of each slice of the last level
};

}  // namespace bilateral
