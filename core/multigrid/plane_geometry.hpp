// Plane geometry: where the planes of neighbouring rows meet, on each level of a hierarchy. It
// depends on the grid alone, so it is built once per grid.
//
// On the grid, the planes of neighbours meet midway between their centres. An aggregate has one
// plane for all its members. So two aggregates meet wherever their members do: the mean of these
// points and their covariance give the exact product P^T A P. Edges within an aggregate vanish.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

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
  Buffer<T> spread;  // the covariance of the meeting points; on the grid it is 0
  Buffer<T> lift;    // per row: its centre, from the centre of its parent; D numbers
  // Per row: the sum over its entries of w (1, near) (1, near)^T, plus w spread for the slopes.
  Buffer<T> stiffness;
  Buffer<T> mass;  // per row: number of pixels
};

template <class T, std::size_t D>
class PlaneGeometry {
 public:
  std::vector<PlaneLevel<T, D>> levels;  // [0] is the grid

  // Per row of the grid: the number of its pixels, then the sums of products of their offsets from
  // the centre, in groups of eight.
  Buffer<T> pixel_moments;

  PlaneGeometry(const Centres<D>& centres, const Grid& grid, const Hierarchy<T>& hierarchy,
                int threads) {
    ThreadPool::run(team_size(threads, grid.vertices, 4096), [&](ThreadPool& pool) {
      std::vector<Place> places = place_vertices(centres, grid, hierarchy.fine);
      add_grid(hierarchy.fine, places, pool);
      for (std::size_t k = 0; k < hierarchy.depth(); ++k) {
        std::vector<Place> above = place_parents(places, hierarchy.transfers[k]);
        set_lift(levels[k], hierarchy.transfers[k], places, above, pool);
        add_level(hierarchy, k, places, above, pool);
        places = std::move(above);
      }
      const std::size_t rows = places.size();
      levels.back().lift = Buffer<T>(rows * D, T{0});
    });
  }

 private:
  struct Place {
    double mass = 0;
    Position<D> at{};
  };
  static constexpr std::size_t triangle_size = Planar<D>::slope_matrix;

  static std::size_t in_groups(std::size_t row, std::size_t numbers, std::size_t number) {
    return row / slice_rows * (slice_rows * numbers) + number * slice_rows + row % slice_rows;
  }

  std::vector<Place> place_vertices(const Centres<D>& centres, const Grid& grid,
                                    const GridGraph<T>& graph) {
    std::vector<Place> places(graph.rows);
    constexpr std::size_t numbers = 1 + triangle_size;
    pixel_moments = Buffer<T>(graph.rows * numbers, T{0});
    for (std::size_t row = 0; row < graph.rows; ++row) {
      const std::size_t v = graph.vertex[row];
      if (v == nowhere) continue;
      places[row].mass = static_cast<double>(grid.mass[v]);
      std::copy_n(centres.position.data() + v * D, D, places[row].at.begin());
      pixel_moments[in_groups(row, numbers, 0)] = static_cast<T>(places[row].mass);
      for (std::size_t i = 0; i < triangle_size; ++i)
        pixel_moments[in_groups(row, numbers, i + 1)] =
            static_cast<T>(centres.spread[v * triangle_size + i]);
    }
    return places;
  }

  static std::vector<Place> place_parents(const std::vector<Place>& places,
                                          const Transfer& transfer) {
    std::size_t rows = (transfer.members.first.size() - 1) * slice_rows;
    std::vector<Place> above(rows);
    for (std::size_t i = 0; i < places.size(); ++i)
      if (const std::size_t parent = transfer.parent[i]; parent < rows) {
        above[parent].mass += places[i].mass;
        for (std::size_t d = 0; d < D; ++d) above[parent].at[d] += places[i].mass * places[i].at[d];
      }
    for (Place& place : above)
      for (std::size_t d = 0; d < D && place.mass > 0; ++d) place.at[d] /= place.mass;
    return above;
  }

