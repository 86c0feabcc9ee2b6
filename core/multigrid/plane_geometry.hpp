// Plane geometry: where the planes of neighbouring rows meet, on each level of a hierarchy. It
// depends on the grid alone, so it is built once per grid.
//
// On the grid, the planes of neighbours meet midway between their centres. An aggregate has one
// plane for all its members. So two aggregates meet wherever their members do, and edges within an
// aggregate vanish. The mean of these points and their covariance would give the exact product
// P^T A P. Their mean variance along the axes instead of the covariance costs no steps.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/pack.hpp"
#include "base/thread_pool.hpp"
#include "grid/positions.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/model.hpp"

namespace bilateral {

// One level. Numbers of a row or of an entry lie in groups of eight: those of all eight rows of a
// slice or column are consecutive.
template <class T, std::size_t D>
struct PlaneLevel {
  Buffer<T> near;    // per entry: the meeting point, from the centre of the row; D numbers
  Buffer<T> far;     // and from the centre of the neighbour; D numbers; on the grid it is -near
  Buffer<T> spread;  // the mean variance of the meeting points along an axis; on the grid it is 0
  Buffer<T> lift;    // per row: its centre, from the centre of its parent; D numbers

  void allocate(const Graph<T>& graph, bool is_grid) {
    near = Buffer<T>(graph.entry.size() * D);
    if (!is_grid) {
      far = Buffer<T>(graph.entry.size() * D);
      spread = Buffer<T>(graph.entry.size());
    }
  }
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

  PlaneGeometry(const Centres<D>& centres, const Grid& grid, const Hierarchy<T>& hierarchy,
                int threads) {
    ThreadPool::run(team_size(threads, grid.vertices, 4096), [&](ThreadPool& pool) {
      Places places = place_vertices(centres, grid, hierarchy.fine, pool);
      add_grid(hierarchy.fine, places, pool);
      for (std::size_t k = 0; k < hierarchy.depth(); ++k) {
        Places above =
            place_parents(places, hierarchy.coarse[k].rows, hierarchy.transfers[k], pool);
        set_lift(levels[k], hierarchy.transfers[k], places, above, pool);
        levels.emplace_back();
        if (k == 0)
          add_level<true>(hierarchy, k, above, pool);
        else
          add_level<false>(hierarchy, k, above, pool);
        places = std::move(above);
      }
      levels.back().lift = level_vector<T>(places.size(), D);
    });
  }

 private:
  struct Place {
    double mass = 0;
    Position<D> at{};
  };
  using Places = Buffer<Place>;
  static constexpr std::size_t triangle_size = Planar<D>::slope_matrix;

  Places place_vertices(const Centres<D>& centres, const Grid& grid, const GridGraph<T>& graph,
                        ThreadPool& pool) {
    Places places(graph.rows, Place{});
    constexpr std::size_t numbers = 1 + triangle_size;
    pixel_moments = Buffer<T>(graph.rows * numbers);
    each_row(graph, pool, [&](std::size_t row) {
      const std::size_t v = graph.vertex[row];
      if (v != nowhere) {
        places[row].mass = static_cast<double>(grid.mass[v]);
        std::copy_n(centres.position.data() + v * D, D, places[row].at.begin());
      }
      pixel_moments[in_groups(row, numbers, 0)] = static_cast<T>(places[row].mass);
      for (std::size_t i = 0; i < triangle_size; ++i)
        pixel_moments[in_groups(row, numbers, i + 1)] =
            v == nowhere ? T{0} : static_cast<T>(centres.spread[v * triangle_size + i]);
    });
    return places;
  }

  static Places place_parents(const Places& places, std::size_t rows, const Transfer& transfer,
                              ThreadPool& pool) {
    Places above(rows);
    const Columns& members = transfer.members;
    each_slice(rows / slice_rows, pool, [&](std::size_t s) {
      for (std::size_t lane = 0; lane < slice_rows; ++lane) {
        Place sum;
        for (std::size_t c = members.first[s]; c < members.first[s + 1]; ++c) {
          const std::size_t i = members.to[c * slice_rows + lane];
          if (i >= places.size()) continue;
          sum.mass += places[i].mass;
          for (std::size_t d = 0; d < D; ++d) sum.at[d] += places[i].mass * places[i].at[d];
        }
        for (std::size_t d = 0; d < D && sum.mass > 0; ++d) sum.at[d] /= sum.mass;
        above[s * slice_rows + lane] = sum;
      }
    });
    return above;
  }

  static void set_lift(PlaneLevel<T, D>& level, const Transfer& transfer, const Places& places,
                       const Places& above, ThreadPool& pool) {
    level.lift = level_vector<T>(places.size(), D);
    each_slice(places.size() / slice_rows, pool, [&](std::size_t s) {
      for (std::size_t i = s * slice_rows; i < (s + 1) * slice_rows; ++i) {
        const std::size_t parent = transfer.parent[i];
        if (parent >= above.size()) continue;
        for (std::size_t d = 0; d < D; ++d)
          level.lift[in_groups(i, D, d)] = static_cast<T>(places[i].at[d] - above[parent].at[d]);
      }
    });
  }

  template <class F>
  static void each_row(const Graph<T>& graph, ThreadPool& pool, F&& f) {
    each_slice(graph.slices(), pool, [&](std::size_t s) {
      for (std::size_t i = s * slice_rows; i < (s + 1) * slice_rows; ++i) f(i);
    });
  }

