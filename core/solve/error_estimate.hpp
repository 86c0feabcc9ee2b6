// How far from the solution is an iteration, judged by its steps alone?
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace bilateral {

// Takes the RMS length of each step. If steps shrink by a factor rho each, what is left is about
// the last one times rho / (1 - rho).
class ErrorEstimate {
 public:
  // Steady: whether steps shrink one by one rather than in the long run.
  explicit ErrorEstimate(bool steady = false) : steady_(steady) {}

  void add(double step) { steps_.push_back(step); }

  double value() const {
    const std::size_t n = steps_.size();
    const double last =
        steady_ ? steps_.back() : *std::max_element(steps_.end() - few(n), steps_.end());
    const double least = steady_ ? 0.5 : 1.5;
    if (n < 2) return least * last;
    const double rho = std::min(steady_ ? slowest() : overall(), 1 - 0.25 / static_cast<double>(n));
    return last * std::max(least, rho / (1 - rho));
  }

 private:
  static std::ptrdiff_t few(std::size_t n) { return std::ptrdiff_t(std::min<std::size_t>(n, 3)); }

  // The largest of the last three ratios of a step to the one before.
  double slowest() const {
    double rho = 0;
    for (auto step = steps_.end() - few(steps_.size() - 1); step != steps_.end(); ++step)
      if (step[-1] > 0) rho = std::max(rho, step[0] / step[-1]);
    return rho;
  }

  // Steps that go up and down: the last third of them against the third before. The largest of the
  // last three stands for the last, then.
  double overall() const {
    const std::size_t n = steps_.size(), window = std::clamp<std::size_t>(n / 3, 1, 256);
    const double now = square_sum(n - window, n), before = square_sum(n - 2 * window, n - window);
    return before > 0 ? std::pow(now / before, 0.5 / static_cast<double>(window)) : 0;
  }

  double square_sum(std::size_t begin, std::size_t end) const {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += steps_[i] * steps_[i];
    return sum;
  }

  bool steady_;
  std::vector<double> steps_;
};

}  // namespace bilateral
