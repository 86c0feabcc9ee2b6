// Preconditioned conjugate gradients (supplement, Algorithm 2), K channels at once, each with its
// own step lengths.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include "base/threads.hpp"
#include "solve/error_estimate.hpp"
#include "solve/steps.hpp"

namespace bilateral {

struct PcgOptions {
  double smoothness = 0;
  int least_steps = 2;
  int most_steps = 25;
  double tolerance = -1;   // negative: always most_steps
  double of_movement = 0;  // stop, too, at an error of this part of the way from the start
  // Called by the calling thread after each step with the step's number and its error estimate;
  // true ends the solve.
  std::function<bool(int, double)> after_step;
};

struct PcgResult {
  std::vector<double> residuals;  // per step: the estimated remaining error, relative to `scale`
  double moved = 0;  // at most how far x went, RMS over the pixels, relative to `scale`
  bool converged = false;
  bool cancelled = false;
};

namespace detail {

template <class T, std::size_t K>
void iterate(const Worker& worker, Steps<T, K>& steps, std::size_t pixels,
             const std::array<double, K>& scale, const PcgOptions& options, PcgResult& result) {
  using Sums = std::array<double, K>;
  // Steps too small to change a T are noise.
  const double tolerance =
      std::max(options.tolerance, 0.05 * static_cast<double>(std::numeric_limits<T>::epsilon()));
  const auto rms = [&](double square, std::size_t k) {
    return std::sqrt(square / static_cast<double>(pixels)) / scale[k];
  };
  Sums way = steps.begin(worker);
  for (std::size_t k = 0; k < K; ++k) way[k] = rms(way[k], k);
  Sums norm = steps.precondition(worker), beta{};
  std::array<bool, K> finished{};
  std::array<ErrorEstimate, K> error;
  error.fill(ErrorEstimate(steps.steady()));
  for (int step = 1; step <= options.most_steps; ++step) {
    const auto [bend, moved] = steps.turn(worker, beta);
    Sums alpha{};
    double estimate = 0;
    bool all = true;
    for (std::size_t k = 0; k < K; ++k) {
      if (!finished[k] && bend[k] > 0) alpha[k] = norm[k] / bend[k];
      const double length = alpha[k] * rms(moved[k], k);
      error[k].add(length);
      way[k] += length;
      const double left = finished[k] ? 0 : error[k].value();
      finished[k] = finished[k] || (step >= options.least_steps &&
                                    left <= std::max(tolerance, options.of_movement * way[k]));
      all = all && finished[k];
      estimate = std::max(estimate, left);
    }
    steps.descend(worker, alpha);
    if (worker.rank == 0) {
      result.residuals.push_back(estimate);
      result.moved = *std::max_element(way.begin(), way.end());
      result.converged = all;
      result.cancelled = options.after_step && options.after_step(step, estimate);
    }
    if (all || step == options.most_steps) break;
    const Sums next = steps.precondition(worker);
    if (result.cancelled) break;
    for (std::size_t k = 0; k < K; ++k) beta[k] = norm[k] > 0 ? next[k] / norm[k] : 0;
    norm = next;
  }
  steps.end(worker);
}

}  // namespace detail

// On entry task.x is the start, on return the solution. `scale` is the size of the answer, per
// channel, in which the error estimate is given.
template <class T, std::size_t K>
PcgResult pcg(Steps<T, K>& steps, const Task<T>& task, std::size_t pixels,
              const std::array<double, K>& scale, const PcgOptions& options) {
  PcgResult result;
  steps.set(task);
  run_team(steps.team(), [&](const Worker& worker) {
    detail::iterate(worker, steps, pixels, scale, options, result);
  });
  return result;
}

}  // namespace bilateral