  void add_grid(const GridGraph<T>& graph, const Places& places, ThreadPool& pool) {
    PlaneLevel<T, D>& level = levels.emplace_back();
    level.allocate(graph, true);
    each_slice(graph.slices(), pool, [&](std::size_t s) {
      for (std::size_t c = graph.entry.first[s]; c < graph.entry.first[s + 1]; ++c)
        for (std::size_t lane = 0; lane < slice_rows; ++lane) {
          const Place& here = places[s * slice_rows + lane];
          const Place& there = places[graph.entry.to[c * slice_rows + lane]];
          for (std::size_t d = 0; d < D; ++d)
            level.near[(c * D + d) * slice_rows + lane] =
                static_cast<T>((there.at[d] - here.at[d]) / 2);
        }
    });
  }

  // The sums of w, w q and w (q^2 + spread) over meeting points q.
  struct Moments {
    T weight = 0;
    std::array<T, D> first{};
    T second = 0;
  };

  // Memory of one thread.
  struct Scratch {
    std::vector<std::uint32_t> column;  // of each neighbour of the current row
    std::vector<Moments> moments;       // of each column, then of edges within the row
  };

  // Adds level k + 1 of the hierarchy; `from_grid` if k is 0.
  template <bool from_grid>
  void add_level(const Hierarchy<T>& hierarchy, std::size_t k, const Places& places,
                 ThreadPool& pool) {
    const Graph<T>& graph = hierarchy.coarse[k];
    const Graph<T>& fine = from_grid ? hierarchy.fine : hierarchy.coarse[k - 1];
    PlaneLevel<T, D>& level = levels[k + 1];
    level.allocate(graph, false);
    std::vector<Scratch> scratches(static_cast<std::size_t>(pool.size()));
    constexpr std::size_t run = 64;  // slices
    const std::size_t slices = graph.slices();
    pool.each(team_size(pool.size(), slices, run), (slices + run - 1) / run,
              [&](std::size_t part, std::size_t rank) {
                scratches[rank].column.resize(graph.rows + 1);
                for (std::size_t s = part * run; s < std::min(slices, (part + 1) * run); ++s)
                  for (std::size_t lane = 0; lane < slice_rows; ++lane)
                    join<from_grid>(hierarchy.transfers[k], fine, levels[k], graph, level, places,
                                    s, lane, scratches[rank]);
              });
  }

  // Computes the meeting points of one row from those of its members.
  template <bool from_grid>
  static void join(const Transfer& transfer, const Graph<T>& fine, const PlaneLevel<T, D>& finer,
                   const Graph<T>& graph, PlaneLevel<T, D>& level, const Places& places,
                   std::size_t s, std::size_t lane, Scratch& scratch) {
    const std::size_t row = s * slice_rows + lane;
    const std::size_t first = graph.entry.first[s], columns = graph.entry.first[s + 1] - first;
    scratch.moments.assign(columns + 1, Moments{});
    Moments* moments = scratch.moments.data();
    std::uint32_t* column = scratch.column.data();
    const std::uint32_t* neighbour = graph.entry.to.data() + first * slice_rows + lane;
    for (std::size_t c = 0; c < columns; ++c)
      column[neighbour[c * slice_rows]] = static_cast<std::uint32_t>(c);
    // Edges within the row, and padding, go to a column of their own.
    column[row] = column[graph.rows] = static_cast<std::uint32_t>(columns);
    const Columns& members = transfer.members;
    for (std::size_t m = members.first[s]; m < members.first[s + 1]; ++m) {
      const std::size_t i = members.to[m * slice_rows + lane];
      if (i >= fine.rows) continue;
      std::array<T, D> lift;
      for (std::size_t d = 0; d < D; ++d) lift[d] = finer.lift[in_groups(i, D, d)];
      const std::size_t fs = i / slice_rows, flane = i % slice_rows;
      for (std::size_t c = fine.entry.first[fs]; c < fine.entry.first[fs + 1]; ++c) {
        const std::size_t e = c * slice_rows + flane;
        const T w = fine.weight[e];
        Moments& sums = moments[column[transfer.parent[fine.entry.to[e]]]];
        sums.weight += w;
        std::array<T, D> q;
        for (std::size_t d = 0; d < D; ++d)
          q[d] = lift[d] + finer.near[(c * D + d) * slice_rows + flane];
        T square{0};
        for (std::size_t d = 0; d < D; ++d) {
          sums.first[d] += w * q[d];
          square += q[d] * q[d];
        }
        if constexpr (!from_grid) square += static_cast<T>(D) * finer.spread[e];
        sums.second += w * square;
      }
    }
    for (std::size_t c = 0; c < columns; ++c) {
      const Place& there = places[neighbour[c * slice_rows]];
      const Moments& sums = moments[c];
      const T inverse = sums.weight > T{0} ? T{1} / sums.weight : T{0};
      const std::size_t at = (first + c) * slice_rows;
      std::array<T, D> mean;
      for (std::size_t d = 0; d < D; ++d) {
        mean[d] = inverse * sums.first[d];
        level.near[at * D + d * slice_rows + lane] = mean[d];
        level.far[at * D + d * slice_rows + lane] =
            mean[d] + static_cast<T>(places[row].at[d] - there.at[d]);
      }
      T variance = inverse * sums.second;
      for (std::size_t d = 0; d < D; ++d) variance -= mean[d] * mean[d];
      level.spread[at + lane] = std::max(variance, T{0}) / static_cast<T>(D);
    }
  }
};

}  // namespace bilateral
