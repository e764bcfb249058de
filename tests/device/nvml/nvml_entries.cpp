// Stand-in for NVIDIA's NVML: a driver with the devices that TROUPE_STANDIN_DEVICES names in the order of their PCI bus
// ids, such as "H200,H200" or "A100:40" (GiB). It counts them from the end, as a driver may. H200, B200 and A100 reach
// each other through switches, A6000 by bridges between two and two. TROUPE_STANDIN_NVML_FAILS=1: nvmlInit fails.
#include "device/nvml_entries.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::device {
namespace {

constexpr unsigned long long kMebibyte = 1ULL << 20;

struct Model {
  std::string_view name, driver_name;
  unsigned long long memory_mib, reserved_mib;
  int major, minor;
  int links = 0;
  bool has_switches = true;
};
// Memory and its reserved part of H200 as drivers report them; of others, about.
constexpr std::array kModels = {
    Model{"H200", "NVIDIA H200", 143'771, 616, 9, 0, 18},
    Model{"H100", "NVIDIA H100 80GB HBM3", 81'559, 551, 9, 0, 18},
    Model{"B200", "NVIDIA B200", 183'359, 700, 10, 0, 18},
    Model{"A100", "NVIDIA A100-SXM4-80GB", 81'920, 600, 8, 0, 12},
    Model{"A6000", "NVIDIA RTX A6000", 49'140, 500, 8, 6, 4, false},
    Model{"RTX4090", "NVIDIA GeForce RTX 4090", 24'564, 450, 8, 9},
    Model{"RTX6000Ada", "NVIDIA RTX 6000 Ada Generation", 49'140, 500, 8, 9},
    Model{"L40S", "NVIDIA L40S", 46'068, 500, 8, 9},
    Model{"V100", "Tesla V100-SXM2-32GB", 32'768, 300, 7, 0, 6},
};

struct Standin {
  Model model;
  std::string driver_name;
  unsigned number = 0;  // by PCI bus id
};

std::vector<Standin>& devices() {
  static std::vector<Standin> all;
  return all;
}

Standin make(const std::string& entry, unsigned number) {
  const std::size_t colon = entry.find(':');
  const std::string name = entry.substr(0, colon);
  Standin made{.model = {name, "", 0, 0, 9, 0}, .driver_name = "NVIDIA " + name, .number = number};
  for (const Model& model : kModels) {
    if (model.name == name) made = {.model = model, .driver_name = std::string(model.driver_name), .number = number};
  }
  if (colon != std::string::npos) {
    made.model.memory_mib = std::strtoull(entry.c_str() + colon + 1, nullptr, 10) * 1024;
    made.model.reserved_mib = 0;
  }
  return made;
}

// A handle is never null, and no address.
NvmlHandle to_handle(unsigned number) { return reinterpret_cast<NvmlHandle>(std::uintptr_t{number} + 1); }
unsigned number_of(NvmlHandle handle) { return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(handle) - 1); }
const Standin& device_of(NvmlHandle handle) { return devices().at(number_of(handle)); }

NvmlStatus put(const std::string& text, char* to, unsigned length) {
  if (text.size() + 1 > length) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kNvmlSuccess;
}

NvmlPciInfo place_of(unsigned bus) {
  NvmlPciInfo pci = {};
  pci.bus = bus;
  std::snprintf(pci.bus_id, sizeof pci.bus_id, "00000000:%02X:00.0", bus);
  return pci;
}
constexpr unsigned kFirstBus = 0x1b, kSwitchBus = 0x05;

/// The device at the other end of a bridge, which joins equal models.
std::optional<unsigned> partner_of(unsigned number) {
  const unsigned partner = number ^ 1U;
  const bool has_one = partner < devices().size() && devices()[partner].driver_name == devices()[number].driver_name;
  return has_one ? std::optional(partner) : std::nullopt;
}

}  // namespace

extern "C" {

NvmlStatus nvmlInit_v2() {
  const char* fails = std::getenv("TROUPE_STANDIN_NVML_FAILS");
  if (fails != nullptr && std::string_view(fails) == "1") return kNvmlDriverNotLoaded;
  devices().clear();
  const char* named = std::getenv("TROUPE_STANDIN_DEVICES");
  std::istringstream in(named == nullptr ? "" : named);
  for (std::string entry; std::getline(in, entry, ',');)
    devices().push_back(make(entry, static_cast<unsigned>(devices().size())));
  return kNvmlSuccess;
}
NvmlStatus nvmlShutdown() { return kNvmlSuccess; }
const char* nvmlErrorString(NvmlStatus status) {
  return status == kNvmlSuccess           ? "Success"
         : status == kNvmlNotSupported    ? "Not Supported"
         : status == kNvmlDriverNotLoaded ? "Driver Not Loaded"
                                          : "Unknown Error";
}
NvmlStatus nvmlSystemGetDriverVersion(char* text, unsigned length) { return put("580.65.06", text, length); }
NvmlStatus nvmlSystemGetCudaDriverVersion_v2(int* version) { return *version = 13'000, kNvmlSuccess; }
NvmlStatus nvmlDeviceGetCount_v2(unsigned* count) {
  return *count = static_cast<unsigned>(devices().size()), kNvmlSuccess;
}
NvmlStatus nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlHandle* handle) {
  if (index >= devices().size()) return 2;  // NVML_ERROR_INVALID_ARGUMENT
  return *handle = to_handle(static_cast<unsigned>(devices().size()) - 1 - index), kNvmlSuccess;
}
NvmlStatus nvmlDeviceGetPciInfo_v3(NvmlHandle handle, NvmlPciInfo* pci) {
  return *pci = place_of(kFirstBus + number_of(handle)), kNvmlSuccess;
}
NvmlStatus nvmlDeviceGetUUID(NvmlHandle handle, char* text, unsigned length) {
  char uuid[64] = {};
  std::snprintf(uuid, sizeof uuid, "GPU-%x0000000-0000-0000-0000-000000000000", number_of(handle));
  return put(uuid, text, length);
}
NvmlStatus nvmlDeviceGetName(NvmlHandle handle, char* text, unsigned length) {
  return put(device_of(handle).driver_name, text, length);
}
NvmlStatus nvmlDeviceGetCudaComputeCapability(NvmlHandle handle, int* major, int* minor) {
  *major = device_of(handle).model.major;
  *minor = device_of(handle).model.minor;
  return kNvmlSuccess;
}
NvmlStatus nvmlDeviceGetMemoryInfo(NvmlHandle handle, NvmlMemory* memory) {
  memory->total = device_of(handle).model.memory_mib * kMebibyte;
  memory->used = device_of(handle).model.reserved_mib * kMebibyte;
  memory->free = memory->total - memory->used;
  return kNvmlSuccess;
}
NvmlStatus nvmlDeviceGetMemoryInfo_v2(NvmlHandle handle, NvmlMemory2* memory) {
  if (memory->version != 0x2000028) return 25;  // NVML_ERROR_ARGUMENT_VERSION_MISMATCH
  memory->total = device_of(handle).model.memory_mib * kMebibyte;
  memory->reserved = device_of(handle).model.reserved_mib * kMebibyte;
  memory->free = memory->total - memory->reserved;
  memory->used = 0;
  return kNvmlSuccess;
}
NvmlStatus nvmlDeviceGetMigMode(NvmlHandle handle, unsigned* now, unsigned* later) {
  *now = *later = device_of(handle).driver_name == "NVIDIA MIG" ? 1 : 0;
  return kNvmlSuccess;
}
NvmlStatus nvmlDeviceGetP2PStatus(NvmlHandle one, NvmlHandle other, int what, int* status) {
  const Model &a = device_of(one).model, &b = device_of(other).model;
  const bool are_joined =
      a.links > 0 && b.links > 0 && (a.has_switches ? b.has_switches : partner_of(number_of(one)) == number_of(other));
  *status = what == 2 && are_joined ? 0 : 5;  // NVML_P2P_STATUS_NOT_SUPPORTED
  return kNvmlSuccess;
}
NvmlStatus nvmlDeviceGetNvLinkState(NvmlHandle handle, unsigned link, int* is_up) {
  const Model& model = device_of(handle).model;
  if (model.links == 0) return kNvmlNotSupported;
  *is_up = static_cast<int>(link) < model.links && (model.has_switches || partner_of(number_of(handle))) ? 1 : 0;
  return kNvmlSuccess;
}
NvmlStatus nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlHandle handle, unsigned link, NvmlPciInfo* pci) {
  const Model& model = device_of(handle).model;
  if (static_cast<int>(link) >= model.links) return kNvmlNotSupported;
  *pci = place_of(model.has_switches ? kSwitchBus + link % 4 : kFirstBus + *partner_of(number_of(handle)));
  return kNvmlSuccess;
}

}  // extern "C"
}  // namespace troupe::device
