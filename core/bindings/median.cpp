// Bind the median filter.
#include "filters/median.hpp"

#include <cstddef>
#include <cstdint>

#include "bindings/arrays.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

namespace {

template <class T>
void bound_median(const Input<T>& image, const Output<T>& out, std::size_t size, int threads) {
  require(image.ndim() == 3 && image.size() > 0, "image must be H x W x K");
  require(out.size() == image.size(), "out does not match the image");
  require(size == 3 || size == 5, "size must be 3 or 5");
  const CoreCall call;
  median(image.data(), image.shape(0), image.shape(1), image.shape(2), size, out.data(), threads);
}

template <class T>
void define_median(nb::module_& m) {
  m.def("median", &bound_median<T>, "image"_a.noconvert(), "out"_a.noconvert(), "size"_a,
        "threads"_a, "Write the median over size x size pixels.");
}

}  // namespace

void bind_median(nb::module_& m) {
  define_median<std::uint8_t>(m);
  define_median<std::uint16_t>(m);
  define_median<float>(m);
  define_median<double>(m);
}

}  // namespace bilateral
