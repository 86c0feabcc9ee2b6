// Steps: the operations of conjugate gradients on a system and its preconditioner, K channels at
// once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/threads.hpp"

namespace bilateral {

// One system A x = b. On entry x is the start. `active` is 1 where x may change, and null if x may
// change everywhere.
template <class T>
struct LinearSystem {
  const T* weight = nullptr;
  const std::uint8_t* active = nullptr;
  const T* b = nullptr;
  T* x = nullptr;
  double smoothness = 0;
};

// The vectors of conjugate gradients: r = b - A x, z = M^-1 r, the direction d, and q = A d. All
// threads of a team call the member functions together, and every thread gets the same sums.
template <class T, std::size_t K>
class Steps {
 public:
  using Sums = std::array<double, K>;
  struct Turn {
    Sums curvature, movement;  // d^T q, and the sum of d^2 over the pixels
  };

  virtual ~Steps() = default;

  // The number of threads worth using.
  virtual int team() const = 0;
  // Whether the steps shrink one by one rather than in the long run.
  virtual bool steady() const = 0;
  // Sets the system, before the team starts.
  virtual void set(const LinearSystem<T>& system) = 0;
  // r = b - A x, d = q = 0. May improve x first. Returns the sum of the squares of these changes
  // over the pixels.
  virtual Sums begin(const Worker& worker) = 0;
  // z = M^-1 r. Returns r^T z.
  virtual Sums precondition(const Worker& worker) = 0;
  // d = z + beta d, q = A d
  virtual Turn turn(const Worker& worker, const Sums& beta) = 0;
  // x += alpha d, r -= alpha q. Only `precondition` or `end` may follow.
  virtual void descend(const Worker& worker, const Sums& alpha) = 0;
  // Remembers x of some channels, or returns to it. Call `keep` after `precondition`, and `restore`
  // before `end`.
  virtual void keep(const Worker& worker, const std::array<bool, K>& channels) = 0;
  virtual void restore(const Worker& worker, const std::array<bool, K>& channels) = 0;
  // Completes x.
  virtual void end(const Worker& worker) = 0;
};

// Copies some of K channels of values, a thread's part of them.
template <class T, std::size_t K>
void copy_channels(const Worker& worker, const std::array<bool, K>& channels, const T* from, T* to,
                   std::size_t rows) {
  const auto share = [&](int part) {
    return rows * static_cast<std::size_t>(part) / static_cast<std::size_t>(worker.size);
  };
  for (std::size_t i = share(worker.rank); i < share(worker.rank + 1); ++i)
    for (std::size_t k = 0; k < K; ++k)
      if (channels[k]) to[i * K + k] = from[i * K + k];
}

}  // namespace bilateral
