// Rows of the planar model: eight rows at a time, one vector per unknown.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/pack.hpp"
#include "multigrid/rows.hpp"
#include "planes/geometry.hpp"

namespace bilateral {

// One level as the arithmetic needs it: the grid, or a coarse level.
template <class T, std::size_t D, bool fine>
struct PlaneView {
  static constexpr bool is_fine = fine;
  const Graph<T>& graph;
  const PlaneLevel<T, D>& plane;
  T slope_smoothness;
};

template <class T, std::size_t D>
struct Levels<T, Planar<D>> {
  const Hierarchy<T>& hierarchy;
  const PlaneGeometry<T, D>& geometry;
  SlopeWeights slopes;

  // Level k has the smoothness lambda stiffness^-k. A part of the grid that hangs on a few weak
  // edges moves too little on coarse levels, where one jump replaces a slope over many edges. The
  // slopes themselves are represented well there: their smoothness stays the same.
  static constexpr double stiffness = 1.15;

  double stiffness_of(std::size_t level) const {
    return std::pow(stiffness, static_cast<double>(level));
  }
  // Relative to the smoothness of the level.
  T slope_smoothness(std::size_t level) const {
    return static_cast<T>(slopes.smoothness * stiffness_of(level));
  }
  PlaneView<T, D, true> fine() const {
    return {hierarchy.fine, geometry.levels[0], slope_smoothness(0)};
  }
  PlaneView<T, D, false> coarse(std::size_t k) const {
    return {hierarchy.coarse[k], geometry.levels[k + 1], slope_smoothness(k + 1)};
  }
  const T* pixel_moments(const Grid&, Buffer<T>&) const { return geometry.pixel_moments.data(); }
};

template <class T, std::size_t D>
struct Rows<T, Planar<D>> {
  static constexpr std::size_t channels = 1;
  static constexpr std::size_t rows = slice_rows;
  static constexpr std::size_t stride = 4;  // a row's value and slopes, aligned
  static constexpr std::size_t vertex_numbers = D + 1;
  static constexpr std::size_t weight_numbers = Planar<D>::matrix;
  static constexpr std::size_t slope_numbers = Planar<D>::slope_matrix;
  static constexpr bool moves = true;
  static_assert(D + 1 <= stride);

  using Number = Wide<T, slice_rows>;  // one number of each row
  using Sum = Wide<double, slice_rows>;

  struct V {
    Number part[D + 1];

    template <class F>
    static BILATERAL_INLINE V generate(F f) {
      V out;
#pragma GCC unroll 4
      for (std::size_t u = 0; u <= D; ++u) out.part[u] = f(u);
      return out;
    }
    friend BILATERAL_INLINE V operator+(V a, V b) {
      return generate([&](std::size_t u)
                          __attribute__((always_inline)) { return a.part[u] + b.part[u]; });
    }
    friend BILATERAL_INLINE V operator-(V a, V b) {
      return generate([&](std::size_t u)
                          __attribute__((always_inline)) { return a.part[u] - b.part[u]; });
    }
    friend BILATERAL_INLINE V operator*(T a, V b) {
      return generate([&](std::size_t u) __attribute__((always_inline)) { return a * b.part[u]; });
    }
    friend BILATERAL_INLINE V operator*(Number a, V b) {
      return generate([&](std::size_t u) __attribute__((always_inline)) { return a * b.part[u]; });
    }
  };

  // Reads rows that need not be consecutive.
  static BILATERAL_INLINE V gather(const T* from, const std::uint32_t* row) {
    return transposed([=](std::size_t i)
                          __attribute__((always_inline)) { return from + row[i] * stride; });
  }
  static BILATERAL_INLINE V get(const T* from, std::size_t row) {
    return transposed([=](std::size_t i)
                          __attribute__((always_inline)) { return from + (row + i) * stride; });
  }
  static BILATERAL_INLINE void put(T* to, std::size_t row, V value) {
    constexpr std::size_t width = Number::width;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < Number::count; ++i)
#pragma GCC unroll 2
      for (std::size_t first = 0; first < stride; first += width) {
        typename Number::Part part[width];
        for (std::size_t u = 0; u < width; ++u)
          part[u] = first + u <= D ? value.part[first + u <= D ? first + u : 0].part[i]
                                   : typename Number::Part{};
        transpose_lanes<T, width>(part);
        for (std::size_t r = 0; r < width; ++r)
          store_lanes(to + (row + i * width + r) * stride + first, part[r]);
      }
  }

