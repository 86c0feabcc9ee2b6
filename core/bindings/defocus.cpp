// Bind the synthetic defocus blur.
#include "defocus/defocus.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

namespace {

void bound_defocus(const Input<float>& image, const Input<float>& layers,
                   const std::vector<double>& radii, int blades, double rotation,
                   const Output<float>& out, int threads) {
  require(image.ndim() == 3 && image.size() > 0 && (image.shape(2) == 1 || image.shape(2) == 3),
          "image must be H x W x 1 or 3");
  const Scene scene{image.data(), layers.data(), image.shape(0), image.shape(1), image.shape(2)};
  const std::size_t pixels = scene.height * scene.width;
  require(layers.size() == pixels && out.size() == image.size(), "sizes do not match");
  require(!radii.empty() && radii.size() <= max_blur_levels && radii.front() == 0 &&
              std::is_sorted(radii.begin(), radii.end()) && radii.back() <= max_blur_radius,
          "radii must rise from 0, and neither be too many nor too large");
  require(blades == 0 || blades >= 3, "blades must be 0 or at least 3");
  const auto highest = static_cast<float>(radii.size() - 1);
  const CoreCall call;
  require(std::all_of(layers.data(), layers.data() + pixels,
                      [&](float layer) { return std::abs(layer) <= highest; }),
          "layers must be within the radii");
  (scene.channels == 1 ? defocus<1> : defocus<3>)(scene, radii, {blades, rotation}, out.data(),
                                                  threads);
}

}  // namespace

void bind_defocus(nb::module_& m) {
  m.def("defocus", &bound_defocus, "image"_a.noconvert(), "layers"_a.noconvert(), "radii"_a,
        "blades"_a, "rotation"_a, "out"_a.noconvert(), "threads"_a,
        "Blur an image by layers, each over the layers behind it.");
}

}  // namespace bilateral
