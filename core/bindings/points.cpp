// Bind the interpolation between scattered pixels.
#include <cstddef>
#include <cstdint>

#include "bindings/arrays.hpp"
#include "bindings/subjects.hpp"
#include "points/interpolate.hpp"

namespace bilateral {

namespace {

void bound_interpolate_points(const Input<float>& z, const Output<float>& out,
                              const Output<std::uint32_t>& nearest) {
  require(z.ndim() == 2 && z.size() > 0 && out.size() == z.size() && nearest.size() == z.size(),
          "sizes do not match");
  bool known = false;
  for (std::size_t p = 0; p < z.size(); ++p) known = known || z.data()[p] == z.data()[p];
  require(known, "no pixel is known");
  const CoreCall call;
  interpolate_points(z.data(), z.shape(0), z.shape(1), out.data(), nearest.data());
}

}  // namespace

void bind_points(nb::module_& m) {
  m.def("interpolate_points", &bound_interpolate_points, "z"_a.noconvert(), "out"_a.noconvert(),
        "nearest"_a.noconvert(), "Interpolate linearly between the known pixels of a map.");
}

}  // namespace bilateral