  static BILATERAL_INLINE Number filled(const std::array<double, 1>& numbers) {
    return Number::filled(static_cast<T>(numbers[0]));
  }
  static BILATERAL_INLINE std::array<double, 1> total(Sum sum) {
    double total = 0;
    for (const double number : unpack<slice_rows>(sum)) total += number;
    return {total};
  }

  // Returns -sum_j A_ij x_j / lambda over the columns [begin, end).
  template <bool fine>
  static BILATERAL_INLINE V pull(const PlaneView<T, D, fine>& level, std::size_t begin,
                                 std::size_t end, std::size_t, const T* x) {
    const std::uint32_t* to = level.graph.entry.to.data();
    V sum{};
    for (std::size_t c = begin; c < end; ++c) {
      const Meeting<fine> meeting(level, c);
      const V there = gather(x, to + c * slice_rows);
      meeting.add(sum, meeting.far_value(there), there);
    }
    return sum;
  }

  // Returns the smoothness term times x, over lambda, with x_i from a register.
  template <bool fine>
  static BILATERAL_INLINE V flow(const PlaneView<T, D, fine>& level, std::size_t slice, std::size_t,
                                 V x_i, const T* x) {
    const std::uint32_t* to = level.graph.entry.to.data();
    V sum{};
    for (std::size_t c = level.graph.entry.first[slice]; c < level.graph.entry.first[slice + 1];
         ++c) {
      const Meeting<fine> meeting(level, c);
      const V there = gather(x, to + c * slice_rows);
      meeting.add(sum, meeting.near_value(x_i) - meeting.far_value(there), x_i - there);
    }
    return sum;
  }

  // Returns the sum of x over each row's list of members.
  static BILATERAL_INLINE V members(const Columns& members, std::size_t slice, std::size_t,
                                    const T* x) {
    V sum{};
    for (std::size_t c = members.first[slice]; c < members.first[slice + 1]; ++c)
      sum = sum + gather(x, members.to.data() + c * slice_rows);
    return sum;
  }

  // Returns the product with symmetric matrices, one per row.
  static BILATERAL_INLINE V times(const T* matrix, std::size_t row, V x) {
    const T* from = matrix + row * weight_numbers;
    return V::generate([&](std::size_t i) __attribute__((always_inline)) {
      Number sum{};
#pragma GCC unroll 4
      for (std::size_t j = 0; j <= D; ++j)
        sum += number(from, j <= i ? triangle(i, j) : triangle(j, i)) * x.part[j];
      return sum;
    });
  }

  // Converts a residual for the restriction to the row's parent, and a parent's plane to the row's.
  template <bool fine>
  static BILATERAL_INLINE V raise(const PlaneView<T, D, fine>& level, std::size_t row, V r) {
    const T* lift = level.plane.lift.data() + row * D;
    return V::generate([&](std::size_t u) __attribute__((always_inline)) {
      return u == 0 ? r.part[0] : r.part[u] + number(lift, u == 0 ? 0 : u - 1) * r.part[0];
    });
  }
  template <bool fine>
  static BILATERAL_INLINE V lower(const PlaneView<T, D, fine>& level, std::size_t row, V x) {
    const T* lift = level.plane.lift.data() + row * D;
#pragma GCC unroll 4
    for (std::size_t d = 0; d < D; ++d) x.part[0] += number(lift, d) * x.part[d + 1];
    return x;
  }
  // Continues the neighbours' planes in a column to the centres of the rows.
  static BILATERAL_INLINE V beside(const PlaneView<T, D, true>& level, std::size_t column, V x) {
    const Meeting<true> meeting(level, column);
#pragma GCC unroll 4
    for (std::size_t d = 0; d < D; ++d)
      x.part[0] = x.part[0] - T{2} * (meeting.near[d] * x.part[d + 1]);
    return x;
  }

