// The only file that knows Python: arrays in, arrays filled. Input is checked in checks.py; what is
// verified again here is what memory safety needs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "defocus/defocus.hpp"
#include "filters/block_means.hpp"
#include "filters/domain_transform.hpp"
#include "filters/frame_change.hpp"
#include "filters/median.hpp"
#include "filters/polish.hpp"
#include "grid/bistochastize.hpp"
#include "grid/build.hpp"
#include "grid/grid.hpp"
#include "grid/laplacian.hpp"
#include "grid/pyramid.hpp"
#include "grid/pyramid_transfer.hpp"
#include "grid/splat.hpp"
#include "labels/label_depth.hpp"
#include "labels/majority.hpp"
#include "labels/regions.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/nested_start.hpp"
#include "solve/components.hpp"
#include "solve/lowrank.hpp"
#include "solve/probes.hpp"
#include "solve/robust.hpp"
#include "solve/system.hpp"
#include "stereo/block_matching.hpp"
#include "stereo/visibility.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace bilateral;

template <class T>
using Input = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

template <class Array>
std::size_t channels_over(const Array& array, std::size_t items) {
  require(array.size() % items == 0 && array.size() > 0, "array does not match the grid");
  return array.size() / items;
}

// A grid with what is derived from it once: the pyramid and the bistochastization.
class PyGrid {
 public:
  explicit PyGrid(Grid grid) : grid_(std::move(grid)) {}

  const Grid& grid() const { return grid_; }

  void balance(double centre, double space, double range, int threads) {
    grid_.centre = centre;
    grid_.space = space;
    grid_.range = range;
    n_ = Buffer<float>(grid_.vertices, 1.0f);
    bistochastize(grid_, n_, 2e-6, threads);
  }

  void coarsen(int threads) { build_pyramid(grid_, threads); }

  template <class T>
  const T* n(int threads) const {
    if constexpr (std::is_same_v<T, float>) {
      return n_.data();
    } else {
      std::call_once(once_, [&] {
        Buffer<double> fine(grid_.vertices);
        std::copy_n(n_.data(), grid_.vertices, fine.data());
        bistochastize(grid_, fine, 1e-12, threads);
        n64_ = std::move(fine);
      });
      return n64_.data();
    }
  }

  template <class T>
  const Hierarchy<T>& multigrid(int threads) const {
    auto& cached = std::get<Cached<T>>(multigrids_);
    std::call_once(cached.once, [&] {
      cached.value = std::make_unique<Hierarchy<T>>(grid_, n<T>(threads), threads);
    });
    return *cached.value;
  }

 private:
  Grid grid_;
  Buffer<float> n_;
  mutable std::once_flag once_;
  mutable Buffer<double> n64_;

  template <class T>
  struct Cached {
    std::once_flag once;
    std::unique_ptr<Hierarchy<T>> value;
  };
  mutable std::tuple<Cached<float>, Cached<double>> multigrids_;
};

// Features are a matrix times the pixel's values, plus an offset; only three may be mixed.
FeatureMap feature_map(const std::vector<std::vector<double>>& matrix,
                       const std::vector<double>& offset, const std::vector<double>& sigma) {
  const std::size_t channels = sigma.size();
  require(channels <= max_channels && offset.size() == channels && matrix.size() == channels,
          "matrix, offset and sigma must agree");
  FeatureMap map;
  for (std::size_t k = 0; k < channels; ++k) {
    require(matrix[k].size() == channels, "matrix must be square");
    for (std::size_t j = 0; j < channels; ++j) {
      if (channels == 3) map.matrix[k][j] = matrix[k][j];
      map.mixed = map.mixed || (j != k && matrix[k][j] != 0);
    }
    map.gain[k] = matrix[k][k];
    map.offset[k] = offset[k];
    map.sigma[k] = sigma[k];
  }
  require(!map.mixed || channels == 3, "only three channels can be mixed");
  return map;
}

