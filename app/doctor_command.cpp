// `troupe doctor`: looks at what a job would need on this machine, really loading and using it.
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <vector>

#include "app/commands.h"
#include "app/doctor_model.h"
#include "base/file_io.h"
#include "base/temporary_folder.h"
#include "comm/channel/arena.h"
#include "comm/channel/arena_desk.h"
#include "comm/collective/collective.h"
#include "comm/control/io_loop.h"
#include "data/video/video_encoder.h"
#include "data/video/video_file.h"
#include "device/nvml.h"
#include "kernels/device_module.h"
#include "workers/node/inventory.h"
#include "workers/node/sandbox.h"

namespace troupe::app {

namespace {

/// One line of the report.
struct Finding {
  enum class Level : std::uint8_t { ok, warning, error } level;
  std::string what;
  std::string text;
};

Finding check(const std::string& what, const Result<std::string>& result) {
  if (result) return {Finding::Level::ok, what, *result};
  return {Finding::Level::error, what, result.error().message()};
}

Result<std::string> machine() {
  const NodeFacts facts = read_inventory("local");
  const NodeSnapshot& node = facts.snapshot;
  return fmt::format("{}: {} usable cores, {:.1f} GiB memory", facts.host, node.cpus,
                     static_cast<double>(node.memory_bytes) / (1 << 30));
}

Result<std::string> exchange_arena(const std::string& folder) {
  TROUPE_ASSIGN(const auto desk, ArenaDesk::open(folder));
  TROUPE_ASSIGN(Arena arena, Arena::create("doctor", 1 << 20));
  TROUPE_TRY(arena.publish(folder));
  TROUPE_ASSIGN(const Arena mapped, Arena::attach(arena.handle(), 1 << 20));
  arena.bytes()[0] = std::byte{42};
  if (mapped.bytes()[0] != std::byte{42}) return Error{Errc::internal, "two mappings of one memfd differ"};
  return std::string("memfd arenas can be shared over a Unix socket");
}

Result<std::string> shared_memory() {
  TROUPE_ASSIGN(const auto folder, TemporaryFolder::make("troupe-doctor"));
  return exchange_arena(folder.path());
}

Result<std::string> sockets() {
  TROUPE_ASSIGN(const auto loop, IoLoop::start("doctor"));
  TROUPE_ASSIGN(const SocketId socket, loop->bind_router("tcp://127.0.0.1:*", [](const auto&...) {}));
  return fmt::format("loopback {} binds", loop->bound_endpoint(socket));
}

Result<std::string> gloo() {
  const std::string store =
      (std::filesystem::temp_directory_path() / fmt::format("troupe-doctor-{}", ::getpid())).string();
  auto group = join_gloo_group(
      {.store_path = store, .rank = 0, .world = 1, .host = "127.0.0.1", .timeout = std::chrono::seconds(10)});
  std::error_code ignored;  // a store file that stays in the temporary folder is no failure of the check
  std::filesystem::remove(store, ignored);
  if (!group) return group.error();
  double one = 1;
  TROUPE_TRY((*group)->all_reduce_sum({&one, 1}));
  return std::string("a group of one rank sums");
}

Finding disk() {
  struct statvfs info {};
  if (::statvfs(".", &info) != 0) return {Finding::Level::error, "disk", "the working directory cannot be inspected"};
  const double free_gib = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize) / (1 << 30);
  return {free_gib < 1 ? Finding::Level::warning : Finding::Level::ok, "disk",
          fmt::format("{:.1f} GiB free here", free_gib)};
}

Result<std::string> codecs() {
  const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("troupe-doctor-{}.mp4", ::getpid())).string();
  TROUPE_ASSIGN(const auto encoder, VideoEncoder::open(file, {.width = 32, .height = 32}));
  const std::vector<std::uint8_t> grey(32 * 32 * 3, 128);
  const Rgb8View frame{.data = grey.data(), .height = 32, .width = 32, .stride = 96};
  for (int i = 0; i < 2; ++i) TROUPE_TRY(encoder->write(frame));
  TROUPE_ASSIGN(const std::int64_t written, encoder->finish());
  const auto info = probe_video(file);
  std::error_code ignored;  // a clip that stays in the temporary folder is no failure of the check
  std::filesystem::remove(file, ignored);
  if (!info) return info.error();
  return fmt::format("wrote and read {} frames as {}", written, info->codec);
}

