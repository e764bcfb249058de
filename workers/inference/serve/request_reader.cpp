#include "workers/inference/serve/request_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "comm/serve/numpy_dtype.h"
#include "workers/inference/serve/frame_buffer.h"

namespace troupe::workers {

namespace {

constexpr std::size_t kMaxListed = 12;
constexpr std::string_view kExterior = "exterior_image_", kLeft = "_left";

/// exterior_image_2_left -> exterior_image_1_left; nothing for a view that is not counted.
std::optional<std::string> counted_from_zero(const std::string& view) {
  if (!view.starts_with(kExterior) || !view.ends_with(kLeft) || view.size() <= kExterior.size() + kLeft.size())
    return std::nullopt;
  const std::string_view digits =
      std::string_view(view).substr(kExterior.size(), view.size() - kExterior.size() - kLeft.size());
  int number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failed != std::errc() || end != digits.data() + digits.size() || number < 1) return std::nullopt;
  return fmt::format("{}{}{}", kExterior, number - 1, kLeft);
}

/// The names under which a request may bring a view, the most usual first.
std::vector<std::string> view_keys(const std::string& view, ViewNames names) {
  if (names == ViewNames::dreamzero) {
    // its own short name would be another camera's: left out
    if (const auto shifted = counted_from_zero(view)) return {"observation/" + *shifted, "video." + view};
  }
  return {"observation/" + view, "video." + view, view};
}

std::vector<std::string> state_keys(const std::string& name) { return {"observation/" + name, "state." + name, name}; }

struct Entry {
  std::string key;
  const WireValue* value = nullptr;
};

Entry find_any(const WireMap& map, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (const WireValue* value = find(map, key)) return {key, value};
  }
  return {keys.front(), nullptr};
}

Error missing(std::string_view what, const std::vector<std::string>& keys, const WireMap& request) {
  std::string wanted;
  for (const std::string& key : keys) wanted += (wanted.empty() ? "" : " or ") + key;
  return invalid_argument(fmt::format("{} is missing: want {}; the request has {}", what, wanted, list_names(request)));
}

Result<void> read_images(const WireMap& request, const PolicyInfo& info, ViewNames names, Observation& observation) {
  for (const std::string& view : info.views) {
    const auto keys = view_keys(short_name(view), names);
    const Entry entry = find_any(request, keys);
    if (entry.value == nullptr) return missing(fmt::format("the image of {}", short_name(view)), keys, request);
    const auto* images = entry.value->as<NdArray>();
    if (images == nullptr)
      return invalid_argument(
          fmt::format("{} is {}; want an array u8 [H, W, 3] or [T, H, W, 3]", entry.key, describe(*entry.value)));
    if (const auto usable = FrameBuffer().check(*images); !usable) return usable.error().with(entry.key);
    observation.images[view] = *images;
  }
  return {};
}

/// All state vectors out of one, in the order of the policy.
Result<void> cut_state(const Entry& whole, const PolicyInfo& info, Observation& observation) {
  std::int64_t total = 0;
  for (const PolicyVector& vector : info.state) total += vector.width;
  TROUPE_ASSIGN(const NdArray all, read_vector(*whole.value, total, whole.key));
  const auto item = all.dtype == "<f4" ? sizeof(float) : sizeof(double);
  const auto* begin = all.data.data();
  for (const PolicyVector& vector : info.state) {
    const auto* end = begin + static_cast<std::size_t>(vector.width) * item;
    observation.state[vector.name] = NdArray{all.dtype, {vector.width}, {begin, end}};
    begin = end;
  }
  return {};
}

/// The vectors one by one or, when none came so, cut out of one `observation/state`.
Result<void> read_state(const WireMap& request, const PolicyInfo& info, Observation& observation) {
  for (const PolicyVector& vector : info.state) {
    const Entry entry = find_any(request, state_keys(short_name(vector.name)));
    if (entry.value == nullptr) continue;
    TROUPE_ASSIGN(observation.state[vector.name], read_vector(*entry.value, vector.width, entry.key));
  }
  const Entry whole = find_any(request, {"observation/state", "observation.state", "state"});
  if (observation.state.empty() && whole.value != nullptr) return cut_state(whole, info, observation);
  for (const PolicyVector& vector : info.state) {
    const std::string name = short_name(vector.name);
    if (!observation.state.contains(vector.name))
      return missing(fmt::format("the state {}", name), state_keys(name), request);
  }
  return {};
}