template <class T>
PyGrid* make_grid(const Input<T>& pixels, const std::vector<std::vector<double>>& matrix,
                  const std::vector<double>& offset, const std::vector<double>& sigma,
                  std::optional<double> nominal_max, const std::vector<double>& sigma_space,
                  int threads) {
  const std::size_t space = sigma_space.size();
  require((space == 2 || space == 3) && pixels.ndim() == space + 1 &&
              pixels.shape(space) == sigma.size(),
          "pixels must be H x W x C or T x H x W x C, as the sigmas say");
  const std::size_t frames = space == 3 ? pixels.shape(0) : 1;
  const Reference<T> reference{pixels.data(),
                               frames,
                               pixels.shape(space - 2),
                               pixels.shape(space - 1),
                               sigma.size(),
                               feature_map(matrix, offset, sigma),
                               nominal_max};
  require(reference.frames * reference.height * reference.width > 0, "there must be a pixel");
  const SpaceSigmas sigmas{space, sigma_space[space - 1], sigma_space[space - 2], sigma_space[0]};
  const nb::gil_scoped_release release;
  return new PyGrid(build_grid(reference, sigmas, threads));
}

template <class T>
void py_splat(const PyGrid& self, const Input<T>& pixels, const Output<T>& out, int threads) {
  const std::size_t channels = channels_over(pixels, self.grid().pixels());
  require(out.size() == channels * self.grid().vertices, "out does not match the grid");
  const nb::gil_scoped_release release;
  splat(self.grid(), pixels.data(), channels, out.data(), threads);
}

template <class T>
void py_slice(const PyGrid& self, const Input<T>& vertices, const Output<T>& out, int threads) {
  const std::size_t channels = channels_over(vertices, self.grid().vertices);
  require(out.size() == channels * self.grid().pixels(), "out does not match the grid");
  const nb::gil_scoped_release release;
  slice(self.grid(), vertices.data(), channels, out.data(), threads);
}

template <class T>
void py_blur(const PyGrid& self, const Input<T>& vertices, const Output<T>& out, int threads) {
  const std::size_t channels = channels_over(vertices, self.grid().vertices);
  require(out.size() == vertices.size(), "out does not match the input");
  const nb::gil_scoped_release release;
  blur(self.grid(), vertices.data(), channels, out.data(), threads);
}

template <class T>
void py_slice_gradients(const PyGrid& self, const Input<T>& z, const Input<T>& y,
                        const std::optional<Input<T>>& extra, const Input<T>& target,
                        const std::optional<Input<T>>& confidence,
                        const std::optional<Output<T>>& of_target,
                        const std::optional<Output<T>>& of_confidence, int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(z, grid.vertices);
  require(y.size() == z.size() && (!extra || extra->size() == grid.vertices),
          "vertices do not match the grid");
  require(target.size() == channels * grid.pixels() &&
              (!confidence || confidence->size() == grid.pixels()) &&
              (!of_target || of_target->size() == target.size()) &&
              (!of_confidence || of_confidence->size() == grid.pixels()),
          "pixels do not match the grid");
  const auto data = [](const auto& array) { return array ? array->data() : nullptr; };
  const Gradients<T> gradients{z.data(),         y.data(),        data(extra),        target.data(),
                               data(confidence), data(of_target), data(of_confidence)};
  const nb::gil_scoped_release release;
  slice_gradients(grid, gradients, channels, threads);
}

template <class T>
double py_smoothness_product(const PyGrid& self, const Input<T>& x, const Input<T>& y,
                             int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(x, grid.vertices);
  require(y.size() == x.size(), "sizes do not match");
  const nb::gil_scoped_release release;
  return smoothness_product(grid, self.n<T>(threads), x.data(), y.data(), channels, threads);
}

template <class T>
void py_rms(const PyGrid& self, const Input<T>& vertices, const Output<double>& out) {
  const std::size_t channels = channels_over(vertices, self.grid().vertices);
  require(out.size() == channels, "out does not match the input");
  pixel_rms(self.grid(), vertices.data(), channels, out.data());
}

template <class T>
void py_median(const Input<T>& image, const Output<T>& out, std::size_t size, int threads) {
  require(image.ndim() == 3 && image.size() > 0, "image must be H x W x K");
  require(out.size() == image.size(), "out does not match the image");
  require(size == 3 || size == 5, "size must be 3 or 5");
  const nb::gil_scoped_release release;
  median(image.data(), image.shape(0), image.shape(1), image.shape(2), size, out.data(), threads);
}

