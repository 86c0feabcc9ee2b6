// What conjugate gradients need of a system and its preconditioner, K channels at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/threads.hpp"

namespace bilateral {

// One system A x = b. On entry x is the start. `active` is 1 where x may move, or null for
// everywhere.
template <class T>
struct Task {
  const T* weight = nullptr;
  const std::uint8_t* active = nullptr;
  const T* b = nullptr;
  T* x = nullptr;
  double smoothness = 0;
};

// The vectors of conjugate gradients: r = b - A x, z = M^-1 r, the direction d, and q = A d. All
// threads of a team call these together; every thread gets the same sums.
template <class T, std::size_t K>
class Steps {
 public:
  using Sums = std::array<double, K>;
  struct Turn {
    Sums curvature, movement;  // d^T q, and the sum of d^2 over the pixels
  };

  virtual ~Steps() = default;

  // How many threads are worth it.
  virtual int team() const = 0;
  // Whether the steps shrink one by one, rather than in the long run.
  virtual bool steady() const = 0;
  // Before the team starts.
  virtual void set(const Task<T>& task) = 0;
  // r = b - A x, d = q = 0; may improve x first, and returns the sum of those changes' squares over
  // the pixels.
  virtual Sums begin(const Worker& worker) = 0;
  // z = M^-1 r; returns r^T z.
  virtual Sums precondition(const Worker& worker) = 0;
  // d = z + beta d, q = A d
  virtual Turn turn(const Worker& worker, const Sums& beta) = 0;
  // x += alpha d, r -= alpha q; `precondition` comes next, if anything.
  virtual void descend(const Worker& worker, const Sums& alpha) = 0;
  // Whatever x still lacks.
  virtual void end(const Worker& worker) = 0;
};

}  // namespace bilateral