Result<std::string> read_prompt(const WireMap& request, const PolicyInfo& info) {
  if (const WireValue* prompt = find(request, "prompt")) return read_text(*prompt, "prompt");
  for (const WirePair& pair : request) {
    if (pair.name.starts_with("annotation.")) return read_text(pair.value, pair.name);
  }
  if (!info.takes_prompt) return std::string();
  return missing("the instruction", {"prompt", "annotation.*"}, request);
}

/// A number in a list, also as a NumPy scalar.
std::optional<double> number_of(const WireValue& item) {
  if (const auto* whole = item.as<std::int64_t>()) return static_cast<double>(*whole);
  if (const auto* real = item.as<double>()) return *real;
  if (const auto* array = item.as<NdArray>(); array && array->shape.empty()) {
    if (const auto values = to_doubles(*array)) return values->front();
  }
  return std::nullopt;
}

Result<std::vector<double>> numbers_of(const WireValue& value, std::int64_t width, std::string_view key) {
  const auto wrong = [&] {
    return invalid_argument(fmt::format("{} is {}; want {} numbers", key, describe(value), width));
  };
  if (const auto* array = value.as<NdArray>()) {
    const auto& shape = array->shape;
    const bool is_scalar = shape.empty() && width == 1;
    if (!is_scalar && (shape.empty() || shape.size() > 2 || shape.back() != width || array->numel() == 0))
      return wrong();
    auto numbers = to_doubles(*array);
    if (!numbers) return numbers.error().with(key);
    return std::vector<double>(numbers->end() - width, numbers->end());
  }
  std::vector<double> numbers;
  if (const auto* items = value.as<WireArray>()) {
    for (const WireValue& item : *items) {
      const auto one = number_of(item);
      if (!one) return wrong();
      numbers.push_back(*one);
    }
  } else if (const auto one = number_of(value)) {
    numbers.push_back(*one);
  }
  if (static_cast<std::int64_t>(numbers.size()) != width) return wrong();
  return numbers;
}

}  // namespace

std::string short_name(std::string_view name) {
  for (const std::string_view front : {"video.", "state.", "action.", "observation/", "observation."}) {
    if (name.starts_with(front)) return std::string(name.substr(front.size()));
  }
  return std::string(name);
}

std::string list_names(const WireMap& map) {
  std::string names;
  for (std::size_t i = 0; i < map.size() && i < kMaxListed; ++i) names += (i == 0 ? "" : ", ") + map[i].name;
  if (map.size() > kMaxListed) names += fmt::format(" and {} more", map.size() - kMaxListed);
  return names.empty() ? "nothing" : names;
}

Result<NdArray> read_vector(const WireValue& value, std::int64_t width, std::string_view key) {
  TROUPE_ASSIGN(const std::vector<double> numbers, numbers_of(value, width, key));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!std::isfinite(numbers[i]))
      return invalid_argument(fmt::format("{} holds {} at {}; want finite numbers", key, numbers[i], i));
  }
  const auto* array = value.as<NdArray>();
  if (array && array->dtype == "<f4") {
    const std::vector<float> single(numbers.begin(), numbers.end());
    const auto bytes = std::as_bytes(std::span(single));
    return NdArray{"<f4", {width}, {bytes.begin(), bytes.end()}};
  }
  const auto bytes = std::as_bytes(std::span(numbers));
  return NdArray{"<f8", {width}, {bytes.begin(), bytes.end()}};
}

Result<std::string> read_text(const WireValue& value, std::string_view key) {
  if (const auto* text = value.as<std::string>()) return *text;
  if (const auto* items = value.as<WireArray>(); items && items->size() == 1) return read_text(items->front(), key);
  if (const auto* array = value.as<NdArray>()) {
    if (auto texts = to_texts(*array); texts && texts->size() == 1) return texts->front();
  }
  return invalid_argument(fmt::format("{} is {}; want one text", key, describe(value)));
}

Result<Observation> read_observation(const WireMap& request, const PolicyInfo& info, ViewNames names) {
  Observation observation;
  TROUPE_TRY(read_images(request, info, names, observation));
  TROUPE_TRY(read_state(request, info, observation));
  TROUPE_ASSIGN(observation.prompt, read_prompt(request, info));
  return observation;
}

}  // namespace troupe::workers