Finding confinement() {
  const SandboxSupport support = sandbox_support();
  const bool is_whole = support.seccomp && support.landlock > 0;
  return {is_whole ? Finding::Level::ok : Finding::Level::warning, "confine",
          fmt::format("processes that read datasets: {}", describe(support))};
}

/// Of an NVIDIA device, by the first number of its compute capability.
bool is_too_old(int major) { return major < 8; }

/// What of our kernels a device runs. They have code for sm_80, sm_89 and sm_90, and PTX for what comes later
/// (cmake/TroupeCuda.cmake); code runs on devices of the same major number that are not older.
std::string kernels_for(int major, int minor) {
  if (is_too_old(major)) return "too old for our kernels, which want compute capability 8.0";
  if (major > 9) return "the driver compiles our kernels for it when they are first loaded (PTX of compute_90)";
  return fmt::format("our kernels have code for it (sm_{})", major == 9 ? 90 : minor >= 9 ? 89 : 80);
}

/// "; NVLink to 1, 2 (18 links each)"; empty without.
std::string links_of(const device::NvmlFacts& facts, std::size_t device) {
  std::map<int, std::string> others;  // by the number of links
  for (const device::NvLinkPair& pair : facts.nvlinks) {
    if (pair.first != device && pair.second != device) continue;
    std::string& list = others[pair.links];
    list += fmt::format("{}{}", list.empty() ? "" : ", ", pair.first == device ? pair.second : pair.first);
  }
  std::string text;
  for (const auto& [links, list] : others) text += fmt::format("; NVLink to {} ({} links each)", list, links);
  return text;
}

/// One line for the driver, one for each device.
std::vector<Finding> devices() {
  const auto facts = device::read_nvml();
  if (!facts) return {{Finding::Level::warning, "devices", facts.error().message()}};
  if (facts->driver.empty()) return {{Finding::Level::ok, "devices", "none found: there is no NVIDIA driver"}};
  const std::string driver = fmt::format("NVIDIA driver {} for CUDA {} and older", facts->driver, facts->cuda);
  if (facts->devices.empty()) {
    const char* why = std::getenv("CUDA_VISIBLE_DEVICES") == nullptr ? "" : " that CUDA_VISIBLE_DEVICES shows";
    return {{Finding::Level::ok, "devices", fmt::format("none found{}; {}", why, driver)}};
  }
  std::vector<Finding> lines = {
      {Finding::Level::ok, "devices", fmt::format("{} found; {}", facts->devices.size(), driver)}};
  for (std::size_t i = 0; i < facts->devices.size(); ++i) {
    const device::NvmlDevice& d = facts->devices[i];
    const auto level = is_too_old(d.major) ? Finding::Level::warning : Finding::Level::ok;
    const double gib = static_cast<double>(d.memory_bytes) / (1 << 30);
    lines.push_back({level, fmt::format("device {}", i),
                     fmt::format("{}, {:.1f} GiB memory, compute capability {}.{}: {}{}", d.model, gib, d.major,
                                 d.minor, kernels_for(d.major, d.minor), links_of(*facts, i))});
  }
  return lines;
}

const char* word(Finding::Level level) {
  return level == Finding::Level::ok ? "ok" : level == Finding::Level::warning ? "WARN" : "ERROR";
}

}  // namespace

int doctor_command(const DoctorOptions& options) {
  if (!options.model.empty()) return doctor_model(options.model, options.markdown);
  std::vector<Finding> findings = {check("machine", machine()),   disk(),
                                   check("shm", shared_memory()), check("zeromq", sockets()),
                                   check("gloo", gloo()),         check("ffmpeg", codecs())};
  findings.push_back(confinement());
  for (Finding& line : devices()) findings.push_back(std::move(line));
  const auto module = kernels::load_device_module();
  findings.push_back({Finding::Level::ok, "gpu",
                      module ? "the module for GPUs is loaded: DreamZero is fine-tuned on one of them"
                             : module.error().message() + ": jobs run on cores"});
  int errors = 0, warnings = 0;
  for (const Finding& f : findings) {
    errors += f.level == Finding::Level::error;
    warnings += f.level == Finding::Level::warning;
    if (options.markdown) {
      fmt::print("| {} | {} | {} |\n", f.what, word(f.level), f.text);
    } else {
      fmt::print("  {:<8} {:<5} {}\n", f.what, word(f.level), f.text);
    }
  }
  fmt::print("  {} errors, {} warnings\n", errors, warnings);
  return errors == 0 ? kOk : kUnhealthy;
}

}  // namespace troupe::app
