// Plane diagonals: the blocks on the diagonal of the planar matrices, one per row and level. They
// depend on smoothness, slope weights and confidence.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/lanes.hpp"
#include "base/threads.hpp"
#include "multigrid/diagonals.hpp"
#include "multigrid/plane_matrix.hpp"
#include "multigrid/plane_rows.hpp"

namespace bilateral {

// Has the interface of Diagonals. The data term of a row includes the ridge.
template <class T, std::size_t D>
class PlaneDiagonals {
 public:
  explicit PlaneDiagonals(const Levels<T, Planar<D>>& levels)
      : levels_(levels), hierarchy_(levels.hierarchy) {
    for (std::size_t k = 0; k <= hierarchy_.depth(); ++k) {
      weight_.push_back(level_vector<T>(graph(k).rows, numbers));
      inverse_.push_back(level_vector<T>(graph(k).rows, numbers));
    }
  }

  // Planes represent smooth errors well on any level: unlike constants, they need no other
  // smoothness there.
  T smoothness(std::size_t) const { return static_cast<T>(smoothness_); }
  const T* weight(std::size_t level) const { return weight_[level].data(); }
  const T* inverse(std::size_t level) const { return inverse_[level].data(); }

  // Takes the moments of the confidences, Planar<D>::matrix numbers per vertex.
  void set(const T* moments, double smoothness) {
    moments_ = moments;
    smoothness_ = smoothness;
    stale_ = true;
  }

  bool take_stale() { return std::exchange(stale_, false); }

  // Computes all blocks. All threads of a team call this together; it ends with a barrier.
  void refresh(const Worker& worker) {
    for (std::size_t k = 0; k <= hierarchy_.depth(); ++k) {
      const Slices slices(0, graph(k).rows, worker);
      for (std::size_t s = slices.begin; s < slices.end; ++s) {
        Matrix data = k == 0 ? of_vertices(s) : of_members(k, s);
        write(weight_[k], s, data);
        add_smoothness(k, s, data);
        write(inverse_[k], s, inverse_plane<D, Number>(data));
      }
      worker.barrier.wait();
    }
  }

 private:
  static constexpr std::size_t numbers = Planar<D>::matrix;
  using Number = Lanes<double, slice_rows>;  // one number of each row of a slice
  using Matrix = PlaneMatrix<D, Number>;

  const Graph<T>& graph(std::size_t level) const {
    return level == 0 ? hierarchy_.fine : hierarchy_.coarse[level - 1];
  }

  // Numbers of the rows of a slice, in memory: single lanes of a wide vector are slow to write.
  template <std::size_t N>
  using Group = std::array<std::array<double, slice_rows>, N>;

  template <std::size_t N>
  static BILATERAL_INLINE std::array<Number, N> load(const Group<N>& group) {
    std::array<Number, N> out;
    for (std::size_t n = 0; n < N; ++n) out[n] = load_lanes<Number>(group[n].data());
    return out;
  }

  static BILATERAL_INLINE void write(Buffer<T>& to, std::size_t slice, const Matrix& matrix) {
    Group<numbers> group;
    for (std::size_t i = 0; i < numbers; ++i) store_lanes(group[i].data(), matrix[i]);
    T* out = to.data() + slice * numbers * slice_rows;
    for (std::size_t i = 0; i < numbers; ++i)
      for (std::size_t lane = 0; lane < slice_rows; ++lane)
        out[i * slice_rows + lane] = static_cast<T>(group[i][lane]);
  }

  BILATERAL_INLINE Matrix of_vertices(std::size_t s) const {
    Group<numbers> group{};
    const T* mass =
        levels_.geometry.pixel_moments.data() + s * slice_rows * (1 + Planar<D>::slope_matrix);
    for (std::size_t lane = 0; lane < slice_rows; ++lane)
      if (const std::size_t v = hierarchy_.fine.vertex[s * slice_rows + lane]; v != nowhere) {
        for (std::size_t i = 0; i < numbers; ++i)
          group[i][lane] = static_cast<double>(moments_[v * numbers + i]);
        const double ridge = smoothness_ * levels_.slopes.ridge * static_cast<double>(mass[lane]);
        for (std::size_t d = 1; d <= D; ++d) group[triangle(d, d)][lane] += ridge;
      }
    return load<numbers>(group);
  }

  BILATERAL_INLINE Matrix of_members(std::size_t k, std::size_t s) const {
    Matrix sum{};
    const Columns& members = hierarchy_.transfers[k - 1].members;
    const T* lift = levels_.geometry.levels[k - 1].lift.data();
    const T* weight = weight_[k - 1].data();
    for (std::size_t c = members.first[s]; c < members.first[s + 1]; ++c) {
      Group<numbers> data;
      Group<D> offset;
      for (std::size_t lane = 0; lane < slice_rows; ++lane) {
        const std::size_t i = members.to[c * slice_rows + lane];
        for (std::size_t n = 0; n < numbers; ++n)
          data[n][lane] = static_cast<double>(weight[in_groups(i, numbers, n)]);
        for (std::size_t d = 0; d < D; ++d)
          offset[d][lane] = static_cast<double>(lift[in_groups(i, D, d)]);
      }
      add_moved<D, Number>(sum, load<numbers>(data), load<D>(offset));
    }
    return sum;
  }

  // Adds lambda times the smoothness term's block: the sum over the columns of
  // w ((1, near) (1, near)^T + slope smoothness + spread), the last two for the slopes.
  BILATERAL_INLINE void add_smoothness(std::size_t k, std::size_t s, Matrix& matrix) const {
    using Part = Wide<T, slice_rows>;
    const Graph<T>& graph = this->graph(k);
    const PlaneLevel<T, D>& level = levels_.geometry.levels[k];
    const auto get = [](const Buffer<T>& from, std::size_t group) __attribute__((always_inline)) {
      return bilateral::get<slice_rows>(from.data() + group * slice_rows);
    };
    std::array<Part, numbers> sum{};
    Part turn{};
    for (std::size_t c = graph.entry.first[s]; c < graph.entry.first[s + 1]; ++c) {
      const Part w = get(graph.weight, c);
      sum[0] += w;
      for (std::size_t a = 0; a < D; ++a) {
        const Part force = w * get(level.near, c * D + a);
        sum[triangle(a + 1, 0)] += force;
        for (std::size_t b = 0; b <= a; ++b)
          sum[triangle(a + 1, b + 1)] += force * get(level.near, c * D + b);
      }
      if (k > 0) turn += w * get(level.spread, c);
    }
    turn += static_cast<T>(levels_.slopes.smoothness) * sum[0];
    for (std::size_t d = 1; d <= D; ++d) sum[triangle(d, d)] += turn;
    const auto lambda = static_cast<double>(smoothness(k));
    Group<numbers> group;
    for (std::size_t i = 0; i < numbers; ++i) {
      std::array<T, slice_rows> lanes;
      put<slice_rows>(lanes.data(), sum[i]);
      for (std::size_t lane = 0; lane < slice_rows; ++lane)
        group[i][lane] = lambda * static_cast<double>(lanes[lane]);
    }
    const Matrix added = load<numbers>(group);
    for (std::size_t i = 0; i < numbers; ++i) matrix[i] += added[i];
  }

  Levels<T, Planar<D>> levels_;
  const Hierarchy<T>& hierarchy_;
  const T* moments_ = nullptr;
  double smoothness_ = 0;
  bool stale_ = false;
  std::vector<Buffer<T>> weight_, inverse_;
};

template <class T, std::size_t D>
struct DiagonalsFor<T, Planar<D>> {
  using type = PlaneDiagonals<T, D>;
};

}  // namespace bilateral
