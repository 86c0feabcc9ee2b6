// What a grid keeps for its solves: the bistochastization and the multigrid hierarchies.
#include "bindings/bound_grid.hpp"

#include <algorithm>
#include <utility>

#include "grid/bistochastize.hpp"
#include "grid/pyramid.hpp"
#include "multigrid/hierarchy.hpp"

namespace bilateral {

BoundGrid::BoundGrid(Grid grid) : grid_(std::move(grid)) {}
BoundGrid::~BoundGrid() = default;

void BoundGrid::coarsen(int threads) { build_pyramid(grid_, threads); }

void BoundGrid::balance(double centre, double space, double range, int threads) {
  grid_.centre = centre;
  grid_.space = space;
  grid_.range = range;
  n_ = Buffer<float>(grid_.vertices, 1.0f);
  bistochastize(grid_, n_, 2e-6, threads);
}

template <>
const float* BoundGrid::n(int) const {
  return n_.data();
}

template <>
const double* BoundGrid::n(int threads) const {
  std::call_once(once_, [&] {
    Buffer<double> fine(grid_.vertices);
    std::copy_n(n_.data(), grid_.vertices, fine.data());
    bistochastize(grid_, fine, 1e-12, threads);
    n64_ = std::move(fine);
  });
  return n64_.data();
}

template <class T>
const Hierarchy<T>& BoundGrid::multigrid(int threads) const {
  auto& cached = std::get<Cached<T>>(multigrids_);
  std::call_once(cached.once, [&] {
    cached.value = std::make_unique<Hierarchy<T>>(grid_, n<T>(threads), threads);
  });
  return *cached.value;
}

template const Hierarchy<float>& BoundGrid::multigrid<float>(int) const;
template const Hierarchy<double>& BoundGrid::multigrid<double>(int) const;

}  // namespace bilateral