void py_match_blocks(const Input<float>& left, const Input<float>& right, std::size_t disparities,
                     std::size_t radius, float margin, const std::array<Output<float>, 4>& out,
                     int threads) {
  require(left.ndim() == 2 && left.size() > 0 && right.ndim() == 2 &&
              right.shape(0) == left.shape(0) && right.shape(1) == left.shape(1),
          "views must be H x W, both of one size");
  for (const auto& map : out) require(map.size() == left.size(), "outputs do not match the views");
  require(disparities > 0 && disparities <= left.shape(1) && disparities <= max_match_disparities &&
              radius <= max_match_radius && margin >= 0,
          "disparities, radius or margin out of range");
  const StereoPair pair{left.data(), right.data(), left.shape(0), left.shape(1),
                        disparities, radius,       margin};
  const nb::gil_scoped_release release;
  match_blocks(pair, {out[0].data(), out[1].data(), out[2].data(), out[3].data()}, threads);
}

void py_defocus(const Input<float>& image, const Input<float>& layers,
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
  const nb::gil_scoped_release release;
  require(std::all_of(layers.data(), layers.data() + pixels,
                      [&](float layer) { return std::abs(layer) <= highest; }),
          "layers must be within the radii");
  (scene.channels == 1 ? defocus<1> : defocus<3>)(scene, radii, {blades, rotation}, out.data(),
                                                  threads);
}

template <class T>
nb::tuple py_splat_target(const PyGrid& self, const Input<T>& target,
                          const std::optional<Input<T>>& confidence, const Output<T>& weight,
                          const Output<T>& weighted, int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(target, grid.pixels());
  require(!confidence || confidence->size() == grid.pixels(), "confidence does not match");
  require(weight.size() == grid.vertices && weighted.size() == grid.vertices * channels,
          "outputs do not match the grid");
  Observed seen;
  {
    const nb::gil_scoped_release release;
    seen = splat_target(grid, target.data(), confidence ? confidence->data() : nullptr, channels,
                        weight.data(), weighted.data(), threads);
  }
  nb::object invalid = nb::none();
  if (seen.invalid != Observed::none) invalid = nb::int_(seen.invalid);
  return nb::make_tuple(seen.known, seen.confidence, seen.low, seen.high, invalid);
}

template <class T>
Samples<T>* make_samples(const PyGrid& grid, const Input<T>& target, int threads) {
  const std::size_t channels = channels_over(target, grid.grid().pixels());
  const nb::gil_scoped_release release;
  return new Samples<T>(grid.grid(), target.data(), channels, threads);
}

template <class T>
double py_splat_robust(const Samples<T>& self, const Loss& loss, const Input<T>& y,
                       const Output<T>& weight, const Output<T>& weighted, int threads) {
  const std::size_t vertices = self.grid().vertices, channels = self.channels();
  require(weight.size() == vertices && weighted.size() == vertices * channels &&
              y.size() == weighted.size(),
          "arrays do not match the grid");
  const nb::gil_scoped_release release;
  return splat_robust(self, loss, y.data(), weight.data(), weighted.data(), threads);
}

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
void py_start(const PyGrid& self, const Input<T>& weight, const Input<T>& weighted, bool pyramid,
              const Output<T>& x, int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(weighted, grid.vertices);
  require(weight.size() == grid.vertices && x.size() == weighted.size(), "sizes do not match");
  const nb::gil_scoped_release release;
  (pyramid ? pyramid_start<T> : flat_start<T>)(grid, weight.data(), weighted.data(), channels,
                                               x.data(), threads);
}

template <class T>
void py_push_pull(const PyGrid& self, const Input<T>& vertices, const Output<T>& out, int threads) {
  const std::size_t channels = channels_over(vertices, self.grid().vertices);
  require(out.size() == vertices.size(), "out does not match the input");
  const nb::gil_scoped_release release;
  push_pull_values(self.grid(), vertices.data(), channels, out.data(), threads);
}

