// Bind polishing on the graph of pixels, and means over blocks of pixels.
#include "filters/polish.hpp"

#include <nanobind/stl/optional.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "bindings/arrays.hpp"
#include "bindings/subjects.hpp"
#include "filters/block_means.hpp"

namespace bilateral {

namespace {

template <class T>
void bound_block_means(const Input<T>& pixels, const Output<T>& means, int threads) {
  require(pixels.ndim() == 2 && means.ndim() == 2 && pixels.size() > 0 && means.size() > 0 &&
              means.shape(0) <= pixels.shape(0) && means.shape(1) <= pixels.shape(1),
          "means must be no larger than pixels");
  const CoreCall call;
  const Blocks<T> blocks(pixels.shape(0), pixels.shape(1), means.shape(0), means.shape(1));
  block_means(blocks, pixels.data(), means.data(), threads);
}

template <class T>
void bound_spread_blocks(const Input<T>& values, const Output<T>& pixels, int threads) {
  require(pixels.ndim() == 2 && values.ndim() == 2 && pixels.size() > 0 && values.size() > 0 &&
              values.shape(0) <= pixels.shape(0) && values.shape(1) <= pixels.shape(1),
          "values must be no larger than pixels");
  const CoreCall call;
  const Blocks<T> blocks(pixels.shape(0), pixels.shape(1), values.shape(0), values.shape(1));
  spread_blocks(blocks, values.data(), pixels.data(), threads);
}

// The graph of a reference's pixels, and polishing on it.
template <class T>
class BoundPixelGraph {
 public:
  template <class R>
  static BoundPixelGraph* of(const Input<R>& pixels, double smoothness, double sigma, int threads) {
    require(pixels.ndim() == 3 && pixels.size() > 0, "reference must be H x W x C");
    const CoreCall call;
    return new BoundPixelGraph(PixelGraph<T>(pixels.data(), pixels.shape(0), pixels.shape(1),
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
    const CoreCall call;
    std::optional<Blocks<T>> blocks;
    if (low) blocks.emplace(graph_.height(), graph_.width(), low->shape(0), low->shape(1));
    const PolishData<T> data{
        data_or_null(target),        data_or_null(weight), anchor,
        blocks ? &*blocks : nullptr, data_or_null(low),    data_or_null(low_weight)};
    Polish<T>(graph_, data, threads).run(z.data(), scale, rounds, steps);
  }

 private:
  explicit BoundPixelGraph(PixelGraph<T> graph) : graph_(std::move(graph)) {}

  PixelGraph<T> graph_;
};

template <class T>
void define_polish(nb::module_& m, const char* name) {
  using Self = BoundPixelGraph<T>;
  nb::class_<Self> self(m, name, "The graph of the pixels of a reference.");
  const auto from = [&]<class R>(R) {
    self.def_static("of", &Self::template of<R>, "reference"_a.noconvert(), "smoothness"_a,
                    "sigma"_a, "threads"_a, "Join each pixel to its eight neighbours.");
  };
  from(std::uint8_t{}), from(std::uint16_t{}), from(float{}), from(double{});
  self.def("polish", &Self::polish, "z"_a.noconvert(), "anchor"_a, "target"_a.noconvert().none(),
           "weight"_a.noconvert().none(), "low"_a.noconvert().none(),
           "low_weight"_a.noconvert().none(), "scale"_a, "rounds"_a, "steps"_a, "threads"_a,
           "Smooth z in place, near to a target and to block means.");
  m.def("block_means", &bound_block_means<T>, "pixels"_a.noconvert(), "means"_a.noconvert(),
        "threads"_a, "Write the means of the pixels over blocks.");
  m.def("spread_blocks", &bound_spread_blocks<T>, "values"_a.noconvert(), "pixels"_a.noconvert(),
        "threads"_a, "Write the adjoint of `block_means`.");
}

}  // namespace

void bind_polish(nb::module_& m) {
  define_polish<float>(m, "PixelGraph32");
  define_polish<double>(m, "PixelGraph64");
}

}  // namespace bilateral