  static void set_lift(PlaneLevel<T, D>& level, const Transfer& transfer,
                       const std::vector<Place>& places, const std::vector<Place>& above,
                       ThreadPool& pool) {
    level.lift = Buffer<T>(places.size() * D);
    each_slice(places.size() / slice_rows, pool, [&](std::size_t s) {
      for (std::size_t i = s * slice_rows; i < (s + 1) * slice_rows; ++i) {
        const std::size_t parent = transfer.parent[i];
        for (std::size_t d = 0; d < D; ++d)
          level.lift[in_groups(i, D, d)] =
              parent < above.size() ? static_cast<T>(places[i].at[d] - above[parent].at[d]) : T{0};
      }
    });
  }

  // Computes the parts of a level that follow from its meeting points.
  static void finish(PlaneLevel<T, D>& level, const Graph<T>& graph,
                     const std::vector<Place>& places, ThreadPool& pool) {
    level.mass = Buffer<T>(graph.rows);
    level.stiffness = Buffer<T>(graph.rows * Planar<D>::matrix);
    each_slice(graph.slices(), pool, [&](std::size_t s) {
      for (std::size_t i = s * slice_rows; i < (s + 1) * slice_rows; ++i) {
        const std::size_t lane = i % slice_rows;
        std::array<double, Planar<D>::matrix> sum{};
        for (std::size_t c = graph.entry.first[s]; c < graph.entry.first[s + 1]; ++c) {
          const auto w = static_cast<double>(graph.weight[c * slice_rows + lane]);
          std::array<double, D + 1> e{1.0};
          for (std::size_t d = 0; d < D; ++d)
            e[d + 1] = static_cast<double>(level.near[in_groups(c * slice_rows + lane, D, d)]);
          for (std::size_t a = 0; a <= D; ++a)
            for (std::size_t b = 0; b <= a; ++b) sum[triangle(a, b)] += w * e[a] * e[b];
          if (level.spread.size() == 0) continue;
          for (std::size_t a = 0; a < D; ++a)
            for (std::size_t b = 0; b <= a; ++b)
              sum[triangle(a + 1, b + 1)] +=
                  w * static_cast<double>(level.spread[in_groups(c * slice_rows + lane,
                                                                 triangle_size, triangle(a, b))]);
        }
        level.mass[i] = static_cast<T>(places[i].mass);
        for (std::size_t a = 0; a < sum.size(); ++a)
          level.stiffness[in_groups(i, sum.size(), a)] = static_cast<T>(sum[a]);
      }
    });
  }

  void add_grid(const GridGraph<T>& graph, const std::vector<Place>& places, ThreadPool& pool) {
    PlaneLevel<T, D>& level = levels.emplace_back();
    level.near = Buffer<T>(graph.entry.size() * D);
    each_slice(graph.slices(), pool, [&](std::size_t s) {
      for (std::size_t e = graph.entry.first[s] * slice_rows;
           e < graph.entry.first[s + 1] * slice_rows; ++e) {
        const Place& here = places[s * slice_rows + e % slice_rows];
        const Place& there = places[graph.entry.to[e]];
        for (std::size_t d = 0; d < D; ++d)
          level.near[in_groups(e, D, d)] = static_cast<T>((there.at[d] - here.at[d]) / 2);
      }
    });
    finish(level, graph, places, pool);
  }

  // The sums of w, w q and w q q^T over meeting points q.
  struct Moments {
    double weight = 0;
    std::array<double, D> first{};
    std::array<double, triangle_size> second{};
  };