template <class T>
void py_nested_start(const PyGrid& self, const Input<T>& weight, const Input<T>& weighted,
                     double smoothness, const Output<T>& x, int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(weighted, grid.vertices);
  require(weight.size() == grid.vertices && x.size() == weighted.size(), "sizes do not match");
  const nb::gil_scoped_release release;
  nested_start(self.multigrid<T>(threads), grid.vertices, weight.data(), weighted.data(), channels,
               smoothness, x.data(), threads);
}

template <class T>
void py_draw_probes(const PyGrid& self, const Input<T>& weight, double smoothness,
                    std::uint64_t seed, const Output<T>& b, int threads) {
  const Grid& grid = self.grid();
  const std::size_t probes = channels_over(b, grid.vertices);
  require(weight.size() == grid.vertices && probes <= most_probes, "sizes do not match");
  const nb::gil_scoped_release release;
  draw_probes(grid, self.n<T>(threads), weight.data(), smoothness, seed, probes, b.data(), threads);
}

template <class T>
void py_with_data(const PyGrid& self, const Input<T>& weight, const Output<bool>& out) {
  const Grid& grid = self.grid();
  require(weight.size() == grid.vertices && out.size() == grid.vertices, "sizes do not match");
  const nb::gil_scoped_release release;
  const std::vector<std::uint8_t> found = with_data(find_components(grid), weight.data());
  std::copy(found.begin(), found.end(), out.data());
}

// What runs between two steps: now and then Python's pending signals (Ctrl-C), and the caller's
// function. An exception ends the solve and is raised after the threads have joined.
class AfterStep {
 public:
  explicit AfterStep(nb::object callback) : callback_(std::move(callback)) {}

  bool operator()(int step, double residual) {
    const auto now = std::chrono::steady_clock::now();
    if (callback_.is_none() && now - last_ < std::chrono::milliseconds(50)) return false;
    const nb::gil_scoped_acquire acquire;
    last_ = now;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      return !callback_.is_none() && nb::cast<bool>(nb::bool_(callback_(step, residual)));
    } catch (...) {
      error_ = std::current_exception();
      return true;
    }
  }

  void raise() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  nb::object callback_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::exception_ptr error_;
};

template <class T>
class PySolver {
 public:
  PySolver(const PyGrid& grid, const std::string& preconditioner, int threads)
      : grid_(grid.grid()), solver_(make(grid, preconditioner, threads)) {}

  nb::tuple solve(const Input<T>& weight, const Input<T>& weighted, const Output<T>& x,
                  const std::vector<double>& scale, bool fill, double smoothness, int least_steps,
                  int most_steps, double tolerance, double of_movement, nb::object callback) {
    const std::size_t channels = channels_over(weighted, grid_.vertices);
    require(
        weight.size() == grid_.vertices && x.size() == weighted.size() && scale.size() == channels,
        "sizes do not match");
    AfterStep after_step(std::move(callback));
    PcgOptions options;
    options.smoothness = smoothness;
    options.least_steps = least_steps;
    options.most_steps = most_steps;
    options.tolerance = tolerance;
    options.of_movement = of_movement;
    options.after_step = std::ref(after_step);
    PcgResult result;
    {
      const nb::gil_scoped_release release;
      result = solver_.solve(weight.data(), weighted.data(), channels, scale.data(), x.data(), fill,
                             options);
    }
    after_step.raise();
    return nb::make_tuple(result.residuals, result.converged, result.moved);
  }

  void with_data(const Output<bool>& out) const {
    require(out.size() == grid_.vertices, "out does not match the grid");
    const std::vector<std::uint8_t>& active = solver_.active();
    if (active.empty())
      std::fill_n(out.data(), out.size(), true);
    else
      std::copy(active.begin(), active.end(), out.data());
  }

 private:
  static SystemSolver<T> make(const PyGrid& grid, const std::string& name, int threads) {
    const nb::gil_scoped_release release;
    if (name == "multigrid")
      return SystemSolver<T>(grid.grid(), grid.multigrid<T>(threads), threads);
    require(name == "pyramid" || name == "jacobi", "no such preconditioner");
    const auto kind = name == "pyramid" ? Preconditioning::pyramid : Preconditioning::jacobi;
    return SystemSolver<T>(grid.grid(), grid.n<T>(threads), kind, threads);
  }

