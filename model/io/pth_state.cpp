#include "model/io/pth_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "configs/format_error.h"

namespace troupe::model {
namespace {

constexpr std::array<const char*, 5> kWrappers = {"state_dict", "model_state_dict", "model", "module", "params"};

class StateDict {
 public:
  explicit StateDict(const PickleTree& tree) : tree_(tree) {}

  std::vector<StoredTensor> tensors() {
    PickleRef root = tree_.root;
    if (node(root).kind != PickleKind::dict) fail(root, "the file does not hold a dict of tensors");
    for (int depth = 0; depth < kMaxStateDepth; ++depth) {
      const auto inner = only_wrapper(root);
      if (!inner) break;
      root = *inner;
    }
    visit(root, "", 0);
    if (found_.empty()) fail(root, "the file holds no tensor");
    std::vector<StoredTensor> out;
    for (auto& [name, tensor] : found_) out.push_back(std::move(tensor));
    return out;
  }

 private:
  const PickleNode& node(PickleRef ref) const { return tree_.nodes[ref]; }
  [[noreturn]] void fail(PickleRef ref, const std::string& message) const {
    throw FormatError(node(ref).offset, message);
  }

  std::optional<PickleRef> only_wrapper(PickleRef dict) const {
    std::optional<PickleRef> inner;
    const auto& items = node(dict).items;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const PickleNode& key = node(items[i]);
      const PickleNode& value = node(items[i + 1]);
      if (value.kind == PickleKind::tensor) return std::nullopt;
      const bool wraps = key.kind == PickleKind::text && value.kind == PickleKind::dict && !value.items.empty() &&
                         std::find(kWrappers.begin(), kWrappers.end(), key.text) != kWrappers.end();
      if (!wraps) continue;
      if (inner) return std::nullopt;
      inner = items[i + 1];
    }
    return inner;
  }

  std::string key_text(PickleRef ref) const {
    const PickleNode& key = node(ref);
    if (key.kind == PickleKind::text && key.text.size() <= kMaxTensorName) return key.text;
    if (key.kind == PickleKind::integer) return std::to_string(key.integer);
    fail(ref, fmt::format("a key of a dict is neither a number nor text of at most {} bytes", kMaxTensorName));
  }

  void visit(PickleRef ref, const std::string& name, int depth) {
    if (++visited_ > kMaxStateEntries) fail(ref, fmt::format("more than {} entries", kMaxStateEntries));
    const PickleNode& value = node(ref);
    if (value.kind == PickleKind::tensor) return add(ref, name);
    const bool sequence = value.kind == PickleKind::list || value.kind == PickleKind::tuple;
    if (!sequence && value.kind != PickleKind::dict) return;
    if (depth >= kMaxStateDepth) fail(ref, fmt::format("containers nested more than {} deep", kMaxStateDepth));
    if (name.size() > kMaxTensorName) fail(ref, fmt::format("a name of more than {} bytes", kMaxTensorName));
    const std::string before = name.empty() ? "" : name + ".";
    for (std::size_t i = 0; i < value.items.size(); i += sequence ? 1 : 2) {
      if (sequence) {
        visit(value.items[i], before + std::to_string(i), depth + 1);
      } else {
        visit(value.items[i + 1], before + key_text(value.items[i]), depth + 1);
      }
    }
  }

  std::vector<std::int64_t> counts(PickleRef tuple, const std::string& name, const char* what) const {
    std::vector<std::int64_t> out;
    constexpr std::size_t kMostDims = 64;
    if (node(tuple).items.size() > kMostDims) {
      fail(tuple, fmt::format("tensor '{}' has more than {} dimensions", name, kMostDims));
    }
    for (const PickleRef item : node(tuple).items) {
      if (node(item).kind != PickleKind::integer || node(item).integer < 0) {
        fail(tuple, fmt::format("tensor '{}' has a {} that is not a count", name, what));
      }
      out.push_back(node(item).integer);
    }
    return out;
  }

  void add(PickleRef ref, const std::string& name) {
    const PickleNode& value = node(ref);
    const PickleNode& storage = node(value.items[0]);
    StoredTensor tensor{.name = name,
                        .dtype = storage.dtype,
                        .shape = counts(value.items[1], name, "size"),
                        .strides = counts(value.items[2], name, "stride"),
                        .first = value.integer,
                        .storage = storage.text,
                        .storage_numel = storage.integer,
                        .offset = value.offset};
    check_extent(ref, tensor);
    if (!found_.emplace(name, std::move(tensor)).second) {
      fail(ref, fmt::format("tensor '{}' appears twice", name));
    }
  }

  void check_extent(PickleRef ref, StoredTensor& tensor) const {
    const auto bad = [&](const std::string& why) { fail(ref, fmt::format("tensor '{}' {}", tensor.name, why)); };
    if (tensor.shape.size() != tensor.strides.size()) {
      bad(fmt::format("has {} sizes and {} strides", tensor.shape.size(), tensor.strides.size()));
    }
    if (tensor.first < 0 || tensor.storage_numel < 0 || tensor.first > tensor.storage_numel) {
      bad(fmt::format("begins at element {} of a storage of {}", tensor.first, tensor.storage_numel));
    }
    std::int64_t last = tensor.first;
    bool overflow = false;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      std::int64_t reach = 0;
      overflow |= __builtin_mul_overflow(std::max<std::int64_t>(tensor.shape[i] - 1, 0), tensor.strides[i], &reach) ||
                  __builtin_add_overflow(last, reach, &last) ||
                  __builtin_mul_overflow(tensor.numel, tensor.shape[i], &tensor.numel);
    }
    if (overflow) bad("has sizes and strides that overflow 64 bits");
    if (tensor.numel > 0 && last >= tensor.storage_numel) {
      bad(fmt::format("reaches element {} of a storage of {}", last, tensor.storage_numel));
    }
    if (tensor.numel > tensor.storage_numel) {
      bad(fmt::format("has {} elements over a storage of {}: an expanded view; save it contiguous()", tensor.numel,
                      tensor.storage_numel));
    }
    tensor.contiguous = is_contiguous(tensor);
  }

  static bool is_contiguous(const StoredTensor& tensor) {
    if (tensor.numel == 0) return true;
    std::int64_t expected = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
      if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
      expected *= tensor.shape[i];
    }
    return true;
  }

  const PickleTree& tree_;
  std::int64_t visited_ = 0;
  std::map<std::string, StoredTensor> found_;
};

}  // namespace

std::vector<StoredTensor> state_tensors(const PickleTree& tree) { return StateDict(tree).tensors(); }

}  // namespace troupe::model
