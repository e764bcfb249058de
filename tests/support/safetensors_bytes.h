#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/visible.h"

namespace troupe::testing {

/// Tensors of a safetensors file as plain bytes, for tests that do without ATen. Throws std::runtime_error on a
/// malformed file.
class SafetensorsBytes {
 public:
  struct Tensor {
    std::string dtype;  ///< "U8", "F32", ...
    std::vector<std::int64_t> shape;
    std::span<const std::byte> bytes;  ///< valid as long as the file object

    template <class T>
    std::vector<T> as() const {
      std::vector<T> values(bytes.size() / sizeof(T));
      std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
      return values;
    }
  };

  explicit SafetensorsBytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(in)), {});
    std::uint64_t header_bytes = 0;
    if (all.size() < 8) throw std::runtime_error(path + ": too short");
    std::memcpy(&header_bytes, all.data(), 8);
    if (header_bytes > all.size() - 8) throw std::runtime_error(path + ": header longer than the file");
    const auto header = nlohmann::json::parse(all.substr(8, header_bytes));
    data_.resize(all.size() - 8 - header_bytes);
    std::memcpy(data_.data(), all.data() + 8 + header_bytes, data_.size());
    for (const auto& [name, facts] : header.items()) {
      if (name == "__metadata__") continue;
      const std::size_t begin = facts["data_offsets"][0], end = facts["data_offsets"][1];
      if (begin > end || end > data_.size()) throw std::runtime_error(path + ": " + name + " lies outside the file");
      tensors_[name] = {facts["dtype"], facts["shape"], std::span(data_).subspan(begin, end - begin)};
    }
  }

  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  bool contains(const std::string& name) const { return tensors_.count(name) != 0; }
  const Tensor& at(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw std::runtime_error("no tensor " + name);
    return found->second;
  }

 private:
  std::vector<std::byte> data_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace troupe::testing
