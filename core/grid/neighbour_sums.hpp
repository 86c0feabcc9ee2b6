// Sum over the neighbours of 16 vertices at a time by AVX-512: B-bar v, and differences for A v.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/avx512.hpp"
#include "base/multiversion.hpp"
#include "grid/grid.hpp"
#include "grid/neighbours.hpp"

namespace bilateral {

// The weights of a vertex, of its neighbours in space and of those in range.
struct BlurWeights {
  double centre, space, range;
};

// Those of B-bar.
inline BlurWeights blur_weights(const Grid& grid) { return {grid.centre, grid.space, grid.range}; }

#if defined(__x86_64__)

namespace detail {

// 32 consecutive numbers.
struct Window {
  __m512 low, high;
};

BILATERAL_AVX512 BILATERAL_INLINE Window window_at(const float* from) {
  return {_mm512_loadu_ps(from), _mm512_loadu_ps(from + 16)};
}

BILATERAL_AVX512 BILATERAL_INLINE __m512 pick(const Window& window, __m512i place) {
  return _mm512_permutex2var_ps(window.low, place, window.high);
}

BILATERAL_AVX512 BILATERAL_INLINE __m512i places(const std::uint8_t* place) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(place)));
}

// Which of the vertices [first, first + 16) are before `last`.
BILATERAL_AVX512 BILATERAL_INLINE __mmask16 rows_until(std::size_t first, std::size_t last) {
  const std::size_t left = last - first;
  return static_cast<__mmask16>(left >= NeighbourBlock::rows ? 0xffffu : (1u << left) - 1);
}

// For each of 16 vertices, a sum over its neighbours in space and one over those in range.
struct NeighbourSums {
  __m512 space, range;
};

template <bool differences>
BILATERAL_AVX512 BILATERAL_INLINE __m512 add_neighbours(__m512 sum, __mmask16 present,
                                                        const Window& n, const Window& v,
                                                        __m512i place, __m512 own) {
  const __m512 factor = pick(n, place);
  if constexpr (differences)
    return _mm512_mask3_fmadd_ps(_mm512_sub_ps(own, pick(v, place)), factor, sum, present);
  else
    return _mm512_mask_add_ps(sum, present, sum, factor);
}

// Sums n_j (own_i - v_j) over the neighbours j, or only n_j without `differences`.
template <bool differences>
BILATERAL_AVX512 BILATERAL_INLINE NeighbourSums sum_neighbours(const NeighbourBlock& block,
                                                               std::size_t first,
                                                               std::size_t vertices, const float* n,
                                                               const float* v, __m512 own) {
  NeighbourSums sums{_mm512_setzero_ps(), _mm512_setzero_ps()};
  for (std::size_t k = 0; k < NeighbourBlock::space; ++k) {
    const Window near_n = window_at(n + block.first[k]);
    const Window near_v = differences ? window_at(v + block.first[k]) : near_n;
    sums.space = add_neighbours<differences>(sums.space, block.has_space[k], near_n, near_v,
                                             places(block.space_place[k].data()), own);
  }
  const std::size_t window = range_window(first, vertices);
  const Window near_n = window_at(n + window);
  const Window near_v = differences ? window_at(v + window) : near_n;
  for (std::size_t k = 0; k < NeighbourBlock::range; ++k)
    sums.range = add_neighbours<differences>(sums.range, block.has_range[k], near_n, near_v,
                                             places(block.range_place[k].data()), own);
  return sums;
}

