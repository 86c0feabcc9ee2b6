// Estimate the remaining error of an iteration from the lengths of its steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace bilateral {

// Takes the RMS length of each step. If each step is shorter by a factor rho than the one before,
// the remaining error is about the last step times rho / (1 - rho).
class ErrorEstimate {
 public:
  // `steady` says that steps shrink one by one rather than in the long run. `window` is the largest
  // number of steps in each of the two windows that are compared in the long run.
  ErrorEstimate(bool steady, std::size_t window) : steady_(steady), max_window_(window) {
    steps_.reserve(2 * kept());
  }

  // Does not allocate memory: only the last steps are kept.
  void add(double step) {
    if (steps_.size() == 2 * kept())
      steps_.erase(steps_.begin(), steps_.end() - static_cast<std::ptrdiff_t>(kept()));
    steps_.push_back(step);
    ++count_;
  }

  double value() const {
    const std::size_t n = count_;
    const double last =
        steady_ ? steps_.back() : *std::max_element(steps_.end() - recent(n), steps_.end());
    const double least = steady_ ? 0.5 : 1.5;
    if (n < 2) return least * last;
    const double rho =
        std::min(steady_ ? recent_rate() : long_run_rate(), 1 - 0.25 / static_cast<double>(n));
    return last * std::max(least, rho / (1 - rho));
  }

 private:
  static std::ptrdiff_t recent(std::size_t n) {
    return std::ptrdiff_t(std::min<std::size_t>(n, 3));
  }

  // The largest of the last three ratios of a step to the step before.
  double recent_rate() const {
    double rho = 0;
    for (auto step = steps_.end() - recent(count_ - 1); step != steps_.end(); ++step)
      if (step[-1] > 0) rho = std::max(rho, step[0] / step[-1]);
    return rho;
  }

  // For steps that go up and down: compares the last third of them with the third before. The
  // estimate then uses the largest of the last three steps as the last one.
  double long_run_rate() const {
    const std::size_t n = steps_.size(),
                      window = std::clamp<std::size_t>(count_ / 3, 1, max_window_);
    const double now = square_sum(n - window, n), before = square_sum(n - 2 * window, n - window);
    return before > 0 ? std::pow(now / before, 0.5 / static_cast<double>(window)) : 0;
  }

  double square_sum(std::size_t begin, std::size_t end) const {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += steps_[i] * steps_[i];
    return sum;
  }

  // The number of steps that an estimate needs.
  std::size_t kept() const { return std::max<std::size_t>(2 * max_window_, 4); }

  bool steady_;
  std::size_t max_window_, count_ = 0;
  std::vector<double> steps_;
};

}  // namespace bilateral
