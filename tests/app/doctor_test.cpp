#include <gmock/gmock.h>

#include "tests/support/program.h"

namespace troupe::app {
namespace {

using testing::expect_end;
using testing::run_program;

/// `troupe doctor` on a machine with these devices.
testing::ProgramEnd doctor(std::map<std::string, std::string> env) {
  env.try_emplace("CUDA_VISIBLE_DEVICES", "0,1,2,3,4");
  env["TROUPE_NVML"] = NVML_STANDIN;
  return run_program({"doctor"}, {.cwd = "", .env = std::move(env)});
}

TEST(DoctorTest, ListsDevicesWithWhatTheyRun) {
  expect_end(
      doctor({{"TROUPE_STANDIN_DEVICES", "H200,H200,A6000,B200:180,RTX4090"}}), 0,
      {"devices  ok    5 found; NVIDIA driver 580.65.06 for CUDA 13.0 and older\n",
       "device 0 ok    H200, 139.8 GiB memory, compute capability 9.0: our kernels have code for it (sm_90); "
       "NVLink to 1, 3 (18 links each)\n",
       "device 2 ok    RTX A6000, 47.5 GiB memory, compute capability 8.6: our kernels have code for it (sm_80)\n",
       "device 3 ok    B200, 180.0 GiB memory, compute capability 10.0: the driver compiles our kernels for it",
       "device 4 ok    RTX 4090, 23.5 GiB memory, compute capability 8.9: our kernels have code for it (sm_89)\n",
       "  0 errors, "});
}

TEST(DoctorTest, WarnsOfADeviceThatIsTooOld) {
  expect_end(doctor({{"TROUPE_STANDIN_DEVICES", "V100"}}), 0,
             {"device 0 WARN  V100, 31.7 GiB memory, compute capability 7.0: too old for our kernels, which want"});
}

TEST(DoctorTest, SaysThatThereIsNoDeviceAndWhy) {
  expect_end(doctor({{"TROUPE_STANDIN_DEVICES", "H200"}, {"CUDA_VISIBLE_DEVICES", ""}}), 0,
             {"devices  ok    none found that CUDA_VISIBLE_DEVICES shows; NVIDIA driver 580.65.06"});
}

TEST(DoctorTest, WarnsOfADriverThatFails) {
  expect_end(doctor({{"TROUPE_STANDIN_NVML_FAILS", "1"}}), 0,
             {"devices  WARN  nvmlInit_v2: Driver Not Loaded; NVIDIA's library is here, but the kernel has not"});
}

}  // namespace
}  // namespace troupe::app
