#include "tests/device/standin/runtime.h"

#include <cxxabi.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <utility>

#include "base/check.h"
#include "tests/device/standin/fat_binary.h"

namespace troupe::device::standin {
namespace {

/// "modulated_norm_forward<float>" of a mangled name: without namespaces and arguments.
std::string short_name(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  if (status != 0) return mangled;
  std::string name = text.get();
  // arguments begin at the first parenthesis that is not "(anonymous namespace)"
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (auto at = name.find(kAnonymous); at != std::string::npos; at = name.find(kAnonymous))
    name.erase(at, kAnonymous.size());
  name = name.substr(0, name.find('('));
  const auto templates = name.find('<');
  auto from = name.rfind("::", templates);
  name = from == std::string::npos ? name : name.substr(from + 2);
  from = name.find(' ');
  return from != std::string::npos && from < name.find('<') ? name.substr(from + 1) : name;
}

}  // namespace

Runtime& Runtime::get() {
  // never destroyed: kernels are registered before main and entries are called until the last destructor
  static auto* runtime = new Runtime;
  return *runtime;
}

void Runtime::reset(const Options& options) {
  options_ = options;
  report_ = {};
  random_ = base::CounterRng(options.seed, 0x7374616e64, 0);
  for (auto& binary : binaries_) binary.programs.clear();
  devices_.clear();
  for (int i = 0; i < options.devices; ++i) devices_.push_back({std::make_unique<ptx::DeviceMemory>(), 0});
  streams_.clear();
  streams_made_ = 0;
  host_ = {};
  log_ = {};
  for (const auto& [begin, bytes] : pinned_) {
    for (auto& device : devices_)
      device.memory->map_host({reinterpret_cast<std::byte*>(begin), static_cast<std::size_t>(bytes)}).value();
  }
}

void Runtime::find(std::string sentence) {
  auto& findings = report_.findings;
  if (std::find(findings.begin(), findings.end(), sentence) != findings.end()) return;
  if (!options_.findings_file.empty()) std::ofstream(options_.findings_file, std::ios::app) << sentence << std::endl;
  findings.push_back(std::move(sentence));
}

std::size_t Runtime::add_binary(const void* wrapper) {
  binaries_.push_back({wrapper, {}, {}});
  return binaries_.size() - 1;
}

void Runtime::add_kernel(const void* entry, std::size_t binary, std::string mangled) {
  auto name = short_name(mangled);
  kernels_[entry] = {binary, std::move(mangled), std::move(name)};
}

KernelEntry* Runtime::kernel(const void* entry) {
  const auto found = kernels_.find(entry);
  return found == kernels_.end() ? nullptr : &found->second;
}

const ptx::Program* Runtime::program(std::size_t binary, int device) {
  auto& from = binaries_[binary];
  auto& program = from.programs[device];
  if (program) return program.get();
  if (from.ptx.empty()) {
    auto text = ptx_of(from.wrapper);
    if (!text) return find(text.error().message()), nullptr;
    from.ptx = *std::move(text);
  }
  auto text = from.ptx;
  if (options_.mutant) {
    if (auto planted = plant(text, *options_.mutant)) report_.mutant = *std::move(planted);
  }
  auto module = ptx::Module::parse(std::move(text));
  if (!module) return find(module.error().message()), nullptr;
  auto loaded = ptx::Program::load(*std::move(module), memory(device));
  if (!loaded) return find(loaded.error().message()), nullptr;
  program = std::make_unique<ptx::Program>(*std::move(loaded));
  return program.get();
}

std::optional<std::uint64_t> Runtime::allocate(int device, std::uint64_t bytes) {
  auto& one = devices_[static_cast<std::size_t>(device)];
  if (bytes > options_.memory_bytes - one.used) return std::nullopt;
  auto address = one.memory->allocate(bytes);
  if (!address) return std::nullopt;
  one.used += bytes;
  return *address;
}

cudaError_t Runtime::free(std::uint64_t address) {
  for (auto& device : devices_) {
    const auto* allocation = device.memory->find(address);
    if (allocation == nullptr || allocation->is_host || allocation->address != address) continue;
    const auto bytes = allocation->size;
    if (!device.memory->free(address)) return cudaErrorInvalidValue;
    device.used -= bytes;
    forget(address, bytes);
    return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

bool Runtime::map_host(void* begin, std::uint64_t bytes) {
  for (auto& device : devices_) {
    if (!device.memory->map_host({static_cast<std::byte*>(begin), static_cast<std::size_t>(bytes)})) return false;
  }
  pinned_[reinterpret_cast<std::uint64_t>(begin)] = bytes;
  return true;
}

bool Runtime::unmap_host(void* begin) {
  const auto found = pinned_.find(reinterpret_cast<std::uint64_t>(begin));
  if (found == pinned_.end()) return false;
  for (auto& device : devices_) device.memory->unmap_host(begin).value();
  forget(found->first, found->second);
  pinned_.erase(found);
  return true;
}

std::optional<Place> Runtime::place(std::uint64_t address, std::uint64_t bytes) {
  for (auto& device : devices_) {
    auto* allocation = device.memory->find(address);
    if (allocation == nullptr || allocation->is_host) continue;
    if (allocation->is_freed || !allocation->contains(address, bytes)) return std::nullopt;
    return Place{allocation->bytes + (address - allocation->address), allocation, false};
  }
  auto after = pinned_.upper_bound(address);
  const bool is_pinned =
      after != pinned_.begin() && address - std::prev(after)->first + bytes <= std::prev(after)->second;
  return Place{reinterpret_cast<std::byte*>(address), nullptr, is_pinned};
}

Stream* Runtime::make_stream(int device) {
  streams_.push_back(std::make_unique<Stream>(Stream{.number = ++streams_made_, .device = device}));
  return streams_.back().get();
}

Stream* Runtime::stream(cudaStream_t handle) {
  const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const auto& stream) {
    return reinterpret_cast<cudaStream_t>(stream.get()) == handle;
  });
  return found == streams_.end() ? nullptr : found->get();
}

void Runtime::destroy(Stream* stream) {
  std::erase_if(streams_, [&](const auto& one) { return one.get() == stream; });
}

void Runtime::enqueue(Stream& stream, Item item) {
  if (stream.capture != nullptr) {
    auto& capture = *stream.capture;
    auto& list = capture.graph.lists[stream.list];
    auto& clock = capture.clocks[stream.list];
    if (item.awaits) clock.join(item.awaits->clock);
    list.push_back(std::move(item));
    clock.see({static_cast<std::uint32_t>(stream.list), static_cast<std::uint32_t>(list.size())});
    if (list.back().records) list.back().records->clock = clock;
    return;
  }
  item.after = host_;
  stream.items.push_back(std::move(item));
  tell_waiters();
  // a device may be anywhere between idle and done
  for (auto n = random_.below(3); n > 0 && try_run_one(); --n) {
  }
}

bool Runtime::run_first(Stream& stream) {
  auto& item = stream.items.front();
  if (item.awaits && !item.awaits->is_done) return false;
  if (item.is_ready && !item.is_ready()) {
    waits_outside_ = true;
    return false;
  }
  stream.clock.join(item.after);
  if (item.awaits) stream.clock.join(item.awaits->clock);
  if (item.run) {
    std::vector<Access> accesses;
    item.run(accesses);
    const Stamp stamp{stream.number, ++stream.ended};
    stream.clock.see(stamp);
    const auto operation = std::make_shared<const AccessLog::Operation>(AccessLog::Operation{stamp, item.name});
    for (const auto& access : accesses) {
      const auto hazard = log_.touch(access, operation, stream.clock);
      if (!hazard) continue;
      find(fmt::format("hazard: {} of stream {} {} and {} of stream {} {} {} bytes at {:#x}, and no wait orders them",
                       hazard->earlier->name, hazard->earlier->stamp.stream,
                       hazard->earlier_writes ? "writes" : "reads", item.name, stream.number,
                       access.writes ? "writes" : "reads", hazard->end - hazard->begin, hazard->begin));
    }
  }
  if (item.records) {
    item.records->is_done = true;
    item.records->clock = stream.clock;
  }
  stream.items.pop_front();
  return true;
}

bool Runtime::try_run_one() {
  waits_outside_ = false;
  std::vector<Stream*> busy;
  for (const auto& stream : streams_) {
    if (!stream->items.empty()) busy.push_back(stream.get());
  }
  while (!busy.empty()) {
    const auto chosen = random_.below(static_cast<std::uint32_t>(busy.size()));
    if (run_first(*busy[chosen])) return true;
    busy.erase(busy.begin() + chosen);
  }
  return false;
}

void Runtime::run_one(const char* call) {
  if (try_run_one()) return;
  TROUPE_CHECK(waits_outside_, fmt::format("{} would wait forever: no stream can go on", call));
  outside_.wait_for(mutex_, std::chrono::microseconds(200));
}

void Runtime::finish_device(int device, const char* call) {
  const auto is_there = [&](const auto& stream) { return stream->device == device; };
  run_until(call, [&] {
    return std::all_of(streams_.begin(), streams_.end(),
                       [&](const auto& stream) { return !is_there(stream) || stream->items.empty(); });
  });
  for (const auto& stream : streams_) {
    if (is_there(stream)) host_sees(stream->clock);
  }
}

void Runtime::synchronise(Stream& stream, const char* call) {
  ++report_.synchronising[call];
  run_until(call, [&] { return stream.items.empty(); });
  host_sees(stream.clock);
}

bool Runtime::breaks_capture() {
  bool breaks = false;
  for (const auto& stream : streams_) {
    if (stream->capture == nullptr || stream->capture->thread != std::this_thread::get_id()) continue;
    stream->capture->is_broken = true;
    breaks = true;
  }
  return breaks;
}

void Runtime::launch(const Graph& graph, Stream& stream) {
  ++report_.graph_launches;
  std::erase_if(streams_, [](const auto& one) { return one->is_of_graph && one->items.empty(); });
  std::map<const Point*, PointPtr> points;
  const auto fresh = [&](const PointPtr& point) {
    auto& copy = points[point.get()];
    if (!copy) copy = std::make_shared<Point>();
    return copy;
  };
  const auto begin = std::make_shared<Point>();
  enqueue(stream, {.name = "begin of a graph", .records = begin});
  std::vector<PointPtr> ends;
  for (const auto& list : graph.lists) {
    Stream* own = make_stream(stream.device);
    own->is_of_graph = true;
    own->items.push_back({.awaits = begin, .after = host_});
    for (const auto& item : list) {
      Item copy = item;
      if (copy.records) copy.records = fresh(item.records);
      if (copy.awaits) copy.awaits = fresh(item.awaits);
      copy.after = host_;
      own->items.push_back(std::move(copy));
    }
    ends.push_back(std::make_shared<Point>());
    own->items.push_back({.records = ends.back(), .after = host_});
  }
  for (const auto& end : ends) enqueue(stream, {.name = "end of a graph", .awaits = end});
}

void reset(const Options& options) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  runtime.reset(options);
}

Report report() {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  runtime.run_until("report", [&] {
    return std::all_of(runtime.streams().begin(), runtime.streams().end(),
                       [](const auto& stream) { return stream->items.empty(); });
  });
  return runtime.report();
}

bool counts() { return true; }

}  // namespace troupe::device::standin
