// Norms and residuals on a device, forward and backward, beside their host forms and f64.
#include <optional>

#include "kernels/cuda/gated_residual.h"
#include "kernels/cuda/modulated_norm.h"
#include "kernels/cuda/rms_norm.h"
#include "kernels/row_kernels.h"
#include "tests/kernels/cuda/against_host.h"
#include "tests/kernels/cuda/mutants.h"

namespace troupe::kernels::cuda {
namespace {

constexpr double kEps = 1e-6;
constexpr std::int64_t kSamples = 2, kTokens = 41, kTableRows = 3, kRows = kSamples * kTokens;

/// Tokens of three frames, the last of which comes back behind the second: 17 of 0, 4 of 1, 19 of 2 and one of 0.
std::vector<RowRun> runs_of_frames() {
  std::vector<std::int32_t> rows(17, 0);
  rows.insert(rows.end(), 4, 1);
  rows.insert(rows.end(), 19, 2);
  rows.push_back(0);
  return row_runs(kSamples, kTokens, rows.data(), kTableRows, true);
}

/// SortedRuns on the device.
class RunsThere {
 public:
  RunsThere(const std::vector<RowRun>& runs, std::int64_t table_rows, cudaStream_t stream)
      : sorted_(sort_runs(runs, table_rows)),
        runs_(sorted_.runs, stream),
        first_(sorted_.first, stream),
        table_rows_(table_rows) {}
  DeviceRuns get() const {
    return {runs_.data(), static_cast<std::int64_t>(sorted_.runs.size()), first_.data(), table_rows_};
  }

 private:
  SortedRuns sorted_;
  DeviceArray<DeviceRun> runs_;
  DeviceArray<std::int32_t> first_;
  std::int64_t table_rows_;
};

template <class T>
class CudaNormTest : public ::testing::Test {
 protected:
  using Device = std::vector<T>;
  using Floats = std::vector<float>;
  using Doubles = std::vector<double>;

  static std::size_t size_of(std::int64_t rows, std::int64_t width) { return static_cast<std::size_t>(rows * width); }

  /// Values, and the same in f64.
  struct Input {
    Input(std::int64_t rows, std::int64_t width, std::uint32_t seed)
        : own(random_values<T>(size_of(rows, width), seed)), wide(widened_values(own)) {}
    Device own;
    Doubles wide;
  };

  std::vector<std::byte> bytes;
  template <class V>
  void keep(const std::vector<V>& values) {
    const auto* begin = reinterpret_cast<const std::byte*>(values.data());
    bytes.insert(bytes.end(), begin, begin + values.size() * sizeof(V));
  }

