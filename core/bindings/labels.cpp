// Bind the operations on label maps.
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/subjects.hpp"
#include "labels/label_depth.hpp"
#include "labels/majority.hpp"
#include "labels/object_regions.hpp"
#include "labels/regions.hpp"

namespace bilateral {

namespace {

std::int32_t bound_find_regions(const Input<float>& values, const Input<bool>& mask,
                                float tolerance, const Output<std::int32_t>& labels) {
  require(values.ndim() == 2 && values.size() > 0, "values must be H x W");
  require(values.size() < std::numeric_limits<std::int32_t>::max(), "too many pixels");
  require(mask.size() == values.size() && labels.size() == values.size(), "sizes do not match");
  const CoreCall call;
  return find_regions(values.data(), mask.data(), values.shape(0), values.shape(1), tolerance,
                      labels.data());
}

std::vector<std::int64_t> bound_object_regions(const Input<double>& values, double threshold,
                                               const Output<std::int32_t>& labels) {
  require(values.ndim() == 2 && values.size() > 0, "values must be H x W");
  require(values.size() < std::numeric_limits<std::int32_t>::max(), "too many pixels");
  require(labels.size() == values.size(), "sizes do not match");
  const CoreCall call;
  return object_regions(values.data(), threshold, values.shape(0), values.shape(1), labels.data());
}

void bound_label_depth(const Input<std::int32_t>& labels, std::size_t radius,
                       const Output<float>& out, int threads) {
  require(labels.ndim() == 2 && labels.size() > 0 && out.size() == labels.size(),
          "shapes do not match");
  const CoreCall call;
  label_depth(labels.data(), labels.shape(0), labels.shape(1), radius, out.data(), threads);
}

void bound_majority(const Input<std::int32_t>& labels, std::size_t classes, std::size_t radius,
                    const Output<std::int32_t>& out, int threads) {
  require(labels.ndim() == 2 && labels.size() > 0 && out.size() == labels.size(),
          "shapes do not match");
  const CoreCall call;
  majority(labels.data(), labels.shape(0), labels.shape(1), classes, radius, out.data(), threads);
}

}  // namespace

void bind_labels(nb::module_& m) {
  m.def("label_depth", &bound_label_depth, "labels"_a.noconvert(), "radius"_a, "out"_a.noconvert(),
        "threads"_a,
        "Write the distance to the nearest outline, relative to the largest one nearby.");
  m.def("majority", &bound_majority, "labels"_a.noconvert(), "classes"_a, "radius"_a,
        "out"_a.noconvert(), "threads"_a,
        "Write the label that fills more than half of the window around each pixel.");
  m.def("find_regions", &bound_find_regions, "values"_a.noconvert(), "mask"_a.noconvert(),
        "tolerance"_a, "labels"_a.noconvert(),
        "Label the connected regions of a mask. Returns their number.");
  m.def("object_regions", &bound_object_regions, "values"_a.noconvert(), "threshold"_a,
        "labels"_a.noconvert(),
        "Label the connected regions of the mask of values above a threshold, with its holes "
        "filled. Returns the number of pixels of each label.");
}

}  // namespace bilateral
