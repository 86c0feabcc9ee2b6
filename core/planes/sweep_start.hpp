// Sweep start: Gauss-Seidel sweeps over the two colours of the grid give the start of a planar
// solve that needs no coarser levels, since every vertex has enough data of its own.
//
// A sweep solves colour 0 for the given colour 1, then colour 1. The error of colour 1 that a sweep
// removes has factors from 0 to 1, so Chebyshev polynomials accelerate the sweeps.
#pragma once

#include <array>
#include <cstddef>

#include "base/threads.hpp"
#include "multigrid/grid_vectors.hpp"
#include "multigrid/slices.hpp"
#include "planes/diagonals.hpp"
#include "planes/rows.hpp"

namespace bilateral {

template <class T, std::size_t D>
class SweepStart {
 public:
  SweepStart(const Levels<T, Planar<D>>& levels, const PlaneDiagonals<T, D>& diagonals)
      : fine_(levels.fine()),
        graph_(levels.hierarchy.fine),
        diagonals_(diagonals),
        b_(graph_.rows * R::stride),
        x_(unwritten_level_vector<T>(graph_.rows, R::stride)),
        move_((graph_.rows - second()) * R::stride) {}

  // Computes x from b, both by vertex. All threads of a team call this together.
  void find(const Worker& worker, const T* b, T* x) {
    const GridVectors<T, Planar<D>> vectors{graph_};
    each(worker, 0, graph_.rows, [&](std::size_t row, std::size_t, std::size_t) {
      const V data = vectors.read(b, row);
      R::put(b_.data(), row, data);
      R::put(x_.data(), row, mean(row, data));
    });
    worker.barrier.wait();
    constexpr double centre = (1 + least_factor) / 2, radius = (1 - least_factor) / 2;
    double rho = radius / centre;
    for (int i = 0; i < sweeps; ++i) {
      const double next = i == 0 ? rho : 1 / (2 * centre / radius - rho);
      const double step = i == 0 ? 1 / centre : 2 * next / radius, keep = i == 0 ? 0 : next * rho;
      rho = next;
      sweep(worker, static_cast<T>(step), static_cast<T>(keep));
    }
    each(worker, 0, graph_.rows, [&](std::size_t row, std::size_t, std::size_t) {
      vectors.write(x, row, R::get(x_.data(), row));
    });
  }

 private:
  using R = Rows<T, Planar<D>>;
  using V = typename R::V;

  // Errors with smaller factors vanish more slowly. A larger number needs fewer sweeps, but leaves
  // smooth errors that the length of the first step does not show.
  static constexpr double least_factor = 0.03;
  static constexpr int sweeps = 8;

  std::size_t second() const { return graph_.colour[1]; }  // first row of colour 1

  template <class F>
  static void each(const Worker& worker, std::size_t first, std::size_t last, F&& f) {
    const Slices slices(first, last, worker);
    each_block<R>(slices.begin, slices.end, f);
  }

  // The weighted mean of each row's data, as a plane without slopes; 0 without data.
  V mean(std::size_t row, V b) const {
    std::array<T, slice_rows> mean;
    put<slice_rows>(mean.data(), b.part[0]);
    const T* weight = diagonals_.weight(0) + row * R::weight_numbers;
    for (std::size_t i = 0; i < slice_rows; ++i)
      mean[i] = weight[i] > T{0} ? mean[i] / weight[i] : T{0};
    V out{};
    out.part[0] = get<slice_rows>(mean.data());
    return out;
  }

  // Solves the rows of a block for the x of their neighbours.
  BILATERAL_INLINE V solved(std::size_t row, std::size_t s, std::size_t lane) const {
    const V sum = R::pull(fine_, graph_.entry.first[s], graph_.entry.first[s + 1], lane, x_.data());
    return R::times(diagonals_.inverse(0), row,
                    R::get(b_.data(), row) + diagonals_.smoothness(0) * sum);
  }

  // Moves colour 1 by `step` times the change of a sweep, and by `keep` times its last move. Needs
  // a barrier before, ends with a barrier.
  void sweep(const Worker& worker, T step, T keep) {
    T* x = x_.data();
    each(worker, 0, second(), [&](std::size_t row, std::size_t s, std::size_t lane) {
      R::put(x, row, solved(row, s, lane));
    });
    worker.barrier.wait();
    each(worker, second(), graph_.rows, [&](std::size_t row, std::size_t s, std::size_t lane) {
      const std::size_t at = row - second();
      const V before = R::get(x, row);
      V move = step * (solved(row, s, lane) - before);
      if (keep != T{0}) move = move + keep * R::get(move_.data(), at);
      R::put(move_.data(), at, move);
      R::put(x, row, before + move);
    });
    worker.barrier.wait();
  }

  PlaneView<T, D, true> fine_;
  const GridGraph<T>& graph_;
  const PlaneDiagonals<T, D>& diagonals_;
  Buffer<T> b_, x_;  // by row
  Buffer<T> move_;   // of the rows of colour 1
};

}  // namespace bilateral