  const Grid& grid_;
  SystemSolver<T> solver_;
};

template <class T>
void define_for(nb::class_<PyGrid>& grid) {
  grid.def("splat", &py_splat<T>, "pixels"_a.noconvert(), "out"_a.noconvert(), "threads"_a)
      .def("slice", &py_slice<T>, "vertices"_a.noconvert(), "out"_a.noconvert(), "threads"_a)
      .def("blur", &py_blur<T>, "vertices"_a.noconvert(), "out"_a.noconvert(), "threads"_a)
      .def("slice_gradients", &py_slice_gradients<T>, "z"_a.noconvert(), "y"_a.noconvert(),
           "extra"_a.noconvert().none(), "target"_a.noconvert(), "confidence"_a.noconvert().none(),
           "of_target"_a.noconvert().none(), "of_confidence"_a.noconvert().none(), "threads"_a)
      .def("smoothness_product", &py_smoothness_product<T>, "x"_a.noconvert(), "y"_a.noconvert(),
           "threads"_a)
      .def("rms", &py_rms<T>, "vertices"_a.noconvert(), "out"_a.noconvert())
      .def("splat_target", &py_splat_target<T>, "target"_a.noconvert(),
           "confidence"_a.noconvert().none(), "weight"_a.noconvert(), "weighted"_a.noconvert(),
           "threads"_a)
      .def("start", &py_start<T>, "weight"_a.noconvert(), "weighted"_a.noconvert(), "pyramid"_a,
           "x"_a.noconvert(), "threads"_a)
      .def("push_pull", &py_push_pull<T>, "vertices"_a.noconvert(), "out"_a.noconvert(),
           "threads"_a)
      .def("nested_start", &py_nested_start<T>, "weight"_a.noconvert(), "weighted"_a.noconvert(),
           "smoothness"_a, "x"_a.noconvert(), "threads"_a)
      .def("draw_probes", &py_draw_probes<T>, "weight"_a.noconvert(), "smoothness"_a, "seed"_a,
           "b"_a.noconvert(), "threads"_a)
      .def("with_data", &py_with_data<T>, "weight"_a.noconvert(), "out"_a.noconvert());
}

template <class T>
void define_solver(nb::module_& m, const char* name) {
  nb::class_<PySolver<T>>(m, name)
      .def(nb::init<const PyGrid&, const std::string&, int>(), "grid"_a, "preconditioner"_a,
           "threads"_a, nb::keep_alive<1, 2>())
      .def("solve", &PySolver<T>::solve, "weight"_a.noconvert(), "weighted"_a.noconvert(),
           "x"_a.noconvert(), "scale"_a, "fill"_a, "smoothness"_a, "least_steps"_a, "most_steps"_a,
           "tolerance"_a, "of_movement"_a, "callback"_a.none())
      .def("with_data", &PySolver<T>::with_data, "out"_a.noconvert());
}

