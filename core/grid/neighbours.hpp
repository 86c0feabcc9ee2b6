// Find the neighbours of 16 vertices at a time, for sums over neighbours by AVX-512.
//
// Vertices are in the order of their tiles, and colours are sorted within a tile. So the neighbours
// of 16 consecutive vertices in one direction lie close together, almost always within a window of
// 32 vertices: two registers, in which one instruction looks up all 16. The few others are listed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/avx512.hpp"
#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "grid/edges.hpp"
#include "grid/grid.hpp"

namespace bilateral {

namespace detail {

// The first vertex of the window that the range neighbours of a block share.
BILATERAL_INLINE std::size_t range_window(std::size_t block_first, std::size_t vertices) {
  constexpr std::size_t before = (NeighbourBlock::window - NeighbourBlock::rows) / 2;
  return std::min(std::max(block_first, before) - before, vertices - NeighbourBlock::window);
}

#if defined(__x86_64__)

// The neighbours of the vertices of one band, as numbers of vertices: scratch memory.
class BandNeighbours {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  void reset(const Grid& grid, std::size_t band) {
    vertices_ = grid.vertices;
    first_ = grid.band_vertex[band];
    size_ = grid.band_vertex[band + 1] - first_;
    padded_ = (size_ + NeighbourBlock::rows - 1) / NeighbourBlock::rows * NeighbourBlock::rows;
    space_.assign(NeighbourBlock::space * padded_, none);
    range_.assign(NeighbourBlock::range * padded_, none);
    count_.assign(padded_, 0);
    far.clear();
    const auto each = [&](std::size_t kind, auto&& add) {
      each_run(grid, band, kind,
               [&](auto ends, std::size_t first_a, std::size_t first_b, const auto* edges,
                   std::size_t begin, std::size_t end) {
                 for (std::size_t e = begin; e < end; ++e) {
                   const std::size_t a = first_a + edges[e].a, b = first_b + edges[e].b;
                   if constexpr (ends != Ends::only_b) add(a, b, 1);
                   if constexpr (ends != Ends::only_a) add(b, a, 0);
                 }
               });
    };
    each(range_edges, [&](std::size_t vertex, std::size_t neighbour, std::size_t) {
      std::uint8_t& count = count_[vertex - first_];
      if (count == NeighbourBlock::range) return add_far(vertex, neighbour, true);
      range_[count++ * padded_ + vertex - first_] = static_cast<std::uint32_t>(neighbour);
    });
    for (const EdgeKind kind : {x_edges, y_edges})
      each(kind, [&](std::size_t vertex, std::size_t neighbour, std::size_t next) {
        space_[(2 * (kind - x_edges) + next) * padded_ + vertex - first_] =
            static_cast<std::uint32_t>(neighbour);
      });
  }

  // Writes the blocks of the band.
  BILATERAL_AVX512 void write(NeighbourBlock* blocks) {
    const auto last_window = static_cast<std::uint32_t>(vertices_ - NeighbourBlock::window);
    for (std::size_t row = 0; row < size_; row += NeighbourBlock::rows) {
      NeighbourBlock& block = blocks[row / NeighbourBlock::rows];
      for (std::size_t k = 0; k < NeighbourBlock::space; ++k) {
        const std::uint32_t* from = space_.data() + k * padded_ + row;
        const __m512i neighbours = _mm512_loadu_si512(from);
        block.first[k] = std::min(_mm512_reduce_min_epu32(neighbours), last_window);
        block.has_space[k] = place(row, neighbours, block.first[k], block.space_place[k], false);
      }
      const std::size_t window = range_window(first_ + row, vertices_);
      for (std::size_t k = 0; k < NeighbourBlock::range; ++k) {
        const std::uint32_t* from = range_.data() + k * padded_ + row;
        block.has_range[k] = place(row, _mm512_loadu_si512(from),
                                   static_cast<std::uint32_t>(window), block.range_place[k], true);
      }
    }
  }

  std::vector<FarNeighbour> far;

 private:
  using Places = std::array<std::uint8_t, NeighbourBlock::rows>;

  // Writes the places of the neighbours of 16 vertices in a window. Returns which have one.
  BILATERAL_AVX512 std::uint16_t place(std::size_t row, __m512i neighbours, std::uint32_t window,
                                       Places& places, bool along_range) {
    const __m512i at = _mm512_sub_epi32(neighbours, _mm512_set1_epi32(static_cast<int>(window)));
    const __mmask16 is_near =
        _mm512_cmplt_epu32_mask(at, _mm512_set1_epi32(int{NeighbourBlock::window}));
    const __mmask16 exists = _mm512_cmpneq_epi32_mask(neighbours, _mm512_set1_epi32(-1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(places.data()), _mm512_cvtepi32_epi8(at));
    if (is_near != exists) {
      std::array<std::uint32_t, NeighbourBlock::rows> all;
      _mm512_storeu_si512(all.data(), neighbours);
      for (std::size_t lane = 0; lane < all.size(); ++lane)
        if ((exists & ~is_near) >> lane & 1) add_far(first_ + row + lane, all[lane], along_range);
    }
    return is_near;
  }

  void add_far(std::size_t vertex, std::size_t neighbour, bool along_range) {
    far.push_back(
        {static_cast<std::uint32_t>(vertex), static_cast<std::uint32_t>(neighbour), along_range});
  }

  std::size_t vertices_ = 0, first_ = 0, size_ = 0, padded_ = 0;
  std::vector<std::uint32_t> space_, range_;  // by direction, or in any order; then by vertex
  std::vector<std::uint8_t> count_;           // of range neighbours of each vertex
};

#endif

// Finds the neighbours of all vertices if processor and grid suit it. `most_far` is the largest
// number of neighbours outside the windows, as a fraction of the vertices.
inline void find_neighbours(Grid& grid, [[maybe_unused]] int threads,
                            [[maybe_unused]] double most_far = 0.25) {
  grid.neighbours = {};
#if defined(__x86_64__)
  if (!use_avx512 || grid.vertices < NeighbourBlock::window || grid.edges[t_edges].size() > 0)
    return;
  NeighbourTable table;
  table.first_block.assign(1, 0);
  for (std::size_t band = 0; band < grid.bands(); ++band) {
    const std::size_t size = grid.band_vertex[band + 1] - grid.band_vertex[band];
    table.first_block.push_back(table.first_block.back() +
                                (size + NeighbourBlock::rows - 1) / NeighbourBlock::rows);
  }
  table.block = Buffer<NeighbourBlock>(table.first_block.back());
  const int team = team_size(threads, grid.vertices, 8192);
  std::vector<BandNeighbours> scratch(static_cast<std::size_t>(team));
  std::vector<std::vector<FarNeighbour>> far(grid.bands());
  parallel_for(team, grid.bands(), [&](std::size_t band, std::size_t rank) {
    scratch[rank].reset(grid, band);
    scratch[rank].write(table.block.data() + table.first_block[band]);
    far[band] = scratch[rank].far;
  });
  table.first_far.assign(1, 0);
  for (const auto& each : far) {
    table.far.insert(table.far.end(), each.begin(), each.end());
    table.first_far.push_back(table.far.size());
  }
  if (static_cast<double>(table.far.size()) <= most_far * static_cast<double>(grid.vertices))
    grid.neighbours = std::move(table);
#endif
}

}  // namespace detail

}  // namespace bilateral
