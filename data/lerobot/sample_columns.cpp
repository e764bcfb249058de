#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "data/lerobot/modality.h"

namespace troupe::data {

namespace {

template <class T>
std::string names_of(const std::vector<T>& items) {
  std::string out;
  for (const T& item : items) out += (out.empty() ? "" : ", ") + item.name;
  return out.empty() ? "none" : out;
}

template <class T>
const T* find_named(const std::vector<T>& items, std::string_view name) {
  const auto it = std::find_if(items.begin(), items.end(), [&](const T& item) { return item.name == name; });
  return it == items.end() ? nullptr : &*it;
}

template <class T>
void set_named(std::vector<T>& items, T item) {
  const auto it = std::find_if(items.begin(), items.end(), [&](const T& other) { return other.name == item.name; });
  if (it == items.end()) {
    items.push_back(std::move(item));
  } else {
    *it = std::move(item);
  }
}

std::string cameras_of(const LerobotInfo& info) {
  std::vector<NamedColumn> cameras;
  for (const LerobotFeature& f : info.features) {
    if (f.is_camera()) cameras.push_back({f.name, f.name});
  }
  return names_of(cameras);
}

std::string vectors_of(const LerobotInfo& info) {
  std::vector<NamedColumn> columns;
  for (const LerobotFeature& f : info.features) {
    if (f.is_numbers()) columns.push_back({f.name, f.name});
  }
  return names_of(columns);
}

/// One entry of data.embodiment.slices.
Result<void> add_slice(Modality& m, const LerobotInfo& info, const std::string& key, const std::string& text) {
  const auto refuse = [&](const std::string& why) {
    return invalid_argument(fmt::format("data.embodiment.slices.{} is \"{}\": {}", key, text, why));
  };
  const bool state = key.rfind("state.", 0) == 0 && key.size() > 6;
  const bool action = key.rfind("action.", 0) == 0 && key.size() > 7;
  if (!state && !action) return refuse("its name is not state.KEY or action.KEY");
  const auto slice = parse_column_slice(text);
  if (!slice) return refuse(slice.error().message());
  const LerobotFeature* feature = info.find(slice->column);
  if (feature == nullptr || !feature->is_numbers()) {
    return refuse(fmt::format("the dataset has no column of numbers '{}'; it has {}", slice->column, vectors_of(info)));
  }
  const std::int64_t width = feature->width(), end = slice->end < 0 ? width : slice->end;
  if (slice->start >= end || end > width) return refuse(fmt::format("column '{}' has {} values", slice->column, width));
  set_named(state ? m.state : m.action, VectorKey{key.substr(state ? 6 : 7), slice->column, slice->start, end});
  return {};
}

/// What the embodiment's own YAML says beside or in place of modality.json.
Result<Modality> with_embodiment(Modality m, const LerobotInfo& info, const EmbodimentConfig& e) {
  for (const auto& [name, column] : e.cameras) {
    const LerobotFeature* feature = info.find(column);
    if (feature == nullptr || !feature->is_camera()) {
      return invalid_argument(fmt::format("data.embodiment.cameras.{} is '{}'; the dataset has the cameras {}", name,
                                          column, cameras_of(info)));
    }
    set_named(m.video, NamedColumn{name, column});
  }
  for (const auto& [key, text] : e.slices) TROUPE_TRY(add_slice(m, info, key, text));
  return m;
}

/// The whole column that empty keys stand for: the first candidate that exists.
Result<VectorKey> whole_column(const LerobotInfo& info, std::initializer_list<const char*> candidates, const char* name,
                               const char* config_key) {
  for (const char* column : candidates) {
    const LerobotFeature* f = info.find(column);
    if (f == nullptr) continue;
    if (f->is_numbers()) return VectorKey{name, column, 0, f->width()};
    return invalid_argument(
        fmt::format("data.embodiment.{} is empty, which means the whole column '{}', and info.json gives it dtype {} "
                    "and shape [{}]: one list of numbers a row is wanted",
                    config_key, column, f->dtype, fmt::join(f->shape, ", ")));
  }
  return invalid_argument(
      fmt::format("data.embodiment.{} is empty, which means the whole column '{}', and the dataset "
                  "has no such column: name the keys",
                  config_key, *candidates.begin()));
}

Result<VectorKey> named_key(const std::vector<VectorKey>& keys, const std::string& name, const char* config_key) {
  if (const VectorKey* key = find_named(keys, name)) return *key;
  return invalid_argument(
      fmt::format("data.embodiment.{} names '{}'; the dataset has {}", config_key, name, names_of(keys)));
}

Result<void> resolve_actions(const Modality& m, const LerobotInfo& info, const EmbodimentConfig& e,
                             SampleColumns& out) {
  if (e.action_keys.empty()) {
    TROUPE_ASSIGN(VectorKey key, whole_column(info, {"action", "actions"}, "action", "action_keys"));
    out.action.push_back({.key = std::move(key), .relative = false, .reference = {}});
  }
  for (const std::string& name : e.action_keys) {
    TROUPE_ASSIGN(VectorKey key, named_key(m.action, name, "action_keys"));
    out.action.push_back({.key = std::move(key), .relative = false, .reference = {}});
  }
  for (const std::string& name : e.relative_action_keys) {
    const auto it =
        std::find_if(out.action.begin(), out.action.end(), [&](const ActionKey& a) { return a.key.name == name; });
    if (it == out.action.end()) {
      return invalid_argument(
          fmt::format("data.embodiment.relative_action_keys names '{}', which is not among action_keys", name));
    }
    TROUPE_ASSIGN(it->reference, named_key(m.state, name, "relative_action_keys"));
    it->relative = true;
    if (it->reference.width() != it->key.width()) {
      return invalid_argument(fmt::format("relative action '{}' has {} values, the state of that name {}", name,
                                          it->key.width(), it->reference.width()));
    }
  }
  return {};
}

Result<void> resolve_views(const Modality& m, const LerobotInfo& info, const EmbodimentConfig& e, SampleColumns& out) {
  if (e.views.empty()) {
    for (const NamedColumn& view : m.video) {
      if (e.cameras.empty() || e.cameras.count(view.name) != 0) out.views.push_back(view);
    }
  }
  for (const std::string& name : e.views) {
    const NamedColumn* view = find_named(m.video, name);
    const LerobotFeature* feature = info.find(view != nullptr ? view->column : name);
    if (feature == nullptr || !feature->is_camera()) {
      return invalid_argument(
          fmt::format("data.embodiment.views names '{}'; the dataset has {}", name, names_of(m.video)));
    }
    out.views.push_back({name, feature->name});
  }
  if (out.views.empty()) {
    const std::string cameras = cameras_of(info);
    return invalid_argument(cameras == "none"
                                ? "the dataset has no camera, and a sample needs at least one view"
                                : fmt::format("meta/modality.json names no camera under video, and a sample needs at "
                                              "least one view: data.embodiment.views may name {}",
                                              cameras));
  }
  for (const NamedColumn& view : out.views) {
    const LerobotFeature* feature = info.find(view.column);
    if (feature != nullptr && feature->is_depth) {
      return invalid_argument(
          fmt::format("the view '{}' is '{}', which info.json calls a depth map (is_depth_map): its frames are "
                      "distances, and views are colours; name other cameras in data.embodiment.views",
                      view.name, view.column));
    }
    if (feature == nullptr || !feature->is_video() || !info.video_path.empty()) continue;
    return invalid_argument(
        fmt::format("info.json has no video_path, and the view '{}' is the video '{}'", view.name, view.column));
  }
  return {};
}

/// The column of an annotation's short name, or a column of that name.
Result<std::string> label_column(const Modality& m, const LerobotInfo& info, const char* config_key,
                                 const std::string& name) {
  const NamedColumn* annotation = find_named(m.annotation, name);
  const std::string column = annotation != nullptr ? annotation->column : name;
  const LerobotFeature* feature = info.find(column);
  if (feature != nullptr && !feature->is_camera() && feature->dtype != "string") return column;
  return invalid_argument(
      fmt::format("data.embodiment.{} is '{}'; the dataset has {}", config_key, name, names_of(m.annotation)));
}

Result<void> resolve_labels(const Modality& m, const LerobotInfo& info, const EmbodimentConfig& e, SampleColumns& out) {
  if (!e.language_key.empty()) {
    TROUPE_ASSIGN(out.label_column, label_column(m, info, "language_key", e.language_key));
  } else {
    for (const NamedColumn& a : m.annotation) {
      if (out.label_column.empty() && info.find(a.column) != nullptr) out.label_column = a.column;
    }
    if (out.label_column.empty() && info.find("task_index") != nullptr) out.label_column = "task_index";
  }
  for (const std::string& name : e.paraphrase_keys) {
    TROUPE_ASSIGN(std::string column, label_column(m, info, "paraphrase_keys", name));
    const auto& there = out.paraphrase_columns;
    if (column == out.label_column || std::find(there.begin(), there.end(), column) != there.end()) continue;
    out.paraphrase_columns.push_back(std::move(column));
  }
  return {};
}

}  // namespace

std::vector<std::string> action_names(const SampleColumns& columns, const LerobotInfo& info) {
  std::vector<std::string> out;
  for (const ActionKey& action : columns.action) {
    const LerobotFeature* feature = info.find(action.key.column);
    for (auto d = static_cast<std::size_t>(action.key.start); d < static_cast<std::size_t>(action.key.end); ++d)
      out.push_back(feature != nullptr && d < feature->names.size() ? feature->names[d] : std::string());
  }
  return out;
}

Result<ColumnSlice> parse_column_slice(std::string_view text) {
  const auto refuse = [&] {
    return invalid_argument("a column, or column[start:end] with start and end >= 0, is wanted");
  };
  if (text.empty()) return refuse();
  if (text.back() != ']') return ColumnSlice{std::string(text), 0, -1};
  const std::size_t open = text.rfind('[');
  if (open == std::string_view::npos || open == 0) return refuse();
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  const std::size_t colon = inside.find(':');
  if (colon == std::string_view::npos) return refuse();
  const auto number = [](std::string_view digits, std::int64_t absent, std::int64_t& out) {
    out = absent;
    if (digits.empty()) return true;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return code == std::errc() && end == digits.data() + digits.size() && out >= 0;
  };
  ColumnSlice slice{.column = std::string(text.substr(0, open))};
  if (!number(inside.substr(0, colon), 0, slice.start) || !number(inside.substr(colon + 1), -1, slice.end))
    return refuse();
  return slice;
}

std::size_t SampleColumns::state_width() const {
  std::size_t width = 0;
  for (const VectorKey& k : state) width += k.width();
  return width;
}

std::size_t SampleColumns::action_width() const {
  std::size_t width = 0;
  for (const ActionKey& k : action) width += k.key.width();
  return width;
}

std::vector<std::string> SampleColumns::label_columns() const {
  std::vector<std::string> out;
  if (!label_column.empty()) out.push_back(label_column);
  out.insert(out.end(), paraphrase_columns.begin(), paraphrase_columns.end());
  return out;
}

std::vector<std::string> SampleColumns::vector_columns() const {
  std::vector<std::string> columns;
  for (const VectorKey& k : state) columns.push_back(k.column);
  for (const ActionKey& k : action) {
    columns.push_back(k.key.column);
    if (k.relative) columns.push_back(k.reference.column);
  }
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  return columns;
}

Result<SampleColumns> resolve_columns(const Modality& files, const LerobotInfo& info,
                                      const EmbodimentConfig& embodiment) {
  TROUPE_ASSIGN(const Modality modality, with_embodiment(files, info, embodiment));
  SampleColumns out;
  if (embodiment.state_keys.empty()) {
    TROUPE_ASSIGN(VectorKey key, whole_column(info, {"observation.state", "state"}, "state", "state_keys"));
    out.state.push_back(std::move(key));
  }
  for (const std::string& name : embodiment.state_keys) {
    TROUPE_ASSIGN(VectorKey key, named_key(modality.state, name, "state_keys"));
    out.state.push_back(std::move(key));
  }
  TROUPE_TRY(resolve_actions(modality, info, embodiment, out));
  TROUPE_TRY(resolve_views(modality, info, embodiment, out));
  TROUPE_TRY(resolve_labels(modality, info, embodiment, out));
  return out;
}

}  // namespace troupe::data
