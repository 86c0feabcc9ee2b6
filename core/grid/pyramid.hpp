// Build the bilateral-space pyramid (supplement, section 2): halve coordinates until one vertex is
// left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "grid/build.hpp"
#include "grid/grid.hpp"

namespace bilateral {

namespace detail {

// The next coarser level, and the parents of the vertices of this one.
template <class Key>
std::pair<Tiles<Key>, Level> coarsen(const Tiles<Key>& fine, Key mask, int threads) {
  struct Scratch {
    std::vector<Key> keys;
    std::vector<std::uint32_t> ranks;
    Ranker<Key> ranker;
  };
  Tiles<Key> coarse;
  coarse.x = fine.x.halved();
  coarse.row = fine.row.halved();
  const std::size_t vertices = fine.keys.size(), columns = coarse.columns();
  coarse.first = Buffer<std::uint32_t>(coarse.rows() * columns + 1);
  Level level;
  level.parent = Buffer<std::uint32_t>(vertices);
  std::vector<TileRow<Key>> rows(coarse.rows());
  const int team = team_size(threads, vertices, 8192);
  std::vector<Scratch> scratch(static_cast<std::size_t>(team));
  parallel_for(team, rows.size(), [&](std::size_t r, std::size_t rank) {
    Scratch& mine = scratch[rank];
    for (std::size_t i = 0; i < columns; ++i) {
      mine.keys.clear();
      auto each_run = [&](auto&& f) {  // a coarse tile has one run of vertices per fine row
        for (std::size_t below = coarse.row.start[r]; below < coarse.row.start[r + 1]; ++below)
          f(fine.first[below * fine.columns() + coarse.x.start[i]],
            fine.first[below * fine.columns() + coarse.x.start[i + 1]]);
      };
      each_run([&](std::uint32_t begin, std::uint32_t end) {
        for (std::uint32_t v = begin; v < end; ++v)
          mine.keys.push_back(static_cast<Key>((fine.keys[v] >> 1) & mask));
      });
      mine.ranks.resize(mine.keys.size());
      const std::size_t distinct =
          mine.ranker.rank(mine.keys.data(), mine.keys.size(), mine.ranks.data());
      const auto base = static_cast<std::uint32_t>(rows[r].keys.size());
      std::size_t at = 0;
      each_run([&](std::uint32_t begin, std::uint32_t end) {
        for (std::uint32_t v = begin; v < end; ++v) level.parent[v] = base + mine.ranks[at++];
      });
      rows[r].keys.insert(rows[r].keys.end(), mine.ranker.distinct.begin(),
                          mine.ranker.distinct.begin() + static_cast<std::ptrdiff_t>(distinct));
      coarse.first[r * columns + i + 1] = static_cast<std::uint32_t>(distinct);
    }
  });
  number_vertices(rows, coarse, threads);
  for (std::size_t r = 0; r <= coarse.rows(); ++r) {
    level.band.push_back(fine.row_first(coarse.row.start[r]));
    level.parent_band.push_back(coarse.row_first(r));
  }
  parallel_for(team, rows.size(), [&](std::size_t r, std::size_t) {
    for (std::uint32_t v = level.band[r]; v < level.band[r + 1]; ++v)
      level.parent[v] += level.parent_band[r];
  });
  return {std::move(coarse), std::move(level)};
}

// Joins bands until each has at least `smallest_band` vertices, as make_bands does for the grid.
inline void join_bands(Level& level) {
  std::size_t bands = 0;
  for (std::size_t i = 1; i < level.band.size(); ++i) {
    const bool last = i + 1 == level.band.size();
    if (!last && level.band[i] - level.band[bands] < smallest_band) continue;
    ++bands;
    level.band[bands] = level.band[i];
    level.parent_band[bands] = level.parent_band[i];
  }
  level.band.resize(bands + 1);
  level.parent_band.resize(bands + 1);
}

}  // namespace detail

inline void build_pyramid(Grid& grid, int threads) {
  std::visit(
      [&]<class Key>(const Tiles<Key>& finest) {
        const Key mask = grid.layout.halving_mask<Key>();
        Tiles<Key> current;
        const Tiles<Key>* fine = &finest;
        while (fine->keys.size() > 1) {
          auto [coarse, level] = detail::coarsen(*fine, mask, threads);
          level.size = Buffer<double>(coarse.keys.size(), 0.0);
          for (std::size_t v = 0; v < fine->keys.size(); ++v)
            level.size[level.parent[v]] += grid.levels.empty() ? 1.0 : grid.levels.back().size[v];
          detail::join_bands(level);
          grid.levels.push_back(std::move(level));
          current = std::move(coarse);
          fine = &current;
        }
      },
      grid.tiles);
}

}  // namespace bilateral
