// Finding neighbours: sorted lists of keys of a tile, and of the tiles beside it, are compared.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "grid.hpp"
#include "keys.hpp"
#include "lanes.hpp"
#include "multiversion.hpp"
#include "threads.hpp"

namespace bilateral {

namespace detail {

// Two sorted lists of keys: the vertices [a, a_end) and [b, b_end).
struct Lists {
  std::uint32_t a, a_end, b, b_end;
};

using FoundEdge = Edge<std::uint32_t>;

// Appends to `out` an edge wherever a key of the first list, plus shift, is in the second. `out`
// has room for one edge more than can be found.
template <class Key>
FoundEdge* join_long(const Key* keys, Lists at, Key shift, FoundEdge* out) {
  while (at.a < at.a_end && at.b < at.b_end) {
    const Key next = static_cast<Key>(keys[at.a] + shift), other = keys[at.b];
    *out = {at.a, at.b};
    out += next == other;
    at.a += next <= other;
    at.b += other <= next;
  }
  return out;
}

// The same for short lists of narrow keys: place each key of the first list, eight at a time, by
// counting the keys of the second that are smaller. Reads, but does not use, keys past the end.
BILATERAL_MULTIVERSION
inline FoundEdge* join_short(const NarrowKey* keys, Lists lists, NarrowKey shift, FoundEdge* out) {
  using Keys = Lanes<NarrowKey, 8>;
  for (std::uint32_t a = lists.a; a < lists.a_end; a += 8) {
    const Keys next = load_lanes<Keys>(keys + a) + shift;
    Keys place = {};
    for (std::uint32_t b = lists.b; b < lists.b_end; ++b) place -= keys[b] < next;
    NarrowKey wanted[8], found[8];
    store_lanes(wanted, next);
    store_lanes(found, place);
    const std::uint32_t count = std::min(lists.a_end - a, 8u);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t b = lists.b + static_cast<std::uint32_t>(found[i]);
      *out = {a + i, b};
      out += (b < lists.b_end) & (keys[b] == wanted[i]);
    }
  }
  return out;
}

inline FoundEdge* join(const WideKey* keys, Lists lists, WideKey shift, FoundEdge* out) {
  return join_long(keys, lists, shift, out);
}

inline FoundEdge* join(const NarrowKey* keys, Lists lists, NarrowKey shift, FoundEdge* out) {
  constexpr std::uint32_t few = 32;
  const bool is_short = lists.a_end - lists.a <= few && lists.b_end - lists.b <= few;
  return is_short ? join_short(keys, lists, shift, out) : join_long(keys, lists, shift, out);
}

template <class Index, class Key>
void find_edges(Grid& grid, const Tiles<Key>& tiles, int threads) {
  const std::size_t columns = tiles.columns(), rows = tiles.rows();
  const Key* keys = tiles.keys.data();
  std::vector<std::uint32_t> base;  // of each row: its band's first vertex
  for (std::size_t band = 0; band < grid.bands(); ++band)
    base.resize(grid.band_row[band + 1], grid.band_vertex[band]);
  std::array<std::vector<std::vector<Edge<Index>>>, edge_kinds> found;
  for (auto& list : found) list.resize(rows);
  const int team = team_size(threads, grid.vertices, 8192);
  std::vector<std::vector<FoundEdge>> scratch(static_cast<std::size_t>(team));
  parallel_for(team, rows, [&](std::size_t r, std::size_t rank) {
    auto& room = scratch[rank];
    const std::size_t most = std::max<std::size_t>(1, grid.layout.channels);
    room.resize(std::max(room.size(), (tiles.row_first(r + 1) - tiles.row_first(r)) * most + 1));
    const auto collect = [&](EdgeKind kind, std::uint32_t base_b, auto&& search) {
      FoundEdge* end = room.data();
      for (std::size_t i = 0; i < columns; ++i) end = search(i, r * columns + i, end);
      auto& out = found[kind][r];
      out.resize(static_cast<std::size_t>(end - room.data()));
      for (std::size_t e = 0; e < out.size(); ++e)
        out[e] = {static_cast<Index>(room[e].a - base[r]), static_cast<Index>(room[e].b - base_b)};
    };
    const auto beside = [&](std::size_t tile, std::size_t other, Key shift, FoundEdge* end) {
      const std::uint32_t* first = tiles.first.data();
      return join(keys, {first[tile], first[tile + 1], first[other], first[other + 1]}, shift, end);
    };
    collect(range_edges, base[r], [&](std::size_t, std::size_t tile, FoundEdge* end) {
      for (std::size_t k = 0; k < grid.layout.channels; ++k)
        end = beside(tile, tile, grid.layout.unit<Key>(k), end);
      return end;
    });
    collect(x_edges, base[r], [&](std::size_t i, std::size_t tile, FoundEdge* end) {
      return tiles.x.adjacent(i) ? beside(tile, tile + 1, Key{0}, end) : end;
    });
    if (tiles.y.adjacent(r))
      collect(y_edges, base[r + 1], [&](std::size_t, std::size_t tile, FoundEdge* end) {
        return beside(tile, tile + columns, Key{0}, end);
      });
  });
  for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
    EdgeList& list = grid.edges[kind];
    list.row.assign(1, 0);
    for (const auto& row : found[kind]) list.row.push_back(list.row.back() + row.size());
    Buffer<Edge<Index>> edges(list.size());
    parallel_for(team, rows, [&](std::size_t r, std::size_t) {
      std::copy(found[kind][r].begin(), found[kind][r].end(), edges.data() + list.row[r]);
      found[kind][r] = {};
    });
    list.edge = std::move(edges);
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
