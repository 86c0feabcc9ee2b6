// Bind the domain transform.
#include "filters/domain_transform.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "bindings/arrays.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

namespace {

// The weights of the domain transform along one reference.
template <class T>
class BoundDomainTransform {
 public:
  template <class R>
  static BoundDomainTransform* of(const Input<R>& pixels, double step, double level, int threads) {
    require(pixels.ndim() == 3 && pixels.shape(2) <= 3 && pixels.size() > 0,
            "reference must be H x W x 1 to 3");
    const ReferenceImage<R> guide{pixels.data(), pixels.shape(0), pixels.shape(1), pixels.shape(2)};
    const CoreCall call;
    return new BoundDomainTransform(domain_weights<T>(guide, {step, level}, threads));
  }

  template <class Pixel>
  std::tuple<bool, bool> filter(const Input<Pixel>& image, const std::optional<Input<T>>& mass,
                                int iterations, const Output<Pixel>& out, int threads) const {
    const std::size_t channels = channels_over(image, weights_.height * weights_.width);
    require(out.size() == image.size(), "out does not match the image");
    require(!mass || mass->size() * channels == image.size(), "mass does not match the image");
    const CoreCall call;
    const DomainInput stats = domain_transform(weights_, iterations, image.data(),
                                               data_or_null(mass), channels, out.data(), threads);
    return {stats.known, stats.large};
  }

  void filter_pass(bool rows, int pass, const Output<T>& values,
                   const std::optional<Output<T>>& mass, int threads) const {
    const std::size_t channels = channels_over(values, weights_.height * weights_.width);
    require(pass >= 0 && pass < 64, "there are at most 64 passes");
    require(!mass || mass->size() * channels == values.size(), "mass does not match the values");
    const CoreCall call;
    domain_pass(weights_, rows, pass, values.data(), data_or_null(mass), channels, threads);
  }

 private:
  explicit BoundDomainTransform(DomainWeights<T> weights) : weights_(std::move(weights)) {}

  DomainWeights<T> weights_;
};

template <class T, class... Pixels>
void define_domain_transform(nb::module_& m, const char* name) {
  using Self = BoundDomainTransform<T>;
  nb::class_<Self> self(m, name, "The domain transform along one reference.");
  const auto from = [&]<class R>(R) {
    self.def_static("of", &Self::template of<R>, "reference"_a.noconvert(), "step"_a, "level"_a,
                    "threads"_a, "Compute the weights between neighbouring pixels.");
  };
  from(std::uint8_t{}), from(std::uint16_t{}), from(float{}), from(double{});
  (self.def("filter", &Self::template filter<Pixels>, "image"_a.noconvert(),
            "mass"_a.noconvert().none(), "iterations"_a, "out"_a.noconvert(), "threads"_a,
            "Filter an image. Returns whether a pixel has data, and whether a value is too large."),
   ...);
  self.def("filter_pass", &Self::filter_pass, "rows"_a, "pass_"_a, "values"_a.noconvert(),
           "mass"_a.noconvert().none(), "threads"_a,
           "Filter the rows or the columns of an image in place, as one pass does.");
}

}  // namespace

void bind_domain_transform(nb::module_& m) {
  define_domain_transform<float, std::uint8_t, std::uint16_t, float>(m, "DomainTransform32");
  define_domain_transform<double, double>(m, "DomainTransform64");
}

}  // namespace bilateral
