#include "device/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "device/nvml_entries.h"
#include "device/visible_devices.h"

namespace troupe::device {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};
using LibraryHandle = std::unique_ptr<void, CloseLibrary>;

std::string_view advice(NvmlStatus status) {
  switch (status) {
    case kNvmlNoPermission:
      return "this user may not open /dev/nvidiactl or a /dev/nvidia*: join the group that owns them, or give the "
             "container its devices";
    case kNvmlDriverNotLoaded:
      return "NVIDIA's library is here, but the kernel has not loaded the driver (modprobe nvidia); without a GPU that "
             "does not matter, and jobs run on cores";
    case kNvmlLibraryNotFound:
      return "the driver's libcuda.so.1 is missing: install it, or give the container "
             "NVIDIA_DRIVER_CAPABILITIES=compute,utility";
    case kNvmlGpuIsLost:
      return "a device has fallen off the bus (see dmesg); restart the machine";
    case kNvmlVersionMismatch:
      return "the driver was updated while its old version was loaded; restart the machine";
    default:
      return "see whether nvidia-smi works; jobs run on cores meanwhile";
  }
}

/// The library between nvmlInit and nvmlShutdown.
class Nvml {
 public:
  explicit Nvml(LibraryHandle library) : library_(std::move(library)) {}
  ~Nvml() {
    if (is_open_) entries_.shutdown.call();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  Result<void> open() {
    NvmlEntries& e = entries_;
    error_string_ = reinterpret_cast<const char* (*)(NvmlStatus)>(::dlsym(library_.get(), "nvmlErrorString"));
    look_up(e.memory2, e.mig_mode, e.p2p_status, e.link_state, e.link_remote);
    const char* missing = look_up(e.init, e.shutdown, e.driver_version, e.cuda_version, e.count, e.by_index, e.pci_info,
                                  e.uuid, e.name, e.capability, e.memory);
    if (missing != nullptr) {
      return Error{Errc::failed_precondition, fmt::format("{} has no {}; update the NVIDIA driver", kLibrary, missing)};
    }
    TROUPE_TRY(call(e.init));
    is_open_ = true;
    return {};
  }

  const NvmlEntries& entries() const { return entries_; }

  /// Errors: failed_precondition, also where the driver has no such entry.
  template <class... Args>
  Result<void> call(const NvmlEntry<Args...>& entry, std::type_identity_t<Args>... args) const {
    const NvmlStatus status = entry.call == nullptr ? kNvmlNotSupported : entry.call(args...);
    return status == kNvmlSuccess ? Result<void>() : error(entry.name, status);
  }
  /// For what not every driver and device has: whether it answered.
  template <class... Args>
  static bool ask(const NvmlEntry<Args...>& entry, std::type_identity_t<Args>... args) {
    return entry.call != nullptr && entry.call(args...) == kNvmlSuccess;
  }
  Error error(const char* name, NvmlStatus status) const {
    const char* text = error_string_ == nullptr ? nullptr : error_string_(status);
    return {Errc::failed_precondition,
            fmt::format("{}: {}; {}", name, text == nullptr ? fmt::format("error {}", status) : text, advice(status))};
  }

 private:
  /// The first name that the library lacks.
  template <class... Entries>
  const char* look_up(Entries&... entries) {
    const char* missing = nullptr;
    const auto one = [&](auto& entry) {
      entry.call = reinterpret_cast<decltype(entry.call)>(::dlsym(library_.get(), entry.name));
      if (entry.call == nullptr && missing == nullptr) missing = entry.name;
    };
    (one(entries), ...);
    return missing;
  }

  LibraryHandle library_;
  NvmlEntries entries_;
  const char* (*error_string_)(NvmlStatus) = nullptr;
  bool is_open_ = false;
};

/// Null: this machine has no driver.
Result<std::unique_ptr<Nvml>> open_nvml() {
  const char* named = std::getenv("TROUPE_NVML");
  if (named != nullptr && *named == '\0') named = nullptr;
  LibraryHandle library(::dlopen(named == nullptr ? kLibrary : named, RTLD_NOW | RTLD_LOCAL));
  if (!library && named == nullptr) return std::unique_ptr<Nvml>();
  if (!library) {
    const char* why = ::dlerror();
    return Error{Errc::failed_precondition, fmt::format("TROUPE_NVML={}: {}; name NVIDIA's {}, or unset it", named,
                                                        why == nullptr ? "cannot be loaded" : why, kLibrary)};
  }
  auto nvml = std::make_unique<Nvml>(std::move(library));
  TROUPE_TRY(nvml->open());
  return nvml;
}

/// Whether a word of the driver's name says nothing that tells models apart.
bool is_idle_word(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const std::string_view idle : {"NVIDIA", "GEFORCE", "TESLA", "GENERATION", "GPU", "PCIE"}) {
    if (word == idle) return true;
  }
  const std::size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  const std::string_view unit = std::string_view(word).substr(digits);
  return word.starts_with("SXM") || word.starts_with("HBM") || (digits > 0 && (unit == "GB" || unit == "G"));
}

