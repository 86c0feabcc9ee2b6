// Preconditioned conjugate gradients (supplement, Algorithm 2) on K channels at once, each with its
// own step lengths.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <vector>

#include "base/threads.hpp"
#include "solve/error_estimate.hpp"
#include "solve/steps.hpp"

namespace bilateral {

struct PcgOptions {
  double smoothness = 0;
  int min_iterations = 2;
  int max_iterations = 25;
  double tolerance = -1;         // stop at this error; negative: take all iterations
  double movement_fraction = 0;  // also stop when the error is this fraction of the distance moved
  double step_noise = 0;         // errors of this many units of T's rounding (epsilon) are noise
  std::size_t error_window = 1;  // see ErrorEstimate
  // The calling thread calls it after each step with the number of the step and its error estimate.
  // A true result ends the solve.
  std::function<bool(int, double)> after_step;
};

struct PcgResult {
  std::vector<double> residuals;  // error estimate after each step, relative to `scale`
  double moved = 0;  // upper bound of the distance that x moved, RMS over the pixels and relative
                     // to `scale`
  bool converged = false;
  bool cancelled = false;
  bool diverged = false;     // rounding errors grew: x is the best of the steps
  std::exception_ptr error;  // thrown between two steps, which cancelled the solve

  // Takes the worst of each number of this and of the result for other channels.
  void join(const PcgResult& other) {
    converged = converged && other.converged;
    cancelled = other.cancelled;
    diverged = diverged || other.diverged;
    moved = std::max(moved, other.moved);
    if (residuals.size() < other.residuals.size()) residuals.resize(other.residuals.size(), 0.0);
    for (std::size_t i = 0; i < other.residuals.size(); ++i)
      residuals[i] = std::max(residuals[i], other.residuals[i]);
  }
};

namespace detail {

// Remembers the step with the smallest r^T M^-1 r. Rounding errors may make later steps arbitrarily
// bad if the smoothness term exceeds the data term by more than T resolves. A solve that converges
// as usual ends before the first copy.
template <class T, std::size_t K>
class BestStep {
 public:
  // Takes r^T M^-1 r of the start.
  BestStep(Steps<T, K>& steps, const std::array<double, K>& norm) : steps_(steps) {
    constexpr double epsilon = std::numeric_limits<T>::epsilon();
    for (std::size_t k = 0; k < K; ++k) noise_[k] = epsilon * epsilon * norm[k];
    norm_.fill(std::numeric_limits<double>::infinity());
  }

  // Takes r^T M^-1 r of the current x.
  void add(const Worker& worker, int step, const std::array<double, K>& norm) {
    if (step < first_step) return;
    std::array<bool, K> better{};
    for (std::size_t k = 0; k < K; ++k) {
      better[k] = norm[k] < least_gain * norm_[k];
      if (better[k]) norm_[k] = norm[k];
    }
    if (std::find(better.begin(), better.end(), true) != better.end()) steps_.keep(worker, better);
  }

  // Returns to the best step in channels whose last known r^T M^-1 r is far above. Returns whether
  // there are any.
  bool restore(const Worker& worker, const std::array<double, K>& norm) {
    std::array<bool, K> worse{};
    for (std::size_t k = 0; k < K; ++k)
      worse[k] = std::isfinite(norm_[k]) && !(norm[k] <= most_loss * std::max(norm_[k], noise_[k]));
    const bool any = std::find(worse.begin(), worse.end(), true) != worse.end();
    if (any) steps_.restore(worker, worse);
    return any;
  }

 private:
  static constexpr int first_step = 25;
  static constexpr double least_gain = 0.1;  // copies are rare
  static constexpr double most_loss = 1e6;   // r^T M^-1 r of healthy iterations goes up and down
  Steps<T, K>& steps_;
  std::array<double, K> norm_, noise_;
};

template <class T, std::size_t K>
void iterate(const Worker& worker, Steps<T, K>& steps, std::size_t pixels,
             const std::array<double, K>& scale, const PcgOptions& options, ErrorEstimate* error,
             PcgResult& result) {
  using Sums = std::array<double, K>;
  // Steps too small to change a T are noise.
  const double tolerance =
      std::max(options.tolerance,
               options.step_noise * static_cast<double>(std::numeric_limits<T>::epsilon()));
  const auto rms = [&](double square, std::size_t k) {
    return std::sqrt(square / static_cast<double>(pixels)) / scale[k];
  };
  Sums distance = steps.begin(worker);
  for (std::size_t k = 0; k < K; ++k) distance[k] = rms(distance[k], k);
  Sums norm = steps.precondition(worker), beta{};
  std::array<bool, K> finished{};
  BestStep<T, K> best(steps, norm);
  for (int step = 1; step <= options.max_iterations; ++step) {
    const auto [curvature, moved] = steps.turn(worker, beta);
    Sums alpha{};
    double estimate = 0;
    bool all = true;
    for (std::size_t k = 0; k < K; ++k) {
      if (!finished[k] && curvature[k] > 0) alpha[k] = norm[k] / curvature[k];
      const double length = alpha[k] * rms(moved[k], k);
      error[k].add(length);
      distance[k] += length;
      const double remaining = finished[k] ? 0 : error[k].value();
      finished[k] = finished[k] ||
                    (step >= options.min_iterations &&
                     remaining <= std::max(tolerance, options.movement_fraction * distance[k]));
      all = all && finished[k];
      estimate = std::max(estimate, remaining);
    }
    steps.descend(worker, alpha);
    if (worker.rank == 0) {
      try {
        result.residuals.push_back(estimate);
        result.moved = *std::max_element(distance.begin(), distance.end());
        result.converged = all;
        result.cancelled = options.after_step && options.after_step(step, estimate);
      } catch (...) {  // the other threads wait for this one
        result.error = std::current_exception();
        result.cancelled = true;
      }
    }
    if (all || step == options.max_iterations) break;
    const Sums next = steps.precondition(worker);
    best.add(worker, step, next);
    if (result.cancelled) break;
    for (std::size_t k = 0; k < K; ++k) beta[k] = norm[k] > 0 ? next[k] / norm[k] : 0;
    norm = next;
  }
  const bool diverged = best.restore(worker, norm);
  if (worker.rank == 0 && diverged) {
    result.diverged = true;
    result.converged = false;
  }
  steps.end(worker);
}

}  // namespace detail

// On entry system.x is the start, on return the solution. Error estimates are relative to `scale`,
// the size of the solution per channel.
template <class T, std::size_t K>
PcgResult pcg(Steps<T, K>& steps, const LinearSystem<T>& system, std::size_t pixels,
              const std::array<double, K>& scale, const PcgOptions& options) {
  PcgResult result;
  std::vector<ErrorEstimate> errors;  // one per thread and channel: threads must not allocate
  errors.reserve(static_cast<std::size_t>(steps.team()) * K);
  while (errors.size() < errors.capacity())
    errors.emplace_back(steps.steady(), options.error_window);
  steps.set(system);
  run_team(steps.team(), [&](const Worker& worker) {
    ErrorEstimate* error = errors.data() + static_cast<std::size_t>(worker.rank) * K;
    detail::iterate(worker, steps, pixels, scale, options, error, result);
  });
  if (result.error) std::rethrow_exception(result.error);
  return result;
}

}  // namespace bilateral