  /// Forward and backward at a width; `compares`: with the host, else the bytes are kept.
  void modulated_norm(std::int64_t width, bool compares) {
    const DeviceStream stream;
    const auto runs = runs_of_frames();
    const auto tables = kSamples * kTableRows;
    const Input x(kRows, width, 1), factor(tables, width, 2), shift(tables, width, 3), dy(kRows, width, 4);
    const RunsThere runs_there(runs, tables, stream);
    const DeviceArray x_there(x.own, stream), factor_there(factor.own, stream), shift_there(shift.own, stream),
        dy_there(dy.own, stream);
    const DeviceArray<T> y(x.own.size(), stream), dx(x.own.size(), stream);
    const DeviceArray<float> stats(size_of(kRows, 2), stream), dfactor(factor.own.size(), stream),
        dshift(factor.own.size(), stream);
    const auto count = static_cast<std::int64_t>(runs.size());
    const DeviceArray<std::byte> scratch(static_cast<std::size_t>(modulated_norm_backward_scratch_bytes(count, width)),
                                         stream);
    ASSERT_EQ(launch_modulated_norm_forward<T>(runs_there.get(), width, x_there.data(), {factor_there.data(), width},
                                               {shift_there.data(), width}, kEps, y.data(), stats.data(), stream),
              cudaSuccess);
    ASSERT_EQ(launch_modulated_norm_backward<T>(runs_there.get(), width, dy_there.data(), x_there.data(),
                                                {factor_there.data(), width}, stats.data(), dx.data(), dfactor.data(),
                                                dshift.data(), scratch.data(), stream),
              cudaSuccess);
    keep(y.read()), keep(stats.read()), keep(dx.read()), keep(dfactor.read()), keep(dshift.read());
    if (!compares) return;

    Device host_y(x.own.size()), host_dx(x.own.size());
    Floats host_stats(size_of(kRows, 2)), host_dfactor(factor.own.size()), host_dshift(factor.own.size());
    cpu::modulated_norm_forward<T>(runs, width, x.own.data(), {factor.own.data(), width}, {shift.own.data(), width},
                                   kEps, host_y.data(), host_stats.data(), 1);
    cpu::modulated_norm_backward<T>(runs, width, tables, dy.own.data(), x.own.data(), {factor.own.data(), width},
                                    host_stats.data(), host_dx.data(), host_dfactor.data(), host_dshift.data(), 1);
    Doubles want_y(x.own.size()), want_dx(x.own.size()), want_stats(size_of(kRows, 2)), want_dfactor(factor.own.size()),
        want_dshift(factor.own.size());
    cpu::modulated_norm_forward<double>(runs, width, x.wide.data(), {factor.wide.data(), width},
                                        {shift.wide.data(), width}, kEps, want_y.data(), want_stats.data(), 1);
    cpu::modulated_norm_backward<double>(runs, width, tables, dy.wide.data(), x.wide.data(),
                                         {factor.wide.data(), width}, want_stats.data(), want_dx.data(),
                                         want_dfactor.data(), want_dshift.data(), 1);
    // a row of one value has no variance: what is left of it is rounding, a thousand times as large
    if (width > 1) {
      expect_like_host(y.read(), host_y, want_y, "y");
      expect_like_host(stats.read(), host_stats, want_stats, "stats");
      expect_like_host(dx.read(), host_dx, want_dx, "dx");
      expect_like_host(dfactor.read(), host_dfactor, want_dfactor, "dfactor");
    }
    expect_like_host(dshift.read(), host_dshift, want_dshift, "dshift");
  }