  static BILATERAL_INLINE Sum dot(V a, V b) {
    Sum sum{};
#pragma GCC unroll 4
    for (std::size_t u = 0; u <= D; ++u) sum += widen<slice_rows, T>(a.part[u] * b.part[u]);
    return sum;
  }
  // Returns the sum of the squares of x over the pixels of the rows.
  static BILATERAL_INLINE Sum square(const T* pixel_moments, std::size_t row, V x) {
    const T* from = pixel_moments + row * (1 + slope_numbers);
    Number sum = number(from, 0) * x.part[0] * x.part[0];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < D; ++i)
#pragma GCC unroll 4
      for (std::size_t j = 0; j <= i; ++j)
        sum +=
            T(i == j ? 1 : 2) * (number(from, 1 + triangle(i, j)) * x.part[i + 1] * x.part[j + 1]);
    return widen<slice_rows, T>(sum);
  }

 private:
  static BILATERAL_INLINE Number number(const T* from, std::size_t index) {
    return bilateral::get<slice_rows>(from + index * slice_rows);
  }

  // Where the planes of eight rows and their neighbours in one column meet.
  template <bool fine>
  struct Meeting {
    Number weight, near[D], far[D];
    Number turn;  // weight of the difference of the slopes

    BILATERAL_INLINE Meeting(const PlaneView<T, D, fine>& level, std::size_t column) {
      weight = number(level.graph.weight.data(), column);
      turn = level.slope_smoothness * weight;
      const T* from = level.plane.near.data() + column * slice_rows * D;
#pragma GCC unroll 4
      for (std::size_t d = 0; d < D; ++d) near[d] = number(from, d);
      if constexpr (!fine) {
        from = level.plane.far.data() + column * slice_rows * D;
#pragma GCC unroll 4
        for (std::size_t d = 0; d < D; ++d) far[d] = number(from, d);
      }
    }

    // The planes at the meeting point.
    BILATERAL_INLINE Number near_value(V x) const {
      Number value = x.part[0];
#pragma GCC unroll 4
      for (std::size_t d = 0; d < D; ++d) value += near[d] * x.part[d + 1];
      return value;
    }
    BILATERAL_INLINE Number far_value(V x) const {
      Number value = x.part[0];
#pragma GCC unroll 4
      for (std::size_t d = 0; d < D; ++d) {
        if constexpr (fine)
          value = value - near[d] * x.part[d + 1];
        else
          value += far[d] * x.part[d + 1];
      }
      return value;
    }

    // Adds the forces of a difference of values and of slopes.
    BILATERAL_INLINE void add(V& sum, Number value, V slopes) const {
      const Number force = weight * value;
      sum.part[0] += force;
#pragma GCC unroll 4
      for (std::size_t d = 0; d < D; ++d)
        sum.part[d + 1] += near[d] * force + turn * slopes.part[d + 1];
    }
  };

  template <class Address>
  static BILATERAL_INLINE V transposed(Address address) {
    constexpr std::size_t width = Number::width;
    V out;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < Number::count; ++i)
#pragma GCC unroll 2
      for (std::size_t first = 0; first < stride; first += width) {
        typename Number::Part part[width];
        for (std::size_t r = 0; r < width; ++r)
          part[r] = load_lanes<typename Number::Part>(address(i * width + r) + first);
        transpose_lanes<T, width>(part);
        for (std::size_t u = 0; u < width; ++u)
          if (first + u <= D) out.part[first + u].part[i] = part[u];
      }
    return out;
  }
};

}  // namespace bilateral