  // Adds level k + 1 of the hierarchy.
  void add_level(const Hierarchy<T>& hierarchy, std::size_t k, const std::vector<Place>& below,
                 const std::vector<Place>& places, ThreadPool& pool) {
    const Graph<T>& graph = hierarchy.coarse[k];
    const Graph<T>& fine = k == 0 ? hierarchy.fine : hierarchy.coarse[k - 1];
    levels.emplace_back();
    const PlaneLevel<T, D>& finer = levels[k];
    PlaneLevel<T, D>& level = levels[k + 1];
    level.near = Buffer<T>(graph.entry.size() * D);
    level.far = Buffer<T>(graph.entry.size() * D);
    level.spread = Buffer<T>(graph.entry.size() * triangle_size);
    struct Scratch {
      std::vector<std::uint32_t> column;  // of each neighbour of the current row
      std::vector<Moments> moments;       // of each column
    };
    std::vector<Scratch> scratches(static_cast<std::size_t>(pool.size()));
    constexpr std::size_t run = 64;  // slices
    const std::size_t slices = graph.slices();
    pool.each(team_size(pool.size(), slices, run), (slices + run - 1) / run,
              [&](std::size_t part, std::size_t rank) {
                Scratch& scratch = scratches[rank];
                scratch.column.resize(graph.rows);
                const std::size_t end = std::min(slices, (part + 1) * run) * slice_rows;
                for (std::size_t row = part * run * slice_rows; row < end; ++row)
                  join(hierarchy.transfers[k], fine, finer, below, graph, level, places, row,
                       scratch.column, scratch.moments);
              });
    finish(level, graph, places, pool);
  }

  // Computes the meeting points of one row from those of its members.
  static void join(const Transfer& transfer, const Graph<T>& fine, const PlaneLevel<T, D>& finer,
                   const std::vector<Place>& below, const Graph<T>& graph, PlaneLevel<T, D>& level,
                   const std::vector<Place>& places, std::size_t row,
                   std::vector<std::uint32_t>& column, std::vector<Moments>& moments) {
    const std::size_t s = row / slice_rows, lane = row % slice_rows;
    const std::size_t first = graph.entry.first[s], columns = graph.entry.first[s + 1] - first;
    moments.assign(columns, Moments{});
    for (std::size_t c = 0; c < columns; ++c)
      column[graph.entry.to[(first + c) * slice_rows + lane]] = static_cast<std::uint32_t>(c);
    const Columns& members = transfer.members;
    for (std::size_t m = members.first[s]; m < members.first[s + 1]; ++m) {
      const std::size_t i = members.to[m * slice_rows + lane];
      if (i >= fine.rows) continue;
      const std::size_t fs = i / slice_rows, flane = i % slice_rows;
      for (std::size_t c = fine.entry.first[fs]; c < fine.entry.first[fs + 1]; ++c) {
        const std::size_t e = c * slice_rows + flane;
        const auto w = static_cast<double>(fine.weight[e]);
        const std::size_t parent = transfer.parent[fine.entry.to[e]];
        if (!(w > 0) || parent == row) continue;
        Moments& sums = moments[column[parent]];
        std::array<double, D> q;
        for (std::size_t d = 0; d < D; ++d)
          q[d] = below[i].at[d] - places[row].at[d] +
                 static_cast<double>(finer.near[in_groups(e, D, d)]);
        sums.weight += w;
        for (std::size_t a = 0; a < D; ++a) {
          sums.first[a] += w * q[a];
          for (std::size_t b = 0; b <= a; ++b) {
            const std::size_t at = triangle(a, b);
            const double own =
                finer.spread.size() == 0
                    ? 0
                    : static_cast<double>(finer.spread[in_groups(e, triangle_size, at)]);
            sums.second[at] += w * (q[a] * q[b] + own);
          }
        }
      }
    }
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t e = (first + c) * slice_rows + lane;
      const Place& there = places[graph.entry.to[e]];
      const Moments& sums = moments[c];
      const double inverse = sums.weight > 0 ? 1 / sums.weight : 0;
      std::array<double, D> mean;
      for (std::size_t d = 0; d < D; ++d) {
        mean[d] = inverse * sums.first[d];
        level.near[in_groups(e, D, d)] = static_cast<T>(mean[d]);
        level.far[in_groups(e, D, d)] = static_cast<T>(mean[d] + places[row].at[d] - there.at[d]);
      }
      for (std::size_t a = 0; a < D; ++a)
        for (std::size_t b = 0; b <= a; ++b) {
          const std::size_t at = triangle(a, b);
          double covariance = inverse * sums.second[at] - mean[a] * mean[b];
          if (a == b) covariance = std::max(covariance, 0.0);
          level.spread[in_groups(e, triangle_size, at)] = static_cast<T>(covariance);
        }
    }
  }
};

}  // namespace bilateral
