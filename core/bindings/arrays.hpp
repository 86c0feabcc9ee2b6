// Array arguments of the bindings, and the checks of sizes that memory safety needs.
//
// The Python package validates all input. The bindings verify again only the sizes that keep the
// core from reading or writing outside an array.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <stdexcept>

#include "base/exception_state.hpp"

namespace bilateral {

namespace nb = nanobind;
using namespace nb::literals;

// A C-contiguous array that the core reads, and one that the core fills.
template <class T>
using Input = nb::ndarray<const T, nb::numpy, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::numpy, nb::c_contig, nb::device::cpu>;

// Releases the GIL while the core works. The calling thread can then throw even if the core takes
// the last memory.
class CoreCall {
 private:
  [[maybe_unused]] bool can_throw_ = prepare_to_throw();
  nb::gil_scoped_release release_;
};

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// The number of channels of an array over `items` pixels or vertices.
template <class Array>
std::size_t channels_over(const Array& array, std::size_t items) {
  require(array.size() % items == 0 && array.size() > 0, "array does not match the grid");
  return array.size() / items;
}

// The data of an optional array, or null.
template <class OptionalArray>
auto* data_or_null(const OptionalArray& array) {
  return array ? array->data() : nullptr;
}

}  // namespace bilateral
