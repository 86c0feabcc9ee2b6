// Bind the low-rank projection of channels.
#include "solve/lowrank.hpp"

#include <cstddef>

#include "bindings/arrays.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

namespace {

template <class T>
void bound_covariance(const Input<T>& weight, const Input<T>& weighted, const Output<double>& mean,
                      const Output<double>& covariance, int threads) {
  const std::size_t vertices = weight.size(), channels = mean.size();
  require(weighted.size() == vertices * channels && covariance.size() == channels * channels,
          "sizes do not match");
  const CoreCall call;
  channel_covariance(weight.data(), weighted.data(), vertices, channels, mean.data(),
                     covariance.data(), threads);
}

template <class T>
void bound_project(const Input<T>& weight, const Input<T>& weighted, const Input<T>& mean,
                   const Input<T>& basis, const Output<T>& reduced, int threads) {
  const std::size_t vertices = weight.size(), channels = mean.size();
  const std::size_t rank = channels_over(reduced, vertices);
  require(weighted.size() == vertices * channels && basis.size() == rank * channels,
          "sizes do not match");
  const CoreCall call;
  project_channels(weighted.data(), channels, basis.data(), rank, weight.data(), mean.data(),
                   vertices, reduced.data(), threads);
}

template <class T>
void bound_expand(const Input<T>& reduced, const Input<T>& mean, const Input<T>& basis,
                  const Output<T>& full, int threads) {
  const std::size_t channels = mean.size(), rank = channels_over(basis, channels);
  const std::size_t vertices = reduced.size() / rank;
  require(reduced.size() == vertices * rank && full.size() == vertices * channels,
          "sizes do not match");
  const CoreCall call;
  expand_channels(reduced.data(), rank, basis.data(), channels, mean.data(), vertices, full.data(),
                  threads);
}

template <class T>
void define_lowrank(nb::module_& m) {
  m.def("covariance", &bound_covariance<T>, "weight"_a.noconvert(), "weighted"_a.noconvert(),
        "mean"_a.noconvert(), "covariance"_a.noconvert(), "threads"_a,
        "Write the weighted means of the channels and the lower triangle of their covariance.");
  m.def("project", &bound_project<T>, "weight"_a.noconvert(), "weighted"_a.noconvert(),
        "mean"_a.noconvert(), "basis"_a.noconvert(), "reduced"_a.noconvert(), "threads"_a,
        "Write basis (weighted - weight mean).");
  m.def("expand", &bound_expand<T>, "reduced"_a.noconvert(), "mean"_a.noconvert(),
        "basis"_a.noconvert(), "full"_a.noconvert(), "threads"_a, "Write basis^T reduced + mean.");
}

}  // namespace

void bind_lowrank(nb::module_& m) {
  define_lowrank<float>(m);
  define_lowrank<double>(m);
}

}  // namespace bilateral
