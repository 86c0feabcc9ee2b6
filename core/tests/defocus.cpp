// Test the synthetic defocus blur.
#include "defocus/defocus.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "tests/check.hpp"
#include "tests/failing_memory.hpp"

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

// Another thread may change the layers after their check: any number must be harmless.
void test_changed_layers(Random& random) {
  const std::size_t height = 70, width = 90;
  const float numbers[] = {0,
                           4,
                           5,
                           1e9f,
                           -1e9f,
                           std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> image(height * width, 1.0f), layers(image.size()), out(image.size());
  for (float& layer : layers) layer = numbers[below(random, std::size(numbers))];
  defocus<1>({image.data(), layers.data(), height, width, 1}, {0, 1, 2.5, 6, 40}, {0, 0.0},
             out.data(), 3);
  CHECK(std::any_of(out.begin(), out.end(), [](float v) { return v > 0; }));
}

void test_without_memory(Random& random) {
  const std::size_t height = 200, width = 365;
  std::vector<float> image(height * width), layers(image.size());
  for (std::size_t i = 0; i < image.size(); ++i) {
    image[i] = static_cast<float>(below(random, 256));
    layers[i] = image[i] / 100;
  }
  check_without_memory(12, [&] {
    std::vector<float> out(image.size());
    defocus<1>({image.data(), layers.data(), height, width, 1}, {0, 1, 2, 4}, {0, 0.0}, out.data(),
               4);
    return out;
  });
}

}  // namespace

void test_defocus(Random& random) {
  test_blur(random);
  test_changed_layers(random);
  test_without_memory(random);
}

}  // namespace bilateral
