// Test the operations on depth videos: any shape, any number of threads, no memory.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/check.hpp"
#include "tests/failing_memory.hpp"
#include "video/average.hpp"
#include "video/calm.hpp"
#include "video/camera_motion.hpp"
#include "video/compare.hpp"
#include "video/depth_change.hpp"
#include "video/photo.hpp"
#include "video/warp.hpp"

namespace bilateral {

namespace {

constexpr DepthNoise noise{0.002f, 0.0025f};

// A frame of random blobs: depth, packed photograph and one level of luma.
struct TestFrame {
  std::vector<float> depth, luma;
  std::vector<std::uint8_t> photo, count;

  TestFrame(Random& random, std::size_t height, std::size_t width, std::size_t shift)
      : depth(height * width), luma(depth.size()), photo(4 * depth.size()), count(depth.size(), 3) {
    std::vector<std::uint8_t> pixels(3 * depth.size());
    for (std::size_t i = 0; i < depth.size(); ++i) {
      const std::size_t x = i % width + shift, y = i / width;
      const double wave =
          std::sin(static_cast<double>(x) / 5) * std::cos(static_cast<double>(y) / 7);
      depth[i] = 2 + 0.01f * static_cast<float>(below(random, 10)) + (x / 40 % 2 ? 1.0f : 0.0f);
      for (std::size_t c = 0; c < 3; ++c)
        pixels[3 * i + c] = static_cast<std::uint8_t>(120 + 80 * wave);
    }
    pack_photo(pixels.data(), depth.size(), 3, 1.0f, photo.data(), 2);
    photo_luma(photo.data(), depth.size(), luma.data());
  }
};

// Runs all operations on two frames; returns everything that they write.
std::vector<float> run_all(const TestFrame& before, const TestFrame& now, std::size_t height,
                           std::size_t width, int threads) {
  const std::size_t size = height * width;
  std::vector<float> halves[2];
  std::vector<LumaLevel> levels;
  if (height >= 4 && width >= 4) {
    levels.push_back({before.luma.data(), now.luma.data(), height, width, 1});
    for (std::size_t k = 0; k < 2; ++k) {
      halves[k].resize((height / 2) * (width / 2));
      halve((k ? now : before).luma.data(), height, width, halves[k].data(), threads);
    }
    levels.push_back({halves[0].data(), halves[1].data(), height / 2, width / 2, 2});
  }
  const CameraMotion motion =
      camera_motion(levels, now.depth.data(), height, width, 2.0, {}, threads);
  std::vector<float> moved(size), speed(size), past(size), out(size), calmed(size);
  std::vector<std::uint8_t> count(size), photo(4 * size), out_count(size);
  const FlowModel model(motion.theta, 2.0, height, width);
  warp_past({height,
             width,
             {before.depth.data(), before.count.data(), before.photo.data()},
             now.depth.data(),
             model,
             noise,
             static_cast<float>(motion.gain),
             static_cast<float>(motion.offset),
             {moved.data(), count.data(), photo.data(), speed.data()}},
            threads);
  const DepthChange change = depth_change(now.depth.data(), now.depth.data(), moved.data(),
                                          count.data(), model, noise, height, width, true);
  const auto kept = std::make_unique<bool[]>(size);
  std::vector<std::uint8_t> steadiness(size);
  std::fill_n(kept.get(), size, true);
  std::vector<std::int16_t> difference(size);
  CompareTask compare{height,
                      width,
                      now.depth.data(),
                      now.depth.data(),
                      now.depth.data(),
                      kept.get(),
                      now.photo.data(),
                      moved.data(),
                      count.data(),
                      photo.data(),
                      model,
                      {},
                      noise,
                      12.0f,
                      1.0f,
                      4.0f,
                      past.data(),
                      steadiness.data(),
                      difference.data()};
  for (std::size_t i = 0; i < change_parameters; ++i)
    compare.change[i] = static_cast<float>(change.c[i]);
  compare_past(compare, threads);
  average_past({height,
                width,
                now.depth.data(),
                kept.get(),
                past.data(),
                count.data(),
                steadiness.data(),
                difference.data(),
                noise,
                {10, 0.1f, 2.0f, 3.0f, 6, 0.25f},
                out.data(),
                out_count.data()},
               threads);
  calm({size, out.data(), past.data(), moved.data(), speed.data(), noise, 0.5f, 0.6f, 30.0f, 9.8f,
        calmed.data()},
       threads);
  for (const double value : motion.theta) calmed.push_back(static_cast<float>(value));
  calmed.insert(calmed.end(), out.begin(), out.end());
  calmed.insert(calmed.end(), out_count.begin(), out_count.end());
  calmed.insert(calmed.end(), difference.begin(), difference.end());
  return calmed;
}

// All shapes give finite results, and the same ones with any number of threads.
void test_shapes_and_threads(Random& random) {
  const std::size_t shapes[][2] = {{1, 1}, {1, 70}, {70, 1}, {2, 2}, {5, 9}, {150, 201}};
  for (const auto& [height, width] : shapes) {
    const TestFrame before(random, height, width, 0), now(random, height, width, 2);
    const auto one = run_all(before, now, height, width, 1);
    bool finite = true;
    for (const float value : one) finite = finite && std::isfinite(value);
    CHECK(finite);
    for (const int threads : {2, 5}) CHECK(run_all(before, now, height, width, threads) == one);
  }
}

void test_small_systems(Random& random) {
  for (int round = 0; round < 20; ++round) {
    double A[4][4] = {}, x[4], b[4] = {}, found[4];
    double B[4][4];
    for (auto& row : B)
      for (double& value : row) value = static_cast<double>(below(random, 1000)) / 500 - 1;
    for (double& value : x) value = static_cast<double>(below(random, 1000)) / 500 - 1;
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 4; ++j) {
        for (std::size_t k = 0; k < 4; ++k) A[i][j] += B[i][k] * B[j][k] + (i == j ? 0.1 : 0);
        b[i] += A[i][j] * x[j];
      }
    const bool solved = detail::solve_symmetric<4>(A, b, 0, found);
    CHECK(solved);
    for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(found[i] - x[i]) < 1e-6);
  }
  double zero[4][4] = {}, nothing[4] = {}, found[4];
  zero[2][2] = -1;
  CHECK(!detail::solve_symmetric<4>(zero, nothing, 0, found));
}

void test_without_memory(Random& random) {
  const TestFrame before(random, 200, 301, 0), now(random, 200, 301, 2);
  check_without_memory(40, [&] { return run_all(before, now, 200, 301, 3); });
}

}  // namespace

void test_video(Random& random) {
  test_shapes_and_threads(random);
  test_small_systems(random);
  test_without_memory(random);
}

}  // namespace bilateral