  void rms_norm(std::int64_t width, std::int64_t head_dim, std::int64_t gap, bool compares) {
    const DeviceStream stream;
    const std::int64_t rows = 67, stride = width + gap;
    const Input x(rows, stride, 1), gain(1, width, 2), dy(rows, width, 3);
    Floats cos, sin;
    Doubles wide_cos, wide_sin;
    for (std::int64_t i = 0; i < kTokens * head_dim / 2; ++i) {
      const double angle = 0.37 * static_cast<double>(i);
      cos.push_back(static_cast<float>(std::cos(angle))), sin.push_back(static_cast<float>(std::sin(angle)));
      wide_cos.push_back(static_cast<double>(cos.back())), wide_sin.push_back(static_cast<double>(sin.back()));
    }
    std::optional<DeviceArray<float>> cos_there, sin_there;
    Rotation<T> rotation, host_rotation;
    Rotation<double> wide_rotation;
    if (head_dim > 0) {
      cos_there.emplace(cos, stream), sin_there.emplace(sin, stream);
      rotation = {cos_there->data(), sin_there->data(), kTokens, head_dim};
      host_rotation = {cos.data(), sin.data(), kTokens, head_dim};
      wide_rotation = {wide_cos.data(), wide_sin.data(), kTokens, head_dim};
    }
    const DeviceArray x_there(x.own, stream), gain_there(gain.own, stream), dy_there(dy.own, stream);
    const DeviceArray<T> y(size_of(rows, width), stream);
    const DeviceArray dx(std::vector<T>(x.own.size()), stream);
    const DeviceArray<float> rstd(size_of(rows, 1), stream), dgain(size_of(1, width), stream);
    const DeviceArray<std::byte> scratch(static_cast<std::size_t>(rms_norm_backward_scratch_bytes(rows, width)),
                                         stream);
    ASSERT_EQ(launch_rms_norm_forward<T>(rows, width, x_there.data(), stride, gain_there.data(), kEps, rotation,
                                         y.data(), rstd.data(), stream),
              cudaSuccess);
    ASSERT_EQ(
        launch_rms_norm_backward<T>(rows, width, dy_there.data(), x_there.data(), stride, gain_there.data(),
                                    rstd.data(), rotation, dx.data(), stride, dgain.data(), scratch.data(), stream),
        cudaSuccess);
    keep(y.read()), keep(rstd.read()), keep(dx.read()), keep(dgain.read());
    if (!compares) return;

    Device host_y(size_of(rows, width)), host_dx(x.own.size());
    Floats host_rstd(size_of(rows, 1)), host_dgain(size_of(1, width));
    cpu::rms_norm_forward<T>(rows, width, x.own.data(), stride, gain.own.data(), kEps, host_rotation, host_y.data(),
                             host_rstd.data(), 1);
    cpu::rms_norm_backward<T>(rows, width, dy.own.data(), x.own.data(), stride, gain.own.data(), host_rstd.data(),
                              host_rotation, host_dx.data(), stride, host_dgain.data(), 1);
    Doubles want_y(size_of(rows, width)), want_dx(x.own.size()), want_rstd(size_of(rows, 1)),
        want_dgain(size_of(1, width));
    cpu::rms_norm_forward<double>(rows, width, x.wide.data(), stride, gain.wide.data(), kEps, wide_rotation,
                                  want_y.data(), want_rstd.data(), 1);
    cpu::rms_norm_backward<double>(rows, width, dy.wide.data(), x.wide.data(), stride, gain.wide.data(),
                                   want_rstd.data(), wide_rotation, want_dx.data(), stride, want_dgain.data(), 1);
    expect_like_host(y.read(), host_y, want_y, "y");
    expect_like_host(rstd.read(), host_rstd, want_rstd, "rstd");
    expect_like_host(dx.read(), host_dx, want_dx, "dx");
    expect_like_host(dgain.read(), host_dgain, want_dgain, "dgain");
  }

  void gated_residual(std::int64_t width, bool compares) {
    const DeviceStream stream;
    const auto runs = runs_of_frames();
    const auto tables = kSamples * kTableRows;
    const Input x(kRows, width, 1), y(kRows, width, 2), gate(tables, width, 3), dout(kRows, width, 4);
    const RunsThere runs_there(runs, tables, stream);
    const DeviceArray x_there(x.own, stream), y_there(y.own, stream), gate_there(gate.own, stream),
        dout_there(dout.own, stream);
    const DeviceArray<T> out(x.own.size(), stream), dy(x.own.size(), stream);
    const DeviceArray<float> dgate(gate.own.size(), stream);
    const DeviceArray<std::byte> scratch(
        static_cast<std::size_t>(gated_residual_backward_scratch_bytes(static_cast<std::int64_t>(runs.size()), width)),
        stream);
    ASSERT_EQ(launch_gated_residual_forward<T>(runs_there.get(), width, x_there.data(), y_there.data(),
                                               {gate_there.data(), width}, out.data(), stream),
              cudaSuccess);
    ASSERT_EQ(
        launch_gated_residual_backward<T>(runs_there.get(), width, dout_there.data(), y_there.data(),
                                          {gate_there.data(), width}, dy.data(), dgate.data(), scratch.data(), stream),
        cudaSuccess);
    keep(out.read()), keep(dy.read()), keep(dgate.read());
    if (!compares) return;

    Device host_out(x.own.size()), host_dy(x.own.size());
    Floats host_dgate(gate.own.size());
    cpu::gated_residual_forward<T>(runs, width, x.own.data(), y.own.data(), {gate.own.data(), width}, host_out.data(),
                                   1);
    cpu::gated_residual_backward<T>(runs, width, tables, dout.own.data(), y.own.data(), {gate.own.data(), width},
                                    host_dy.data(), host_dgate.data(), 1);
    Doubles want_out(x.own.size()), want_dy(x.own.size()), want_dgate(gate.own.size());
    cpu::gated_residual_forward<double>(runs, width, x.wide.data(), y.wide.data(), {gate.wide.data(), width},
                                        want_out.data(), 1);
    cpu::gated_residual_backward<double>(runs, width, tables, dout.wide.data(), y.wide.data(),
                                         {gate.wide.data(), width}, want_dy.data(), want_dgate.data(), 1);
    expect_like_host(out.read(), host_out, want_out, "out");
    expect_like_host(dy.read(), host_dy, want_dy, "dy");
    expect_like_host(dgate.read(), host_dgate, want_dgate, "dgate");
  }