/// "NVIDIA A100-SXM4-80GB" is A100, "NVIDIA GeForce RTX 4090" is RTX 4090.
std::string short_model(const std::string& name) {
  std::string model;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find_first_of(" -", at), name.size());
    const std::string word = name.substr(at, end - at);
    // what stood before a word stays before it: "Max-Q"
    if (!word.empty() && !is_idle_word(word)) model += (model.empty() ? "" : std::string(1, name[at - 1])) + word;
    at = end + 1;
  }
  return model.empty() ? name : model;
}

/// A device with what tells it from others.
struct Found {
  NvmlHandle handle = nullptr;
  NvmlPciInfo pci = {};
  std::string uuid;
};

Result<std::string> text_of(const Nvml& nvml, NvmlHandle handle, const NvmlEntry<NvmlHandle, char*, unsigned>& entry) {
  char text[kNvmlTextBytes] = {};
  TROUPE_TRY(nvml.call(entry, handle, text, kNvmlTextBytes - 1));
  return std::string(text);
}

/// All that this user may open, by PCI bus id: the order in which NVML counts may change when the machine starts.
Result<std::vector<Found>> find_devices(const Nvml& nvml) {
  const NvmlEntries& e = nvml.entries();
  unsigned count = 0;
  TROUPE_TRY(nvml.call(e.count, &count));
  std::vector<Found> found;
  for (unsigned i = 0; i < count; ++i) {
    Found device;
    const NvmlStatus status = e.by_index.call(i, &device.handle);
    if (status == kNvmlNoPermission) continue;
    if (status != kNvmlSuccess) return nvml.error(e.by_index.name, status).with(fmt::format("NVIDIA device {}", i));
    TROUPE_TRY(nvml.call(e.pci_info, device.handle, &device.pci));
    TROUPE_ASSIGN(device.uuid, text_of(nvml, device.handle, e.uuid));
    found.push_back(std::move(device));
  }
  const auto place = [](const Found& device) {
    return std::tuple(device.pci.domain, device.pci.bus, device.pci.device);
  };
  std::sort(found.begin(), found.end(), [&](const Found& a, const Found& b) { return place(a) < place(b); });
  return found;
}

Result<std::int64_t> memory_of(const Nvml& nvml, NvmlHandle handle) {
  NvmlMemory2 with_reserve = {};
  with_reserve.version = kNvmlMemory2Version;
  if (Nvml::ask(nvml.entries().memory2, handle, &with_reserve))
    return static_cast<std::int64_t>(with_reserve.total - std::min(with_reserve.reserved, with_reserve.total));
  NvmlMemory memory = {};
  TROUPE_TRY(nvml.call(nvml.entries().memory, handle, &memory));
  return static_cast<std::int64_t>(memory.total);
}

