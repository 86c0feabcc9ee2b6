// Test the domain transform, the sorting networks and the median filter.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "base/mirrored.hpp"
#include "filters/domain_transform.hpp"
#include "filters/median.hpp"
#include "filters/polish.hpp"
#include "tests/check.hpp"
#include "tests/failing_memory.hpp"
#include "tests/random_image.hpp"

namespace bilateral {

namespace {

// The filter by its definition, in float64: DT(m v) / DT(m) for values v and masses m.
template <class T>
std::vector<double> plain_domain_transform(const DomainWeights<T>& weights, int iterations,
                                           const std::vector<T>& image, const std::vector<T>& mass,
                                           std::size_t channels) {
  const std::size_t height = weights.height, width = weights.width, each = channels + 1;
  std::vector<double> sums(height * width * each);
  for (std::size_t p = 0; p < height * width; ++p) {
    sums[p * each + channels] = static_cast<double>(mass[p]);
    for (std::size_t k = 0; k < channels; ++k)
      sums[p * each + k] = static_cast<double>(mass[p] * image[p * channels + k]);
  }
  const auto along = [&](std::size_t first, std::size_t step, std::size_t n, const T* w, int pass) {
    const auto relax = [&](std::size_t to, std::size_t from, std::size_t edge) {
      const double share = std::pow(static_cast<double>(w[edge]), std::pow(2.0, pass));
      for (std::size_t k = 0; k < each; ++k)
        sums[to * each + k] += share * (sums[from * each + k] - sums[to * each + k]);
    };
    for (std::size_t i = 1; i < n; ++i)
      relax(first + i * step, first + (i - 1) * step, first + i * step);
    for (std::size_t i = n - 1; i-- > 0;)
      relax(first + i * step, first + (i + 1) * step, first + (i + 1) * step);
  };
  for (int pass = 0; pass < iterations; ++pass) {
    for (std::size_t y = 0; y < height; ++y)
      along(y * width, 1, width, weights.across.data(), pass);
    for (std::size_t x = 0; x < width; ++x) along(x, width, height, weights.down.data(), pass);
  }
  std::vector<double> values(height * width * channels);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = sums[i / channels * each + i % channels] / sums[i / channels * each + channels];
  return values;
}

template <class T>
void test_domain_transform(Random& random) {
  std::uniform_real_distribution<T> uniform(0, 1);
  const std::size_t shapes[][2] = {{1, 1}, {1, 40}, {40, 1}, {3, 5}, {37, 61}, {130, 70}};
  for (const auto& [height, width] : shapes)
    for (const std::size_t channels : {1u, 2u, 3u, 5u}) {
      const Image photo(random, height, width, 3, 20);
      const ReferenceImage<std::uint8_t> guide{photo.pixels.data(), height, width, 3};
      const auto weights = domain_weights<T>(guide, {0.1, 0.01}, 2);
      std::vector<T> image(height * width * channels), mass(height * width), out(image.size());
      for (T& v : image) v = uniform(random);
      for (T& m : mass) m = below(random, 3) == 0 ? T{0} : uniform(random);
      mass[below(random, mass.size())] = 1;
      const auto check = [&](const T* mass_or_null, const std::vector<T>& used) {
        const auto expected = plain_domain_transform(weights, 3, image, used, channels);
        for (const int threads : {1, 3}) {
          domain_transform(weights, 3, image.data(), mass_or_null, channels, out.data(), threads);
          double largest = 0;
          for (std::size_t i = 0; i < out.size(); ++i)
            largest = std::max(largest, std::abs(static_cast<double>(out[i]) - expected[i]));
          CHECK(largest < (sizeof(T) == 4 ? 2e-5 : 1e-12));
        }
      };
      check(nullptr, std::vector<T>(mass.size(), T{1}));
      check(mass.data(), mass);
    }
}

void test_domain_transform_without_data() {
  const std::vector<std::uint8_t> photo(12, 7);
  const auto weights =
      domain_weights<float>(ReferenceImage<std::uint8_t>{photo.data(), 3, 4, 1}, {0.1, 0.1}, 1);
  std::vector<float> image(12, std::numeric_limits<float>::quiet_NaN()), out(12);
  CHECK(!domain_transform<float>(weights, 3, image.data(), nullptr, 1, out.data(), 1).known);
  image[5] = 2;
  CHECK(domain_transform<float>(weights, 3, image.data(), nullptr, 1, out.data(), 1).known);
  CHECK(std::all_of(out.begin(), out.end(), [](float v) { return v == 2; }));
  image[6] = std::numeric_limits<float>::max();
  CHECK(domain_transform<float>(weights, 3, image.data(), nullptr, 1, out.data(), 1).large);
}

template <std::size_t M, std::size_t N>
void test_merge(Random& random) {
  std::array<int, M> a;
  std::array<int, N> b;
  for (int& value : a) value = static_cast<int>(below(random, 9));
  for (int& value : b) value = static_cast<int>(below(random, 9));
  const auto all = merge(sort(a), sort(b));
  std::array<int, M + N> expected;
  std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), expected.begin()));
  std::sort(expected.begin(), expected.end());
  CHECK(all == expected);
}

