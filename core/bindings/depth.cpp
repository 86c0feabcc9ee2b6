// Bind the kernels of depth maps from cameras.
#include <nanobind/stl/tuple.h>

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/subjects.hpp"
#include "depth/coarse.hpp"
#include "depth/doubt.hpp"
#include "depth/grow.hpp"
#include "depth/smooth.hpp"
#include "depth/surface_sizes.hpp"

namespace bilateral {

namespace {

using Coefficients = std::tuple<float, float, float>;

Jump jump_of(const Coefficients& c) {
  const auto [c0, c1, c2] = c;
  require(c0 > 0 && c1 >= 0 && c2 >= 0, "jump out of range");
  return {c0, c1, c2};
}

void bound_find_doubt(const Input<float>& z, const Coefficients& jump, const Output<bool>& out,
                      int threads) {
  require(z.ndim() == 2 && z.size() > 0 && out.size() == z.size(), "sizes do not match");
  const Jump unit = jump_of(jump);
  const CoreCall call;
  find_doubt(z.data(), z.shape(0), z.shape(1), unit, out.data(), threads);
}

void bound_surface_sizes(const Input<float>& z, const Input<bool>& doubt, const Coefficients& jump,
                         const Output<std::int32_t>& out) {
  require(z.ndim() == 2 && z.size() > 0 && doubt.size() == z.size() && out.size() == z.size(),
          "sizes do not match");
  const Jump unit = jump_of(jump);
  const CoreCall call;
  surface_sizes(z.data(), doubt.data(), z.shape(0), z.shape(1), unit, out.data());
}

void bound_grow_surfaces(const Input<bool>& kept, const Input<float>& measured,
                         const Coefficients& jump, bool inverse,
                         const std::tuple<float, float, float>& growth, const Output<float>& x,
                         int threads) {
  require(kept.ndim() == 2 && kept.size() > 0 && measured.size() == kept.size() &&
              x.size() == kept.size(),
          "sizes do not match");
  const Jump unit = jump_of(jump);
  const auto [bias, drift, slope_reach] = growth;
  const Growth options{bias, drift, slope_reach};
  const CoreCall call;
  grow_surfaces(kept.data(), measured.data(), kept.shape(0), kept.shape(1), unit, inverse, options,
                x.data(), threads);
}

void bound_smooth_depth(const Input<bool>& kept, const Coefficients& noise, float scale,
                        float limit, const Output<float>& x, int threads) {
  require(kept.ndim() == 2 && kept.size() > 0 && x.size() == kept.size(), "sizes do not match");
  const Jump unit = jump_of(noise);
  const CoreCall call;
  smooth_depth(kept.data(), kept.shape(0), kept.shape(1), unit, scale, limit, x.data(), threads);
}

std::size_t blocks(std::size_t pixels, std::size_t factor) {
  return (pixels + factor - 1) / factor;
}

template <class Photo>
void require_coarse(const Photo& photo, std::size_t factor, std::size_t coarse) {
  require(photo.ndim() == 3 && photo.size() > 0, "photo must be H x W x C");
  require(factor > 0 && coarse == blocks(photo.shape(0), factor) * blocks(photo.shape(1), factor),
          "coarse size does not match");
}

template <class T>
void bound_shrink_photo(const Input<T>& photo, std::size_t factor, const Output<T>& out,
                        int threads) {
  require_coarse(photo, factor, out.size() / photo.shape(2));
  const CoreCall call;
  shrink_photo(photo.data(), photo.shape(0), photo.shape(1), photo.shape(2), factor, out.data(),
               threads);
}

void bound_shrink_depth(const Input<float>& z, const Input<bool>& data, std::size_t factor,
                        const Output<float>& out, int threads) {
  require(z.ndim() == 2 && z.size() > 0 && data.size() == z.size(), "sizes do not match");
  require(factor > 0 && out.size() == blocks(z.shape(0), factor) * blocks(z.shape(1), factor),
          "coarse size does not match");
  const CoreCall call;
  shrink_depth(z.data(), data.data(), z.shape(0), z.shape(1), factor, out.data(), threads);
}

template <class T>
void bound_expand_depth(const Input<float>& coarse, const Input<T>& photo,
                        const Input<T>& coarse_photo, const Input<bool>& data, std::size_t factor,
                        float unit, const Output<float>& out, int threads) {
  require_coarse(photo, factor, coarse.size());
  const std::size_t size = photo.shape(0) * photo.shape(1);
  require(coarse_photo.size() == coarse.size() * photo.shape(2) && data.size() == size &&
              out.size() == size && unit > 0,
          "sizes do not match");
  const CoreCall call;
  expand_depth(coarse.data(), photo.data(), coarse_photo.data(), data.data(), photo.shape(0),
               photo.shape(1), photo.shape(2), factor, unit, out.data(), threads);
}

template <class T>
void bind_coarse(nb::module_& m) {
  m.def("shrink_photo", &bound_shrink_photo<T>, "photo"_a.noconvert(), "factor"_a,
        "out"_a.noconvert(), "threads"_a, "Write the means of blocks of a photograph.");
  m.def("expand_depth", &bound_expand_depth<T>, "coarse"_a.noconvert(), "photo"_a.noconvert(),
        "coarse_photo"_a.noconvert(), "data"_a.noconvert(), "factor"_a, "unit"_a,
        "out"_a.noconvert(), "threads"_a, "Write coarse depths to the pixels without data.");
}

}  // namespace

void bind_depth(nb::module_& m) {
  m.def("find_doubt", &bound_find_doubt, "z"_a.noconvert(), "jump"_a, "out"_a.noconvert(),
        "threads"_a, "Write whether each pixel of a depth map lies on no surface.");
  m.def("surface_sizes", &bound_surface_sizes, "z"_a.noconvert(), "doubt"_a.noconvert(), "jump"_a,
        "out"_a.noconvert(), "Write the number of pixels of each pixel's surface.");
  m.def("grow_surfaces", &bound_grow_surfaces, "kept"_a.noconvert(), "measured"_a.noconvert(),
        "jump"_a, "inverse"_a, "growth"_a, "x"_a.noconvert(), "threads"_a,
        "Bring the fillings of holes to the surfaces around them, in place.");
  m.def("smooth_depth", &bound_smooth_depth, "kept"_a.noconvert(), "noise"_a, "scale"_a, "limit"_a,
        "x"_a.noconvert(), "threads"_a, "Reduce the noise of a depth map, in place.");
  m.def("shrink_depth", &bound_shrink_depth, "z"_a.noconvert(), "data"_a.noconvert(), "factor"_a,
        "out"_a.noconvert(), "threads"_a, "Write the data closest to the centres of blocks.");
  bind_coarse<std::uint8_t>(m);
  bind_coarse<std::uint16_t>(m);
  bind_coarse<float>(m);
  bind_coarse<double>(m);
}

}  // namespace bilateral