Result<NvmlDevice> describe(const Nvml& nvml, const Found& found) {
  unsigned mig = 0, mig_later = 0;
  if (Nvml::ask(nvml.entries().mig_mode, found.handle, &mig, &mig_later) && mig != 0) {
    return Error{
        Errc::failed_precondition,
        fmt::format("the NVIDIA device {} is divided into parts (MIG), and whole devices are wanted; turn that "
                    "off (nvidia-smi -mig 0), or name other devices in CUDA_VISIBLE_DEVICES",
                    found.uuid)};
  }
  NvmlDevice device;
  TROUPE_ASSIGN(const std::string name, text_of(nvml, found.handle, nvml.entries().name));
  device.model = short_model(name);
  TROUPE_ASSIGN(device.memory_bytes, memory_of(nvml, found.handle));
  TROUPE_TRY(nvml.call(nvml.entries().capability, found.handle, &device.major, &device.minor));
  return device;
}

/// Where the links of a device that are up lead: to devices of the list, by index, or to switches.
struct Links {
  std::vector<int> to_devices;
  int to_switches = 0;
};

Links links_of(const Nvml& nvml, NvmlHandle handle, const std::vector<Found>& all) {
  const NvmlEntries& e = nvml.entries();
  Links links{.to_devices = std::vector<int>(all.size())};
  for (unsigned link = 0; link < kNvmlMaxLinks; ++link) {
    int is_up = 0;
    NvmlPciInfo remote = {};
    if (!Nvml::ask(e.link_state, handle, link, &is_up) || is_up == 0) continue;
    if (!Nvml::ask(e.link_remote, handle, link, &remote)) continue;
    const auto at = std::find_if(all.begin(), all.end(), [&](const Found& device) {
      return device.pci.domain == remote.domain && device.pci.bus == remote.bus && device.pci.device == remote.device;
    });
    ++(at == all.end() ? links.to_switches : links.to_devices[static_cast<std::size_t>(at - all.begin())]);
  }
  return links;
}

/// `visible`: indexes of those in `all` that facts have.
std::vector<NvLinkPair> find_nvlinks(const Nvml& nvml, const std::vector<Found>& all,
                                     const std::vector<std::size_t>& visible) {
  std::vector<NvLinkPair> pairs;
  if (visible.size() < 2) return pairs;
  std::vector<Links> links;
  for (const std::size_t index : visible) links.push_back(links_of(nvml, all[index].handle, all));
  for (std::size_t a = 0; a < visible.size(); ++a) {
    for (std::size_t b = a + 1; b < visible.size(); ++b) {
      int status = -1;
      const NvmlHandle one = all[visible[a]].handle, other = all[visible[b]].handle;
      if (!Nvml::ask(nvml.entries().p2p_status, one, other, kNvmlP2pNvLink, &status) || status != kNvmlP2pOk) continue;
      const int direct = links[a].to_devices[visible[b]];
      const int count = direct > 0 ? direct : std::min(links[a].to_switches, links[b].to_switches);
      if (count > 0) pairs.push_back({.first = a, .second = b, .links = count});
    }
  }
  return pairs;
}

}  // namespace

Result<NvmlFacts> read_nvml() {
  TROUPE_ASSIGN(const auto nvml, open_nvml());
  NvmlFacts facts;
  if (!nvml) return facts;
  char driver[kNvmlTextBytes] = {};
  TROUPE_TRY(nvml->call(nvml->entries().driver_version, driver, kNvmlTextBytes - 1));
  facts.driver = driver;
  int cuda = 0;
  TROUPE_TRY(nvml->call(nvml->entries().cuda_version, &cuda));
  facts.cuda = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);

  TROUPE_ASSIGN(const std::vector<Found> all, find_devices(*nvml));
  std::vector<std::string> uuids;
  std::vector<std::size_t> visible;
  for (std::size_t i = 0; i < all.size(); ++i) {
    uuids.push_back(all[i].uuid);
    visible.push_back(i);
  }
  if (const char* list = std::getenv("CUDA_VISIBLE_DEVICES"); list != nullptr) {
    TROUPE_ASSIGN(visible, visible_devices(list, uuids));
  }
  for (const std::size_t index : visible) {
    TROUPE_ASSIGN(NvmlDevice device, describe(*nvml, all[index]));
    facts.devices.push_back(std::move(device));
  }
  facts.nvlinks = find_nvlinks(*nvml, all, visible);
  return facts;
}

}  // namespace troupe::device