void test_networks(Random& random) {
  for (int i = 0; i < 200; ++i) {
    test_merge<1, 1>(random);
    test_merge<3, 1>(random);
    test_merge<2, 5>(random);
    test_merge<3, 3>(random);
    test_merge<6, 5>(random);
    test_merge<12, 13>(random);
  }
}

// The median of a window, by sorting its values that are not NaN.
template <class T>
T middle(std::vector<T> values) {
  std::erase_if(values, [](T value) { return value != value; });
  if (values.empty()) return std::numeric_limits<T>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const T low = values[(values.size() - 1) / 2], high = values[values.size() / 2];
  return static_cast<T>((low + high) / T{2});
}

template <class T>
void test_median(Random& random) {
  const std::size_t shapes[][3] = {{1, 1, 1}, {2, 1, 3}, {1, 7, 2}, {35, 33, 1}, {67, 150, 3}};
  for (const auto& [height, width, channels] : shapes)
    for (const std::size_t size : {3u, 5u})
      for (const std::size_t holes : {0u, 1u, 90u}) {
        std::vector<T> image(height * width * channels), out(image.size());
        for (T& value : image) {
          value = static_cast<T>(below(random, 250));
          if (std::is_floating_point_v<T> && below(random, 100) < holes)
            value = std::numeric_limits<T>::quiet_NaN();
        }
        median(image.data(), height, width, channels, size, out.data(), 3);
        bool right = true;
        for (std::size_t i = 0; i < image.size(); ++i) {
          const std::size_t k = i % channels, x = i / channels % width, y = i / channels / width;
          std::vector<T> window;
          for (std::size_t j = 0; j < size * size; ++j) {
            const auto at = [&](std::size_t centre, std::size_t offset, std::size_t n) {
              return detail::mirrored(static_cast<std::ptrdiff_t>(centre + offset) -
                                          static_cast<std::ptrdiff_t>(size / 2),
                                      n);
            };
            const std::size_t from = at(y, j / size, height) * width + at(x, j % size, width);
            window.push_back(image[from * channels + k]);
          }
          const T expected = middle(window);
          right = right && (out[i] == expected || (out[i] != out[i] && expected != expected));
        }
        CHECK(right);
      }
}

void test_without_memory(Random& random) {
  const LargeProblem problem(random, 4);
  const std::size_t height = problem.grid.height, width = problem.grid.width;
  const std::uint8_t* photo = problem.image.pixels.data();
  const float* target = problem.target.data();
  check_without_memory(24, [&] {
    const auto weights =
        domain_weights<float>(ReferenceImage<std::uint8_t>{photo, height, width, 3}, {0.1, 0.1}, 4);
    std::vector<float> out(height * width);
    domain_transform<float>(weights, 2, target, static_cast<const float*>(nullptr), 1, out.data(),
                            4);
    return out;
  });
  check_without_memory(12, [&] {
    std::vector<float> out(height * width);
    median(target, height, width, 1, 3, out.data(), 4);
    return out;
  });
  const std::vector<float> low(40 * 50, 100.0f), low_weight(low.size(), 1.0f);
  check_without_memory(12, [&] {
    const PixelGraph<float> graph(photo, height, width, 3, 1, 9, 4);
    const Blocks<float> blocks(height, width, 40, 50);
    const PolishData<float> data{target, target, 0, &blocks, low.data(), low_weight.data()};
    std::vector<float> z(problem.target);
    Polish<float>(graph, data, 4).run(z.data(), 1, 1, 2);
    return z;
  });
}

}  // namespace

void test_filters(Random& random) {
  test_domain_transform<float>(random);
  test_domain_transform<double>(random);
  test_domain_transform_without_data();
  test_networks(random);
  test_median<std::uint8_t>(random);
  test_median<std::uint16_t>(random);
  test_median<float>(random);
  test_median<double>(random);
  test_without_memory(random);
}

}  // namespace bilateral
