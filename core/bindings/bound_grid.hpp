// The grid as Python holds it: with its bistochastization, and its multigrid hierarchies once a
// solve needs them.
#pragma once

#include <memory>
#include <mutex>
#include <tuple>

#include "base/buffer.hpp"
#include "grid/grid.hpp"

namespace bilateral {

template <class T>
struct Hierarchy;

class BoundGrid {
 public:
  explicit BoundGrid(Grid grid);
  ~BoundGrid();

  const Grid& grid() const { return grid_; }

  void coarsen(int threads);
  void balance(double centre, double space, double range, int threads);

  // The vector n of the bistochastization.
  template <class T>
  const T* n(int threads) const;

  template <class T>
  const Hierarchy<T>& multigrid(int threads) const;

 private:
  Grid grid_;
  Buffer<float> n_;
  mutable std::once_flag once_;
  mutable Buffer<double> n64_;

  template <class T>
  struct Cached {
    std::once_flag once;
    std::unique_ptr<Hierarchy<T>> value;
  };
  mutable std::tuple<Cached<float>, Cached<double>> multigrids_;
};

}  // namespace bilateral
