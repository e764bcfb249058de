#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/device/ptx/launch.h"

namespace troupe::device::ptx {

/// For tests: a device with one program, values in and out of its memory, and launches with arguments as in C.
class Session {
 public:
  /// Takes PTX text; a failure to load it fails the test.
  explicit Session(std::string text) {
    auto module = Module::parse(std::move(text));
    if (!module) throw std::runtime_error(module.error().to_string());
    auto program = Program::load(std::move(*module), memory_);
    if (!program) throw std::runtime_error(program.error().to_string());
    program_.emplace(std::move(*program));
  }

  static std::string read(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  DeviceMemory& memory() { return memory_; }
  const Program& program() const { return *program_; }
  const Kernel& kernel(std::string_view name) const {
    const Kernel* found = program_->find(name);
    if (found == nullptr) throw std::runtime_error("no kernel " + std::string(name));
    return *found;
  }
  /// The kernel whose mangled name has this part.
  const Kernel& kernel_with(std::string_view part) const {
    for (const Kernel& kernel : program_->kernels()) {
      if (kernel.name.find(part) != std::string::npos) return kernel;
    }
    throw std::runtime_error("no kernel with " + std::string(part));
  }

  /// Address of `count` values that were never written.
  template <class T>
  T* allocate(std::size_t count) {
    return reinterpret_cast<T*>(memory_.allocate(count * sizeof(T)).value());
  }
  template <class T>
  T* upload(const std::vector<T>& values) {
    T* to = allocate<T>(values.size());
    write(to, values);
    return to;
  }
  template <class T>
  void write(T* to, const std::vector<T>& values) {
    memory_.copy_in(reinterpret_cast<std::uint64_t>(to), std::as_bytes(std::span(values))).value();
  }
  template <class T>
  std::vector<T> download(const T* from, std::size_t count) {
    std::vector<T> values(count);
    memory_.copy_out(reinterpret_cast<std::uint64_t>(from), std::as_writable_bytes(std::span(values))).value();
    return values;
  }

  /// Arguments must have the sizes of the kernel's parameters.
  template <class... Arguments>
  LaunchResult run(const Kernel& kernel, const LaunchShape& shape, const LaunchOptions& options,
                   const Arguments&... arguments) {
    const void* pointers[] = {&arguments..., nullptr};
    const std::size_t sizes[] = {sizeof arguments..., 0};
    EXPECT_EQ(kernel.parameters.size(), sizeof...(arguments));
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) EXPECT_EQ(kernel.parameters[i].size, sizes[i]);
    return launch(*program_, kernel, shape, pack_parameters(kernel, pointers), options).value();
  }
  template <class... Arguments>
  LaunchResult run(std::string_view name, const LaunchShape& shape, const LaunchOptions& options,
                   const Arguments&... arguments) {
    return run(kernel(name), shape, options, arguments...);
  }

 private:
  DeviceMemory memory_;
  std::optional<Program> program_;
};

}  // namespace troupe::device::ptx