template <class T>
void define_samples(nb::module_& m, const char* name) {
  nb::class_<Samples<T>>(m, name)
      .def(nb::new_(&make_samples<T>), "grid"_a, "target"_a.noconvert(), "threads"_a,
           nb::keep_alive<0, 1>())
      .def_prop_ro("known", &Samples<T>::known)
      .def_prop_ro("size", &Samples<T>::size)
      .def("splat", &py_splat_robust<T>, "loss"_a, "y"_a.noconvert(), "weight"_a.noconvert(),
           "weighted"_a.noconvert(), "threads"_a);
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

void define_loss(nb::module_& m) {
  nb::class_<Loss>(m, "Loss")
      .def_static(
          "power",
          [](double gain, double rate, double exponent) {
            return Loss{Loss::Shape::power, gain, rate, exponent};
          },
          "gain"_a, "rate"_a, "exponent"_a)
      .def_static(
          "exponential",
          [](double gain, double rate) { return Loss{Loss::Shape::exponential, gain, rate, 0}; },
          "gain"_a, "rate"_a)
      .def_static(
          "huber", [](double gain, double rate) { return Loss{Loss::Shape::huber, gain, rate, 0}; },
          "gain"_a, "rate"_a);
}

// The domain transform along one reference.
template <class T>
class PyDomainTransform {
 public:
  template <class R>
  static PyDomainTransform* of(const Input<R>& pixels, double step, double level, int threads) {
    require(pixels.ndim() == 3 && pixels.shape(2) <= 3 && pixels.size() > 0,
            "reference must be H x W x 1 to 3");
    const ReferenceImage<R> guide{pixels.data(), pixels.shape(0), pixels.shape(1), pixels.shape(2)};
    const nb::gil_scoped_release release;
    return new PyDomainTransform(domain_weights<T>(guide, {step, level}, threads));
  }

  template <class Pixel>
  nb::tuple filter(const Input<Pixel>& image, const std::optional<Input<T>>& mass, int iterations,
                   const Output<Pixel>& out, int threads) const {
    const std::size_t channels = channels_over(image, weights_.height * weights_.width);
    require(out.size() == image.size(), "out does not match the image");
    require(!mass || mass->size() * channels == image.size(), "mass does not match the image");
    DomainInput seen;
    {
      const nb::gil_scoped_release release;
      seen = domain_transform(weights_, iterations, image.data(), mass ? mass->data() : nullptr,
                              channels, out.data(), threads);
    }
    return nb::make_tuple(seen.known, seen.large);
  }

 private:
  explicit PyDomainTransform(DomainWeights<T> weights) : weights_(std::move(weights)) {}

  DomainWeights<T> weights_;
};

template <class T, class... Pixels>
void define_domain_transform(nb::module_& m, const char* name) {
  using Self = PyDomainTransform<T>;
  nb::class_<Self> self(m, name);
  const auto from = [&]<class R>(R) {
    self.def_static("of", &Self::template of<R>, "reference"_a.noconvert(), "step"_a, "level"_a,
                    "threads"_a);
  };
  from(std::uint8_t{}), from(std::uint16_t{}), from(float{}), from(double{});
  (self.def("filter", &Self::template filter<Pixels>, "image"_a.noconvert(),
            "mass"_a.noconvert().none(), "iterations"_a, "out"_a.noconvert(), "threads"_a),
   ...);
}

template <class T>
void py_block_means(const Input<T>& pixels, const Output<T>& means, int threads) {
  require(pixels.ndim() == 2 && means.ndim() == 2 && pixels.size() > 0 && means.size() > 0 &&
              means.shape(0) <= pixels.shape(0) && means.shape(1) <= pixels.shape(1),
          "means must be no larger than pixels");
  const nb::gil_scoped_release release;
  const Blocks<T> blocks(pixels.shape(0), pixels.shape(1), means.shape(0), means.shape(1));
  block_means(blocks, pixels.data(), means.data(), threads);
}

template <class T>
void py_spread_blocks(const Input<T>& values, const Output<T>& pixels, int threads) {
  require(pixels.ndim() == 2 && values.ndim() == 2 && pixels.size() > 0 && values.size() > 0 &&
              values.shape(0) <= pixels.shape(0) && values.shape(1) <= pixels.shape(1),
          "values must be no larger than pixels");
  const nb::gil_scoped_release release;
  const Blocks<T> blocks(pixels.shape(0), pixels.shape(1), values.shape(0), values.shape(1));
  spread_blocks(blocks, values.data(), pixels.data(), threads);
}

// The graph of a reference's pixels, and polishing on it.
template <class T>
class PyPixelGraph {
 public:
  template <class R>
  static PyPixelGraph* of(const Input<R>& pixels, double smoothness, double sigma, int threads) {
    require(pixels.ndim() == 3 && pixels.size() > 0, "reference must be H x W x C");
    const nb::gil_scoped_release release;
    return new PyPixelGraph(PixelGraph<T>(pixels.data(), pixels.shape(0), pixels.shape(1),
                                          pixels.shape(2), smoothness, sigma, threads));
  }

  void polish(const Output<T>& z, double anchor, const std::optional<Input<T>>& target,
              const std::optional<Input<T>>& weight, const std::optional<Input<T>>& low,
              const std::optional<Input<T>>& low_weight, double scale, int rounds, int steps,
              int threads) const {
    const auto is_like_z = [&](const auto& array) { return array->size() == z.size(); };
    require(z.size() == graph_.height() * graph_.width(), "z does not match the reference");
    require(target.has_value() == weight.has_value() &&
                (!target || (is_like_z(target) && is_like_z(weight))),
            "target and weight must match the reference");
    require(
        low.has_value() == low_weight.has_value() &&
            (!low || (low->ndim() == 2 && low->size() > 0 && low->size() == low_weight->size() &&
                      low->shape(0) <= graph_.height() && low->shape(1) <= graph_.width())),
        "low and low_weight must match and be no larger than the reference");
    const nb::gil_scoped_release release;
    std::optional<Blocks<T>> blocks;
    if (low) blocks.emplace(graph_.height(), graph_.width(), low->shape(0), low->shape(1));
    const PolishData<T> data{target ? target->data() : nullptr,
                             weight ? weight->data() : nullptr,
                             anchor,
                             blocks ? &*blocks : nullptr,
                             low ? low->data() : nullptr,
                             low_weight ? low_weight->data() : nullptr};
    Polish<T>(graph_, data, threads).run(z.data(), scale, rounds, steps);
  }

 private:
  explicit PyPixelGraph(PixelGraph<T> graph) : graph_(std::move(graph)) {}

  PixelGraph<T> graph_;
};

template <class T>
void define_polish(nb::module_& m, const char* name) {
  using Self = PyPixelGraph<T>;
  nb::class_<Self> self(m, name);
  const auto from = [&]<class R>(R) {
    self.def_static("of", &Self::template of<R>, "reference"_a.noconvert(), "smoothness"_a,
                    "sigma"_a, "threads"_a);
  };
  from(std::uint8_t{}), from(std::uint16_t{}), from(float{}), from(double{});
  self.def("polish", &Self::polish, "z"_a.noconvert(), "anchor"_a, "target"_a.noconvert().none(),
           "weight"_a.noconvert().none(), "low"_a.noconvert().none(),
           "low_weight"_a.noconvert().none(), "scale"_a, "rounds"_a, "steps"_a, "threads"_a);
  m.def("block_means", &py_block_means<T>, "pixels"_a.noconvert(), "means"_a.noconvert(),
        "threads"_a);
  m.def("spread_blocks", &py_spread_blocks<T>, "values"_a.noconvert(), "pixels"_a.noconvert(),
        "threads"_a);
}

template <class R>
void py_unchanged(const Input<R>& before, const Input<R>& after, const std::vector<float>& scale,
                  const Output<float>& weight, int threads) {
  require(before.size() == after.size() && after.size() == weight.size() * scale.size(),
          "sizes do not match");
  const nb::gil_scoped_release release;
  frame_change(before.data(), after.data(), weight.size(), scale, weight.data(), threads);
}

template <class T>
void define_build(nb::module_& m) {
  m.def("build_grid", &make_grid<T>, "pixels"_a.noconvert(), "matrix"_a, "offset"_a, "sigma"_a,
        "nominal_max"_a.none(), "sigma_space"_a, "threads"_a);
  m.def("unchanged", &py_unchanged<T>, "before"_a.noconvert(), "after"_a.noconvert(), "scale"_a,
        "weight"_a.noconvert(), "threads"_a);
}

void py_visible(const Input<float>& claim, const Input<float>& surface, const Input<bool>& trusted,
                float tolerance, const Output<bool>& out, int threads) {
  require(claim.ndim() == 2 && claim.size() > 0, "claim must be H x W");
  require(surface.size() == claim.size() && trusted.size() == claim.size() &&
              out.size() == claim.size(),
          "sizes do not match");
  const nb::gil_scoped_release release;
  visible(claim.data(), surface.data(), trusted.data(), claim.shape(0), claim.shape(1), tolerance,
          out.data(), threads);
}

std::int32_t py_find_regions(const Input<float>& values, const Input<bool>& mask, float tolerance,
                             const Output<std::int32_t>& labels) {
  require(values.ndim() == 2 && values.size() > 0, "values must be H x W");
  require(values.size() < std::numeric_limits<std::int32_t>::max(), "too many pixels");
  require(mask.size() == values.size() && labels.size() == values.size(), "sizes do not match");
  const nb::gil_scoped_release release;
  return find_regions(values.data(), mask.data(), values.shape(0), values.shape(1), tolerance,
                      labels.data());
}

void py_relative_depth(const Input<std::int32_t>& labels, std::size_t radius,
                       const Output<float>& out, int threads) {
  require(labels.ndim() == 2 && labels.size() > 0 && out.size() == labels.size(),
          "shapes do not match");
  nb::gil_scoped_release release;
  label_depth(labels.data(), labels.shape(0), labels.shape(1), radius, out.data(), threads);
}

void py_majority(const Input<std::int32_t>& labels, std::size_t classes, std::size_t radius,
                 const Output<std::int32_t>& out, int threads) {
  require(labels.ndim() == 2 && labels.size() > 0 && out.size() == labels.size(),
          "shapes do not match");
  nb::gil_scoped_release release;
  for (std::size_t i = 0; i < labels.size(); ++i)
    require(labels.data()[i] >= 0 && static_cast<std::size_t>(labels.data()[i]) < classes,
            "a label lies outside the classes");
  majority(labels.data(), labels.shape(0), labels.shape(1), classes, radius, out.data(), threads);
}

template <class T>
void define_filters(nb::module_& m) {
  m.def("median", &py_median<T>, "image"_a.noconvert(), "out"_a.noconvert(), "size"_a, "threads"_a);
}

void define_tasks(nb::module_& m) {
  m.def("defocus", &py_defocus, "image"_a.noconvert(), "layers"_a.noconvert(), "radii"_a,
        "blades"_a, "rotation"_a, "out"_a.noconvert(), "threads"_a);
  m.def("match_blocks", &py_match_blocks, "left"_a.noconvert(), "right"_a.noconvert(),
        "disparities"_a, "radius"_a, "margin"_a, "out"_a.noconvert(), "threads"_a);
  m.def("relative_depth", &py_relative_depth, "labels"_a.noconvert(), "radius"_a,
        "out"_a.noconvert(), "threads"_a);
  m.def("majority", &py_majority, "labels"_a.noconvert(), "classes"_a, "radius"_a,
        "out"_a.noconvert(), "threads"_a);
}

}  // namespace

