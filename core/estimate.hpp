// How far from the solution is an iteration, judged by its steps alone?
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace bilateral {

// Takes the RMS length of each step. If steps shrink by a factor rho each, what is left is about
// the last one times rho / (1 - rho), rho being measured between the last third of them and the
// third before. Where conjugate gradients converge slowly their steps go up and down: then the
// largest of the last three stands for the last, and no less than 1.5 times it is left. Where they
// shrink steadily, the last one is enough, and half of it.
class ErrorEstimate {
 public:
  explicit ErrorEstimate(bool steady = false) : last_(steady ? 1 : 3), least_(steady ? 0.5 : 1.5) {}

  void add(double step) { steps_.push_back(step); }

  double value() const {
    const std::size_t n = steps_.size();
    const double last =
        *std::max_element(steps_.end() - std::ptrdiff_t(std::min(n, last_)), steps_.end());
    if (n < 2) return least_ * last;
    const std::size_t window = std::clamp<std::size_t>(n / 3, 1, 256);
    const double now = square_sum(n - window, n), before = square_sum(n - 2 * window, n - window);
    double rho = before > 0 ? std::pow(now / before, 0.5 / static_cast<double>(window)) : 0;
    rho = std::min(rho, 1 - 0.25 / static_cast<double>(n));
    return last * std::max(least_, rho / (1 - rho));
  }

 private:
  double square_sum(std::size_t begin, std::size_t end) const {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += steps_[i] * steps_[i];
    return sum;
  }

  std::size_t last_;
  double least_;
  std::vector<double> steps_;
};

}  // namespace bilateral
