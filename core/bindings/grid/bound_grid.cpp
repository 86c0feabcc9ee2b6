// Compute the bistochastization, the pyramid and the multigrid hierarchies of a grid.
#include "bindings/grid/bound_grid.hpp"

#include <algorithm>
#include <utility>

#include "grid/bistochastize.hpp"
#include "grid/pyramid.hpp"

namespace bilateral {

namespace {

// Seconds since `began`, which becomes now.
double lap(BoundGrid::Clock::time_point& began) {
  const BoundGrid::Clock::time_point now = BoundGrid::Clock::now();
  return std::chrono::duration<double>(now - std::exchange(began, now)).count();
}

}  // namespace

BoundGrid::BoundGrid(Grid grid, Clock::time_point began, double lowest_eigenvalue,
                     const LevelWeights& weights, int threads)
    : grid_(std::move(grid)), lowest_eigenvalue_(lowest_eigenvalue), weights_(weights) {
  build_seconds_[0] = lap(began);
  n32_ = Buffer<float>(grid_.vertices, 1.0f);
  bistochastize(grid_, n32_, {2e-6, lowest_eigenvalue_}, threads);
  build_seconds_[2] = lap(began);
}

BoundGrid::~BoundGrid() = default;

const Grid& BoundGrid::with_pyramid(int threads) const {
  std::call_once(pyramid_once_, [&] {
    Clock::time_point began = Clock::now();
    build_pyramid(grid_, threads);
    build_seconds_[1] = lap(began);
  });
  return grid_;
}

template <>
const float* BoundGrid::n(int) const {
  return n32_.data();
}

template <>
const double* BoundGrid::n(int threads) const {
  std::call_once(n64_once_, [&] {
    Buffer<double> n(grid_.vertices);
    std::copy_n(n32_.data(), grid_.vertices, n.data());
    bistochastize(grid_, n, {1e-12, lowest_eigenvalue_}, threads);
    n64_ = std::move(n);
  });
  return n64_.data();
}

template <class T>
const Hierarchy<T>& BoundGrid::multigrid(int threads) const {
  auto& cached = std::get<Cached<T>>(multigrids_);
  std::call_once(cached.once, [&] {
    cached.value = std::make_unique<Hierarchy<T>>(grid_, n<T>(threads), weights_, threads);
  });
  return *cached.value;
}

template const Hierarchy<float>& BoundGrid::multigrid<float>(int) const;
template const Hierarchy<double>& BoundGrid::multigrid<double>(int) const;

}  // namespace bilateral