// out_i = centre v_i + sum_j B_ij v_j, with the weights of the neighbours for B_ij.
BILATERAL_AVX512 inline void blur_by_table(const Grid& grid, std::size_t band,
                                           const BlurWeights& weights, const float* v, float* out) {
  const auto centre = static_cast<float>(weights.centre), space = static_cast<float>(weights.space),
             range = static_cast<float>(weights.range);
  const std::size_t begin = grid.band_vertex[band], end = grid.band_vertex[band + 1];
  const NeighbourTable& table = grid.neighbours;
  const NeighbourBlock* block = table.block.data() + table.first_block[band];
  for (std::size_t i = begin; i < end; i += NeighbourBlock::rows, ++block) {
    const __mmask16 rows = rows_until(i, end);
    const __m512 own = _mm512_maskz_loadu_ps(rows, v + i);
    const NeighbourSums sums = sum_neighbours<false>(*block, i, grid.vertices, v, nullptr, own);
    __m512 sum = _mm512_mul_ps(_mm512_set1_ps(centre), own);
    sum = _mm512_fmadd_ps(_mm512_set1_ps(space), sums.space, sum);
    sum = _mm512_fmadd_ps(_mm512_set1_ps(range), sums.range, sum);
    _mm512_mask_storeu_ps(out + i, rows, sum);
  }
  for (std::size_t i = table.first_far[band]; i < table.first_far[band + 1]; ++i) {
    const FarNeighbour& far = table.far[i];
    out[far.vertex] += (far.along_range ? range : space) * v[far.neighbour];
  }
}

// Sums over the vertices of a band.
struct ProductSums {
  double curvature = 0;  // v_i out_i
  double movement = 0;   // mass_i v_i^2
};

// Adds 16 numbers to eight sums.
BILATERAL_AVX512 BILATERAL_INLINE __m512d add_wide(__m512d sum, __m512 numbers) {
  sum = _mm512_add_pd(sum, _mm512_cvtps_pd(_mm512_castps512_ps256(numbers)));
  return _mm512_add_pd(sum, _mm512_cvtps_pd(_mm512_extractf32x8_ps(numbers, 1)));
}

// out_i = weight_i v_i + n_i sum_j B_ij n_j (v_i - v_j). Differences keep constants exact.
BILATERAL_AVX512 inline ProductSums multiply_by_table(const Grid& grid, std::size_t band,
                                                      const BlurWeights& weights,
                                                      const float* weight, const float* n,
                                                      const float* v, float* out) {
  const auto space = static_cast<float>(weights.space), range = static_cast<float>(weights.range);
  const std::size_t begin = grid.band_vertex[band], end = grid.band_vertex[band + 1];
  const NeighbourTable& table = grid.neighbours;
  const NeighbourBlock* block = table.block.data() + table.first_block[band];
  __m512d curvature = _mm512_setzero_pd(), movement = _mm512_setzero_pd();
  for (std::size_t i = begin; i < end; i += NeighbourBlock::rows, ++block) {
    const __mmask16 rows = rows_until(i, end);
    const __m512 own = _mm512_maskz_loadu_ps(rows, v + i);
    const NeighbourSums sums = sum_neighbours<true>(*block, i, grid.vertices, n, v, own);
    const __m512 flow = _mm512_fmadd_ps(_mm512_set1_ps(range), sums.range,
                                        _mm512_mul_ps(_mm512_set1_ps(space), sums.space));
    const __m512 product =
        _mm512_fmadd_ps(_mm512_maskz_loadu_ps(rows, n + i), flow,
                        _mm512_mul_ps(_mm512_maskz_loadu_ps(rows, weight + i), own));
    _mm512_mask_storeu_ps(out + i, rows, product);
    const __m512 mass = _mm512_maskz_loadu_ps(rows, grid.mass.data() + i);
    curvature = add_wide(curvature, _mm512_mul_ps(own, product));
    movement = add_wide(movement, _mm512_mul_ps(_mm512_mul_ps(mass, own), own));
  }
  ProductSums sums{_mm512_reduce_add_pd(curvature), _mm512_reduce_add_pd(movement)};
  for (std::size_t i = table.first_far[band]; i < table.first_far[band + 1]; ++i) {
    const FarNeighbour& far = table.far[i];
    const float flow = (far.along_range ? range : space) * n[far.vertex] * n[far.neighbour] *
                       (v[far.vertex] - v[far.neighbour]);
    out[far.vertex] += flow;
    sums.curvature += static_cast<double>(v[far.vertex] * flow);
  }
  return sums;
}

}  // namespace detail

#endif

}  // namespace bilateral
