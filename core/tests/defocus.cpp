// Test the synthetic defocus blur.
#include "defocus/defocus.hpp"

#include <algorithm>
#include <vector>

#include "tests/check.hpp"

namespace bilateral {

namespace {

// A blur stays within the range of the image for any layers, and keeps pixels in focus.
void test_blur(Random& random) {
  const std::size_t shapes[][2] = {{1, 1}, {1, 70}, {40, 1}, {70, 90}};
  const std::vector<double> radii{0, 1, 2.5, 6, 40};
  for (const auto& [height, width] : shapes)
    for (const int blades : {0, 3, 6}) {
      std::vector<float> image(height * width * 3), layers(height * width), out(image.size());
      for (float& value : image) value = static_cast<float>(below(random, 256));
      for (float& layer : layers) layer = static_cast<float>(below(random, 81)) / 10 - 4;
      defocus<3>({image.data(), layers.data(), height, width, 3}, radii, {blades, 0.3}, out.data(),
                 3);
      CHECK(
          std::all_of(out.begin(), out.end(), [](float v) { return v >= -0.01f && v < 255.01f; }));
      std::fill(layers.begin(), layers.end(), 0.0f);
      image.resize(height * width);
      out.resize(image.size());
      defocus<1>({image.data(), layers.data(), height, width, 1}, radii, {blades, 0}, out.data(),
                 2);
      CHECK(out == image);
    }
}

}  // namespace

void test_defocus(Random& random) { test_blur(random); }

}  // namespace bilateral
