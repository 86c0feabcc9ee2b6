// Bind the operations on frames of depth videos.
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/subjects.hpp"
#include "video/average.hpp"
#include "video/calm.hpp"
#include "video/camera_motion.hpp"
#include "video/compare.hpp"
#include "video/depth_change.hpp"
#include "video/photo.hpp"
#include "video/warp.hpp"

namespace bilateral {

namespace {

using Theta = std::array<double, flow_parameters>;
using Change = std::array<double, change_parameters>;

// Checks that maps have the size of `first`, and packed photographs four bytes per pixel of it.
template <class First, class... Maps>
void require_alike(const First& first, const Maps&... maps) {
  require(first.ndim() == 2 && first.size() > 0, "maps must be H x W");
  require(((maps.size() == first.size()) && ...), "maps must have one size");
}
template <class First, class... Photos>
void require_photos(const First& first, const Photos&... photos) {
  require(((photos.size() == first.size() * photo_channels) && ...),
          "photographs must be packed, H x W x 4");
}

DepthNoise depth_noise(const std::array<double, 2>& noise) {
  return {static_cast<float>(noise[0]), static_cast<float>(noise[1])};
}

template <class T>
void bound_pack_photo(const Input<T>& pixels, float scale, const Output<std::uint8_t>& out,
                      int threads) {
  require(pixels.ndim() == 3 && pixels.size() > 0 &&
              (pixels.shape(2) == 1 || pixels.shape(2) == 3) &&
              out.size() == pixels.shape(0) * pixels.shape(1) * photo_channels,
          "pixels must be H x W x 1 or 3, out H x W x 4");
  const CoreCall call;
  pack_photo(pixels.data(), pixels.shape(0) * pixels.shape(1), pixels.shape(2), scale, out.data(),
             threads);
}

void bound_photo_luma(const Input<std::uint8_t>& photo, const Output<float>& out) {
  require(photo.size() == out.size() * photo_channels, "photo must be packed, H x W x 4");
  const CoreCall call;
  photo_luma(photo.data(), out.size(), out.data());
}

void bound_halve(const Input<float>& image, const Output<float>& out, int threads) {
  require(image.ndim() == 2 && out.ndim() == 2 && out.size() > 0 &&
              out.shape(0) == image.shape(0) / 2 && out.shape(1) == image.shape(1) / 2,
          "out must have half the size of the image");
  const CoreCall call;
  halve(image.data(), image.shape(0), image.shape(1), out.data(), threads);
}

std::tuple<Theta, double, double, double, double> bound_camera_motion(
    const std::vector<Input<float>>& before, const std::vector<Input<float>>& now,
    std::size_t finest_step, const Input<float>& depth, double unit, const Theta& start,
    int threads) {
  require_alike(depth);
  require(before.size() == now.size() && finest_step > 0, "both frames need the same levels");
  std::vector<LumaLevel> levels;
  std::size_t step = finest_step;
  for (std::size_t k = 0; k < now.size(); ++k, step *= 2) {
    require_alike(now[k], before[k]);
    levels.push_back({before[k].data(), now[k].data(), now[k].shape(0), now[k].shape(1), step});
  }
  const CoreCall call;
  const CameraMotion motion =
      camera_motion(levels, depth.data(), depth.shape(0), depth.shape(1), unit, start, threads);
  return {motion.theta, motion.gain, motion.offset, motion.residual, motion.flow};
}

void bound_warp_past(const Input<float>& past, const Input<std::uint8_t>& count,
                     const Input<std::uint8_t>& photo, const Input<float>& depth,
                     const Theta& theta, double unit, const std::array<double, 2>& noise,
                     float gain, float offset, const Output<float>& moved,
                     const Output<std::uint8_t>& moved_count,
                     const Output<std::uint8_t>& moved_photo, const Output<float>& speed,
                     int threads) {
  require_alike(depth, past, count, moved, moved_count, speed);
  require_photos(depth, photo, moved_photo);
  const std::size_t height = depth.shape(0), width = depth.shape(1);
  const WarpTask task{height,
                      width,
                      {past.data(), count.data(), photo.data()},
                      depth.data(),
                      FlowModel(theta, unit, height, width),
                      depth_noise(noise),
                      gain,
                      offset,
                      {moved.data(), moved_count.data(), moved_photo.data(), speed.data()}};
  const CoreCall call;
  warp_past(task, threads);
}

std::tuple<Change, double, std::size_t> bound_depth_change(
    const Input<float>& z, const Input<float>& x, const Input<float>& before,
    const Input<std::uint8_t>& count, const std::array<double, 2>& noise, bool moving) {
  require_alike(z, x, before, count);
  const std::size_t height = z.shape(0), width = z.shape(1);
  const CoreCall call;
  const DepthChange change =
      depth_change(z.data(), x.data(), before.data(), count.data(), FlowModel({}, 1, height, width),
                   depth_noise(noise), height, width, moving);
  return {change.c, change.noise_factor, change.samples};
}

void bound_compare_past(const Input<float>& measured, const Input<float>& z, const Input<float>& x,
                        const Input<bool>& kept, const Input<std::uint8_t>& photo,
                        const Input<float>& before, const Input<std::uint8_t>& count,
                        const Input<std::uint8_t>& photo_before, const Change& change,
                        const std::array<double, 2>& noise, float photo_tolerance,
                        float photo_shift, float depth_tolerance, const Output<float>& past,
                        const Output<std::uint8_t>& steadiness,
                        const Output<std::int16_t>& difference, int threads) {
  require_alike(z, measured, x, kept, before, count, past, steadiness, difference);
  require_photos(z, photo, photo_before);
  require(photo_tolerance >= 0 && photo_tolerance < 256, "photo_tolerance must be 0 to 255");
  require(photo_shift >= 0 && photo_shift <= 1, "photo_shift must be 0 to 1");
  const std::size_t height = z.shape(0), width = z.shape(1);
  CompareTask task{height,
                   width,
                   measured.data(),
                   z.data(),
                   x.data(),
                   kept.data(),
                   photo.data(),
                   before.data(),
                   count.data(),
                   photo_before.data(),
                   FlowModel({}, 1, height, width),
                   {},
                   depth_noise(noise),
                   photo_tolerance,
                   photo_shift,
                   depth_tolerance,
                   past.data(),
                   steadiness.data(),
                   difference.data()};
  for (std::size_t i = 0; i < change_parameters; ++i)
    task.change[i] = static_cast<float>(change[i]);
  const CoreCall call;
  compare_past(task, threads);
}

void bound_average_past(const Input<float>& x, const Input<bool>& kept, const Input<float>& past,
                        const Input<std::uint8_t>& count, const Input<std::uint8_t>& steadiness,
                        const Input<std::int16_t>& difference, const std::array<double, 2>& noise,
                        std::size_t radius, float least_shift, float most_shift, float same,
                        std::uint8_t most, float settled, const Output<float>& out,
                        const Output<std::uint8_t>& out_count, int threads) {
  require_alike(x, kept, past, count, steadiness, difference, out, out_count);
  require(radius <= 100 && most > 0 && most < was_measured,
          "radius must be at most 100, most 1 to 127");
  const AverageTask task{x.shape(0),         x.shape(1),
                         x.data(),           kept.data(),
                         past.data(),        count.data(),
                         steadiness.data(),  difference.data(),
                         depth_noise(noise), {radius, least_shift, most_shift, same, most, settled},
                         out.data(),         out_count.data()};
  const CoreCall call;
  average_past(task, threads);
}

void bound_calm(const std::array<Input<float>, 3>& x, const Input<float>& speed,
                const std::array<double, 2>& noise, float gain, float most, float fast,
                float change, const Output<float>& out, int threads) {
  require_alike(x[0], x[1], x[2], speed, out);
  const CalmTask task{out.size(),         x[0].data(), x[1].data(), x[2].data(), speed.data(),
                      depth_noise(noise), gain,        most,        fast,        change,
                      out.data()};
  const CoreCall call;
  calm(task, threads);
}

template <class T>
void define_pack_photo(nb::module_& m) {
  m.def("pack_photo", &bound_pack_photo<T>, "pixels"_a.noconvert(), "scale"_a, "out"_a.noconvert(),
        "threads"_a, "Write red, green, blue and luma as bytes.");
}

}  // namespace

void bind_video(nb::module_& m) {
  define_pack_photo<std::uint8_t>(m);
  define_pack_photo<std::uint16_t>(m);
  define_pack_photo<float>(m);
  define_pack_photo<double>(m);
  m.def("photo_luma", &bound_photo_luma, "photo"_a.noconvert(), "out"_a.noconvert(),
        "Write the luma of a packed photograph.");
  m.def("halve", &bound_halve, "image"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
        "Write the image at half its size.");
  m.def(
      "camera_motion", &bound_camera_motion, "before"_a.noconvert(), "now"_a.noconvert(),
      "finest_step"_a, "depth"_a.noconvert(), "unit"_a, "start"_a, "threads"_a,
      "Return the parameters of the flow, gain, offset, the median residual and the longest flow.");
  m.def("warp_past", &bound_warp_past, "past"_a.noconvert(), "count"_a.noconvert(),
        "photo"_a.noconvert(), "depth"_a.noconvert(), "theta"_a, "unit"_a, "noise"_a, "gain"_a,
        "offset"_a, "moved"_a.noconvert(), "moved_count"_a.noconvert(), "moved_photo"_a.noconvert(),
        "speed"_a.noconvert(), "threads"_a, "Move the past to the present along the flow.");
  m.def("depth_change", &bound_depth_change, "z"_a.noconvert(), "x"_a.noconvert(),
        "before"_a.noconvert(), "count"_a.noconvert(), "noise"_a, "moving"_a,
        "Return the change of depth, the factor of noise in time and the number of samples.");
  m.def("compare_past", &bound_compare_past, "measured"_a.noconvert(), "z"_a.noconvert(),
        "x"_a.noconvert(), "kept"_a.noconvert(), "photo"_a.noconvert(), "before"_a.noconvert(),
        "count"_a.noconvert(), "photo_before"_a.noconvert(), "change"_a, "noise"_a,
        "photo_tolerance"_a, "photo_shift"_a, "depth_tolerance"_a, "past"_a.noconvert(),
        "steadiness"_a.noconvert(), "difference"_a.noconvert(), "threads"_a,
        "Find the steady pixels.");
  m.def("average_past", &bound_average_past, "x"_a.noconvert(), "kept"_a.noconvert(),
        "past"_a.noconvert(), "count"_a.noconvert(), "steadiness"_a.noconvert(),
        "difference"_a.noconvert(), "noise"_a, "radius"_a, "least_shift"_a, "most_shift"_a,
        "same"_a, "most"_a, "settled"_a, "out"_a.noconvert(), "out_count"_a.noconvert(),
        "threads"_a, "Average the present with the steady past.");
  m.def("calm", &bound_calm, "x"_a.noconvert(), "speed"_a.noconvert(), "noise"_a, "gain"_a,
        "most"_a, "fast"_a, "change"_a, "out"_a.noconvert(), "threads"_a,
        "Move each pixel towards the value that its last two values lead to.");
}

}  // namespace bilateral