  template <class Run>
  void expect_sound(std::int64_t width, const Run& run) {
    SCOPED_TRACE(::testing::Message() << "width " << width);
    device::standin::reset({.seed = static_cast<std::uint64_t>(width)});
    run();
    expect_clean(width);
  }

  template <class Run>
  void expect_faults(const std::string& kernel, const Run& run) {
    expect_faults_found(kernel, [&] {
      bytes.clear();
      run();
      return bytes;
    });
  }
};

using Elements = ::testing::Types<float, simd::Bf16>;
TYPED_TEST_SUITE(CudaNormTest, Elements);

TYPED_TEST(CudaNormTest, TheModulatedNormIsThatOfTheHost) {
  for (const auto width : kWidths) this->expect_sound(width, [&] { this->modulated_norm(width, true); });
}

TYPED_TEST(CudaNormTest, TheRootMeanSquareNormIsThatOfTheHost) {
  for (const auto width : kWidths) this->expect_sound(width, [&] { this->rms_norm(width, 0, 0, true); });
  // rotated heads of 128, and of 2; rows that are columns of a wider matrix
  for (const auto width : {std::int64_t{3072}, std::int64_t{5120}})
    this->expect_sound(width, [&] { this->rms_norm(width, 128, 0, true); });
  this->expect_sound(126, [&] { this->rms_norm(126, 2, 3, true); });
  this->expect_sound(1536, [&] { this->rms_norm(1536, 128, 3072, true); });
}

TYPED_TEST(CudaNormTest, TheGatedResidualIsThatOfTheHost) {
  for (const auto width : kWidths) this->expect_sound(width, [&] { this->gated_residual(width, true); });
}

TYPED_TEST(CudaNormTest, EveryMissingBarrierIsFound) {
  const std::string form = std::is_same_v<TypeParam, float> ? "4WideIfEE" : "4WideINS0_4simd4Bf16EEE";
  for (const auto* kernel : {"modulated_norm_rowsINS1_", "modulated_norm_gradientINS1_"})
    this->expect_faults(kernel + form, [&] { this->modulated_norm(1032, false); });
  for (const auto* kernel : {"rms_norm_rowsINS1_", "rms_norm_gradientINS1_"})
    this->expect_faults(kernel + form, [&] { this->rms_norm(1032, 0, 0, false); });
}

TYPED_TEST(CudaNormTest, MoreChannelsThanABlockHoldsAreRefused) {
  device::standin::reset({});
  const DeviceStream stream;
  EXPECT_EQ(launch_rms_norm_forward<TypeParam>(1, 16385, nullptr, 16385, nullptr, kEps, {}, nullptr, nullptr, stream),
            cudaErrorInvalidValue);
  EXPECT_EQ(launch_modulated_norm_forward<TypeParam>({nullptr, 1, nullptr, 1}, 16385, nullptr, {}, {}, kEps, nullptr,
                                                     nullptr, stream),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace troupe::kernels::cuda
