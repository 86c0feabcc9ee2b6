// How far from the solution is an iteration, judged by its steps alone?
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace bilateral {

// Takes the RMS length of each step. If steps shrink by a factor rho each, what is left is about
// the last one times rho / (1 - rho); never less than 1.5 times the last one, which is what fast
// convergence calls for. Steps of conjugate gradients go up and down, so rho comes from the last
// third of them against the third before, and the largest of the last few stands for the last.
class ErrorEstimate {
 public:
  // How many steps count as the last: 3, or 1 where they shrink reliably.
  explicit ErrorEstimate(std::size_t last = 3) : last_(last) {}

  void add(double step) { steps_.push_back(step); }

  double value() const {
    const std::size_t n = steps_.size();
    const double last =
        *std::max_element(steps_.end() - std::ptrdiff_t(std::min(n, last_)), steps_.end());
    if (n < 2) return 1.5 * last;
    const std::size_t window = std::clamp<std::size_t>(n / 3, 1, 256);
    const double now = square_sum(n - window, n), before = square_sum(n - 2 * window, n - window);
    double rho = before > 0 ? std::pow(now / before, 0.5 / static_cast<double>(window)) : 0;
    rho = std::min(rho, 1 - 0.25 / static_cast<double>(n));
    return last * std::max(1.5, rho / (1 - rho));
  }

 private:
  double square_sum(std::size_t begin, std::size_t end) const {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += steps_[i] * steps_[i];
    return sum;
  }

  std::size_t last_;
  std::vector<double> steps_;
};

}  // namespace bilateral
