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
#include "planes/matrix.hpp"
#include "planes/rows.hpp"

namespace bilateral {

// Has the interface of Diagonals. The data term of a row includes the ridge.
template <class T, std::size_t D>
class PlaneDiagonals {
 public:
  explicit PlaneDiagonals(const Levels<T, Planar<D>>& levels)
      : levels_(levels), hierarchy_(levels.hierarchy) {
    for (std::size_t k = 0; k <= hierarchy_.depth(); ++k) {
      weight_.push_back(unwritten_level_vector<T>(graph(k).rows, numbers));
      inverse_.push_back(unwritten_level_vector<T>(graph(k).rows, numbers));
    }
  }

  T smoothness(std::size_t level) const {
    return static_cast<T>(smoothness_ / levels_.stiffness_of(level));
  }
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
        const Matrix data = k == 0 ? of_vertices(s) : of_members(k, s);
        T* weight = weight_[k].data() + s * numbers * slice_rows;
        for (std::size_t i = 0; i < numbers; ++i) put<slice_rows>(weight + i * slice_rows, data[i]);
        invert(weight, smoothness_term(k, s), smoothness(k),
               inverse_[k].data() + s * numbers * slice_rows);
      }
      worker.barrier.wait();
    }
  }

 private:
  static constexpr std::size_t numbers = Planar<D>::matrix;
  using Number = Wide<T, slice_rows>;  // one number of each row of a slice
  using Matrix = PlaneMatrix<D, Number>;

  const Graph<T>& graph(std::size_t level) const {
    return level == 0 ? hierarchy_.fine : hierarchy_.coarse[level - 1];
  }

  static BILATERAL_INLINE Number get(const Buffer<T>& from, std::size_t group) {
    return bilateral::get<slice_rows>(from.data() + group * slice_rows);
  }

  BILATERAL_INLINE Matrix of_vertices(std::size_t s) const {
    static constexpr std::array<T, numbers> nothing{};
    std::array<const T*, slice_rows> rows;
    for (std::size_t lane = 0; lane < slice_rows; ++lane) {
      const std::size_t v = hierarchy_.fine.vertex[s * slice_rows + lane];
      rows[lane] = v == nowhere ? nothing.data() : moments_ + v * numbers;
    }
    Matrix out = transposed(rows);
    const Number mass = get(levels_.geometry.pixel_moments, s * (1 + Planar<D>::slope_matrix));
    const Number ridge = static_cast<T>(smoothness_ * levels_.slopes.ridge) * mass;
    for (std::size_t d = 1; d <= D; ++d) out[triangle(d, d)] += ridge;
    return out;
  }

  // Reads one matrix per row, each at a place of its own.
  static BILATERAL_INLINE Matrix transposed(const std::array<const T*, slice_rows>& rows) {
    constexpr std::size_t width = Number::width;
    Matrix out;
    for (std::size_t next = 0; next < numbers; next += width) {
      const std::size_t first = std::min(next, numbers - width);
      for (std::size_t i = 0; i < Number::count; ++i) {
        typename Number::Part part[width];
        for (std::size_t r = 0; r < width; ++r)
          part[r] = load_lanes<typename Number::Part>(rows[i * width + r] + first);
        transpose_lanes<T, width>(part);
        for (std::size_t u = 0; u < width; ++u) out[first + u].part[i] = part[u];
      }
    }
    return out;
  }

  BILATERAL_INLINE Matrix of_members(std::size_t k, std::size_t s) const {
    Matrix sum{};
    const Columns& members = hierarchy_.transfers[k - 1].members;
    const T* lift = levels_.geometry.levels[k - 1].lift.data();
    const T* weight = weight_[k - 1].data();
    for (std::size_t c = members.first[s]; c < members.first[s + 1]; ++c) {
      const std::uint32_t* member = members.to.data() + c * slice_rows;
      const Matrix data = gather<numbers>(weight, member);
      add_moved<D, Number>(sum, data, gather<D>(lift, member));
    }
    return sum;
  }

  // Reads N numbers of each of eight rows, which lie in groups.
  template <std::size_t N>
  static BILATERAL_INLINE std::array<Number, N> gather(const T* from, const std::uint32_t* rows) {
    std::array<std::array<T, slice_rows>, N> numbers_of;
    for (std::size_t lane = 0; lane < slice_rows; ++lane)
      for (std::size_t n = 0; n < N; ++n) numbers_of[n][lane] = from[in_groups(rows[lane], N, n)];
    std::array<Number, N> out;
    for (std::size_t n = 0; n < N; ++n) out[n] = bilateral::get<slice_rows>(numbers_of[n].data());
    return out;
  }

  // The smoothness term's block over lambda: the sum over the columns of
  // w ((1, near) (1, near)^T + slope smoothness), the latter for the slopes.
  BILATERAL_INLINE Matrix smoothness_term(std::size_t k, std::size_t s) const {
    const Graph<T>& graph = this->graph(k);
    const PlaneLevel<T, D>& level = levels_.geometry.levels[k];
    Matrix sum{};
    for (std::size_t c = graph.entry.first[s]; c < graph.entry.first[s + 1]; ++c) {
      const Number w = get(graph.weight, c);
      sum[0] += w;
      for (std::size_t a = 0; a < D; ++a) {
        const Number force = w * get(level.near, c * D + a);
        sum[triangle(a + 1, 0)] += force;
        for (std::size_t b = 0; b <= a; ++b)
          sum[triangle(a + 1, b + 1)] += force * get(level.near, c * D + b);
      }
    }
    const Number turn = levels_.slope_smoothness(k) * sum[0];
    for (std::size_t d = 1; d <= D; ++d) sum[triangle(d, d)] += turn;
    return sum;
  }

  // Writes the inverse of data + lambda smooth in float64, two rows at a time.
  static BILATERAL_INLINE void invert(const T* data, const Matrix& smooth, T lambda, T* out) {
    std::array<T, numbers * slice_rows> term;
    for (std::size_t i = 0; i < numbers; ++i)
      put<slice_rows>(term.data() + i * slice_rows, smooth[i]);
    for (std::size_t row = 0; row < slice_rows; row += 2) {
      PlaneMatrix<D, Pair> matrix;
      for (std::size_t i = 0; i < numbers; ++i)
        matrix[i] = load_pair(data + i * slice_rows + row) +
                    static_cast<double>(lambda) * load_pair(term.data() + i * slice_rows + row);
      const PlaneMatrix<D, Pair> inverse = inverse_plane<D, Pair>(matrix);
      for (std::size_t i = 0; i < numbers; ++i)
        for (std::size_t lane = 0; lane < 2; ++lane)
          out[i * slice_rows + row + lane] = static_cast<T>(inverse[i][lane]);
    }
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
