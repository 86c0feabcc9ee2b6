// Bind block matching and the visibility of matches.
#include <nanobind/stl/array.h>

#include <array>
#include <cstddef>

#include "bindings/arrays.hpp"
#include "bindings/subjects.hpp"
#include "stereo/block_matching.hpp"
#include "stereo/visibility.hpp"

namespace bilateral {

namespace {

void bound_match_blocks(const Input<float>& left, const Input<float>& right,
                        std::size_t disparities, std::size_t radius, float margin,
                        const std::array<Output<float>, 4>& out, int threads) {
  require(left.ndim() == 2 && left.size() > 0 && right.ndim() == 2 &&
              right.shape(0) == left.shape(0) && right.shape(1) == left.shape(1),
          "views must be H x W, both of one size");
  for (const auto& map : out) require(map.size() == left.size(), "outputs do not match the views");
  require(disparities > 0 && disparities <= left.shape(1) && disparities <= max_match_disparities &&
              radius <= max_match_radius && margin >= 0,
          "disparities, radius or margin out of range");
  const StereoPair pair{left.data(), right.data(), left.shape(0), left.shape(1),
                        disparities, radius,       margin};
  const CoreCall call;
  match_blocks(pair, {out[0].data(), out[1].data(), out[2].data(), out[3].data()}, threads);
}

void bound_visible(const Input<float>& claim, const Input<float>& surface,
                   const Input<bool>& trusted, float tolerance, const Output<bool>& out,
                   int threads) {
  require(claim.ndim() == 2 && claim.size() > 0, "claim must be H x W");
  require(surface.size() == claim.size() && trusted.size() == claim.size() &&
              out.size() == claim.size(),
          "sizes do not match");
  const CoreCall call;
  visible(claim.data(), surface.data(), trusted.data(), claim.shape(0), claim.shape(1), tolerance,
          out.data(), threads);
}

}  // namespace

void bind_stereo(nb::module_& m) {
  m.def(
      "match_blocks", &bound_match_blocks, "left"_a.noconvert(), "right"_a.noconvert(),
      "disparities"_a, "radius"_a, "margin"_a, "out"_a.noconvert(), "threads"_a,
      "Match blocks of two views; fills the lower, upper and best disparity, and the right best.");
  m.def("visible", &bound_visible, "claim"_a.noconvert(), "surface"_a.noconvert(),
        "trusted"_a.noconvert(), "tolerance"_a, "out"_a.noconvert(), "threads"_a,
        "Write whether the right view sees the pixels of the left view.");
}

}  // namespace bilateral