NB_MODULE(_core, m) {
  nb::class_<PyGrid> grid(m, "Grid");
  grid.def_prop_ro("n_vertices", [](const PyGrid& self) { return self.grid().vertices; })
      .def("coarsen", &PyGrid::coarsen, "threads"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("bistochastize", &PyGrid::balance, "centre"_a, "space"_a, "range"_a, "threads"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def(
          "mass",
          [](const PyGrid& self) {
            const Buffer<float>& mass = self.grid().mass;
            return nb::ndarray<nb::numpy, const float>(mass.data(), {mass.size()});
          },
          nb::rv_policy::reference_internal)
      .def("coordinates", [](const PyGrid& self) { return coordinates(self.grid()); });
  define_for<float>(grid);
  define_for<double>(grid);
  define_channels<float>(m);
  define_channels<double>(m);
  define_loss(m);
  define_samples<float>(m, "Samples32");
  define_samples<double>(m, "Samples64");
  define_solver<float>(m, "Solver32");
  define_solver<double>(m, "Solver64");
  define_domain_transform<float, std::uint8_t, std::uint16_t, float>(m, "DomainTransform32");
  define_domain_transform<double, double>(m, "DomainTransform64");
  define_polish<float>(m, "PixelGraph32");
  define_polish<double>(m, "PixelGraph64");
  define_build<std::uint8_t>(m);
  define_build<std::uint16_t>(m);
  define_build<float>(m);
  define_build<double>(m);
  define_filters<std::uint8_t>(m);
  define_filters<std::uint16_t>(m);
  define_filters<float>(m);
  define_filters<double>(m);
  define_tasks(m);
  m.def("visible", &py_visible, "claim"_a.noconvert(), "surface"_a.noconvert(),
        "trusted"_a.noconvert(), "tolerance"_a, "out"_a.noconvert(), "threads"_a);
  m.def("find_regions", &py_find_regions, "values"_a.noconvert(), "mask"_a.noconvert(),
        "tolerance"_a, "labels"_a.noconvert());
}
