// Find the edges of the grid by comparing the sorted keys of a tile with those of the next tiles.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "grid/grid.hpp"
#include "grid/keys.hpp"

namespace bilateral {

namespace detail {

// Two sorted lists of keys, those of the vertices [a, a_end) and [b, b_end).
struct Lists {
  std::uint32_t a, a_end, b, b_end;
};

using WideEdge = Edge<std::uint32_t>;

// Appends an edge to `out` for each key of the first list that, plus `shift`, is in the second.
// `out` has room for one edge more than the largest possible number.
template <class Key>
WideEdge* join_long(const Key* keys, Lists at, Key shift, WideEdge* out) {
  while (at.a < at.a_end && at.b < at.b_end) {
    const Key next = static_cast<Key>(keys[at.a] + shift), other = keys[at.b];
    *out = {at.a, at.b};
    out += next == other;
    at.a += next <= other;
    at.b += other <= next;
  }
  return out;
}

// The same for short lists of narrow keys: finds the place of each key of the first list, eight at
// a time, by counting the smaller keys of the second. Reads, but does not use, keys past the end.
BILATERAL_INLINE WideEdge* join_short_body(const NarrowKey* keys, Lists lists, NarrowKey shift,
                                           WideEdge* out) {
  using Keys = Lanes<NarrowKey, 8>;
  using Sums = Lanes<std::uint32_t, 8>;  // a sum with a key past the end may overflow
  for (std::uint32_t a = lists.a; a < lists.a_end; a += 8) {
    const Keys next = (Keys)(load_lanes<Sums>(keys + a) + static_cast<std::uint32_t>(shift));
    Keys place = {};
    for (std::uint32_t b = lists.b; b < lists.b_end; ++b) place -= keys[b] < next;
    NarrowKey next_keys[8], places[8];
    store_lanes(next_keys, next);
    store_lanes(places, place);
    const std::uint32_t count = std::min(lists.a_end - a, 8u);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t b = lists.b + static_cast<std::uint32_t>(places[i]);
      *out = {a + i, b};
      out += (b < lists.b_end) & (keys[b] == next_keys[i]);
    }
  }
  return out;
}
inline constexpr auto join_short = multiversion<join_short_body>;

inline WideEdge* join(const WideKey* keys, Lists lists, WideKey shift, WideEdge* out) {
  return join_long(keys, lists, shift, out);
}

inline WideEdge* join(const NarrowKey* keys, Lists lists, NarrowKey shift, WideEdge* out) {
  constexpr std::uint32_t short_list = 32;
  const bool is_short = lists.a_end - lists.a <= short_list && lists.b_end - lists.b <= short_list;
  return is_short ? join_short(keys, lists, shift, out) : join_long(keys, lists, shift, out);
}

// For each row of tiles, the next row along an axis and the row before, or `nowhere`.
struct Adjacent {
  static constexpr std::size_t nowhere = ~std::size_t{0};
  std::vector<std::size_t> next, before;
};

inline Adjacent adjacent_rows(const TileRows& row, bool along_t) {
  // In this order, the next row of a row, if it exists, follows directly.
  std::vector<std::size_t> order(row.count());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto place = [&](std::size_t r) {
    const TileRows::Cell& cell = row.cell[r];
    return along_t ? std::pair(cell.y, cell.t) : std::pair(cell.t, cell.y);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  Adjacent adjacent{std::vector(row.count(), Adjacent::nowhere),
                    std::vector(row.count(), Adjacent::nowhere)};
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    auto next_place = place(order[i]);
    ++next_place.second;
    if (place(order[i + 1]) != next_place) continue;
    adjacent.next[order[i]] = order[i + 1];
    adjacent.before[order[i + 1]] = order[i];
  }
  return adjacent;
}

// Appends a run, or lengthens the last run of the band if this one continues it.
inline void append_run(std::vector<EdgeRun>& runs, std::size_t first_of_band, const EdgeRun& run) {
  if (run.begin == run.end) return;
  if (runs.size() > first_of_band) {
    EdgeRun& last = runs.back();
    if (last.ends == run.ends && last.first_a == run.first_a && last.first_b == run.first_b &&
        last.end == run.begin) {
      last.end = run.end;
      return;
    }
  }
  runs.push_back(run);
}

// Finds the runs of each band. `row` holds the first edge of each row, and `base` the first vertex
// of each row's band.
inline void make_runs(const Grid& grid, const std::vector<std::size_t>& row, const Adjacent& to,
                      const std::vector<std::uint32_t>& base, EdgeList& list) {
  const auto is_in = [&](std::size_t r, std::size_t band) {
    return r >= grid.band_row[band] && r < grid.band_row[band + 1];
  };
  list.band_run.assign(1, 0);
  for (std::size_t band = 0; band < grid.bands(); ++band) {
    const auto append = [&](Ends ends, std::size_t a, std::size_t b) {
      append_run(list.runs, list.band_run.back(), {ends, base[a], base[b], row[a], row[a + 1]});
    };
    const auto each = [&](auto&& f) {
      for (std::size_t r = grid.band_row[band]; r < grid.band_row[band + 1]; ++r) f(r);
    };
    each([&](std::size_t r) {
      const std::size_t before = to.before[r];
      if (before != Adjacent::nowhere && !is_in(before, band)) append(Ends::only_b, before, r);
    });
    each([&](std::size_t r) {
      if (to.next[r] != Adjacent::nowhere && is_in(to.next[r], band))
        append(Ends::both, r, to.next[r]);
    });
    each([&](std::size_t r) {
      if (to.next[r] != Adjacent::nowhere && !is_in(to.next[r], band))
        append(Ends::only_a, r, to.next[r]);
    });
    list.band_run.push_back(list.runs.size());
  }
}

template <class Index, class Key>
void find_edges(Grid& grid, const Tiles<Key>& tiles, int threads) {
  const std::size_t columns = tiles.columns(), rows = tiles.rows();
  const Key* keys = tiles.keys.data();
  std::vector<std::uint32_t> base;  // the first vertex of each row's band
  for (std::size_t band = 0; band < grid.bands(); ++band)
    base.resize(grid.band_row[band + 1], grid.band_vertex[band]);
  std::vector<std::size_t> same(rows);
  std::iota(same.begin(), same.end(), std::size_t{0});
  std::array<Adjacent, edge_kinds> to;
  to[range_edges] = to[x_edges] = {same, same};
  to[y_edges] = adjacent_rows(tiles.row, false);
  to[t_edges] = adjacent_rows(tiles.row, true);
  std::array<std::vector<std::vector<Edge<Index>>>, edge_kinds> edges_of_row;
  for (auto& list : edges_of_row) list.resize(rows);
  const int team = team_size(threads, grid.vertices, 8192);
  std::vector<std::vector<WideEdge>> scratch(static_cast<std::size_t>(team));
  parallel_for(team, rows, [&](std::size_t r, std::size_t rank) {
    auto& room = scratch[rank];
    const std::size_t max_edges = std::max<std::size_t>(1, grid.layout.channels);  // of a vertex
    room.resize(
        std::max(room.size(), (tiles.row_first(r + 1) - tiles.row_first(r)) * max_edges + 1));
    const auto collect = [&](EdgeKind kind, auto&& search) {
      const std::uint32_t base_b = base[to[kind].next[r]];
      WideEdge* end = room.data();
      for (std::size_t i = 0; i < columns; ++i) end = search(i, r * columns + i, end);
      auto& out = edges_of_row[kind][r];
      out.resize(static_cast<std::size_t>(end - room.data()));
      for (std::size_t e = 0; e < out.size(); ++e)
        out[e] = {static_cast<Index>(room[e].a - base[r]), static_cast<Index>(room[e].b - base_b)};
    };
    const auto beside = [&](std::size_t tile, std::size_t other, Key shift, WideEdge* end) {
      const std::uint32_t* first = tiles.first.data();
      return join(keys, {first[tile], first[tile + 1], first[other], first[other + 1]}, shift, end);
    };
    collect(range_edges, [&](std::size_t, std::size_t tile, WideEdge* end) {
      for (std::size_t k = 0; k < grid.layout.channels; ++k)
        end = beside(tile, tile, grid.layout.unit<Key>(k), end);
      return end;
    });
    collect(x_edges, [&](std::size_t i, std::size_t tile, WideEdge* end) {
      return tiles.x.adjacent(i) ? beside(tile, tile + 1, Key{0}, end) : end;
    });
    for (const EdgeKind kind : {y_edges, t_edges})
      if (const std::size_t next = to[kind].next[r]; next != Adjacent::nowhere)
        collect(kind, [&](std::size_t i, std::size_t tile, WideEdge* end) {
          return beside(tile, next * columns + i, Key{0}, end);
        });
  });
  for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
    std::vector<std::size_t> row(1, 0);
    for (const auto& edges : edges_of_row[kind]) row.push_back(row.back() + edges.size());
    make_runs(grid, row, to[kind], base, grid.edges[kind]);
    Buffer<Edge<Index>> edges(row.back());
    parallel_for(team, rows, [&](std::size_t r, std::size_t) {
      std::copy(edges_of_row[kind][r].begin(), edges_of_row[kind][r].end(), edges.data() + row[r]);
      edges_of_row[kind][r] = {};
    });
    grid.edges[kind].edge = std::move(edges);
  }
}

template <class Key>
void find_edges(Grid& grid, const Tiles<Key>& tiles, int threads) {
  std::uint32_t largest = 0;
  for (std::size_t band = 0; band < grid.bands(); ++band)
    largest = std::max(largest, grid.band_vertex[band + 1] - grid.band_vertex[band]);
  if (largest <= 65536)
    find_edges<std::uint16_t>(grid, tiles, threads);
  else
    find_edges<std::uint32_t>(grid, tiles, threads);
}

}  // namespace detail

}  // namespace bilateral
