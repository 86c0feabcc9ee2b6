// Bind the projection of many channels onto a few.
#include "solve/lowrank.hpp"

#include <cstddef>

#include "bindings/arrays.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

namespace {

template <class T>
void py_covariance(const Input<T>& weight, const Input<T>& weighted, const Output<double>& mean,
                   const Output<double>& covariance, int threads) {
  const std::size_t vertices = weight.size(), channels = mean.size();
  require(weighted.size() == vertices * channels && covariance.size() == channels * channels,
          "sizes do not match");
  const nb::gil_scoped_release release;
  channel_covariance(weight.data(), weighted.data(), vertices, channels, mean.data(),
                     covariance.data(), threads);
}

template <class T>
void py_project(const Input<T>& weight, const Input<T>& weighted, const Input<T>& mean,
                const Input<T>& basis, const Output<T>& few, int threads) {
  const std::size_t vertices = weight.size(), channels = mean.size();
  const std::size_t rank = channels_over(few, vertices);
  require(weighted.size() == vertices * channels && basis.size() == rank * channels,
          "sizes do not match");
  const nb::gil_scoped_release release;
  project_channels(weighted.data(), channels, basis.data(), rank, weight.data(), mean.data(),
                   vertices, few.data(), threads);
}

template <class T>
void py_expand(const Input<T>& few, const Input<T>& mean, const Input<T>& basis,
               const Output<T>& many, int threads) {
  const std::size_t channels = mean.size(), rank = channels_over(basis, channels);
  const std::size_t vertices = few.size() / rank;
  require(few.size() == vertices * rank && many.size() == vertices * channels,
          "sizes do not match");
  const nb::gil_scoped_release release;
  expand_channels(few.data(), rank, basis.data(), channels, mean.data(), vertices, many.data(),
                  threads);
}

template <class T>
void define_channels(nb::module_& m) {
  m.def("covariance", &py_covariance<T>, "weight"_a.noconvert(), "weighted"_a.noconvert(),
        "mean"_a.noconvert(), "covariance"_a.noconvert(), "threads"_a);
  m.def("project", &py_project<T>, "weight"_a.noconvert(), "weighted"_a.noconvert(),
        "mean"_a.noconvert(), "basis"_a.noconvert(), "few"_a.noconvert(), "threads"_a);
  m.def("expand", &py_expand<T>, "few"_a.noconvert(), "mean"_a.noconvert(), "basis"_a.noconvert(),
        "many"_a.noconvert(), "threads"_a);
}

}  // namespace

void bind_lowrank(nb::module_& m) {
  define_channels<float>(m);
  define_channels<double>(m);
}

}  // namespace bilateral
