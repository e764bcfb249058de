#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/enum_names.h"

namespace troupe::configs {

/// The C++ types that a configuration field may have; everything that walks a config switches over them.
enum class FieldKind {
  /// std::int64_t.
  integer,
  /// double, or a duration over double, whose first and only member is its count.
  number,
  /// bool.
  boolean,
  /// std::string, free or one of `choices`.
  string,
  /// A NamedEnum (base/enum_names.h), written as one of `choices`.
  enumeration,
  /// std::vector<std::int64_t>.
  integer_list,
  /// std::vector<double>.
  number_list,
  /// std::vector<std::string>.
  string_list,
  /// A struct with describe().
  group,
  /// std::vector<struct>.
  struct_list,
  /// std::map<std::string, std::string>.
  string_map,
  /// std::map<std::string, struct>.
  struct_map,
};

template <class T>
inline constexpr bool is_number = std::is_same_v<T, double>;
template <class Period>
inline constexpr bool is_number<std::chrono::duration<double, Period>> =
    std::is_standard_layout_v<std::chrono::duration<double, Period>>;

struct StructSpec;

/// One described field. `member` and the container functions reach the field inside a live struct without its type;
/// pointers they return stay valid until the container they point into changes.
struct FieldSpec {
  /// Key in YAML, one sentence for users, and the unit as text; empty where there is none.
  std::string name;
  std::string doc;
  std::string unit;
  FieldKind kind = FieldKind::string;
  /// Inclusive; infinite bounds are absent.
  std::optional<double> low, high;
  /// Of the scalar, of each list item, or of each map value.
  std::vector<std::string> choices;
  /// Of group, struct_list and struct_map.
  std::shared_ptr<const StructSpec> element;
  std::function<void*(void* owner)> member;
  /// enumeration.
  std::function<std::string_view(const void* value)> name_of;
  /// enumeration; one of `choices`.
  std::function<void(void* value, std::string_view name)> set_name;
  /// struct_list.
  std::function<void*(void* list)> append;
  /// struct_list.
  std::function<std::size_t(const void* list)> count;
  /// struct_list.
  std::function<const void*(const void* list, std::size_t)> at;
  /// struct_map.
  std::function<void*(void* map, const std::string&)> emplace;
  /// struct_map.
  std::function<const void*(const void* map, const std::string&)> find;
  /// struct_map.
  std::function<std::vector<std::string>(const void* map)> keys;

  /// The field inside `owner`, a struct of the type that was described; const as the owner is.
  const void* get(const void* owner) const { return member(const_cast<void*>(owner)); }
};

/// A config struct as data: what the YAML reader, the errors, the JSON Schema and docs/config.md are all made from.
struct StructSpec {
  /// The field that a bare scalar sets; empty: none.
  std::string shorthand;
  /// A bare scalar names a file with these keys (configs/embodiment_file.h).
  bool from_file = false;
  std::vector<FieldSpec> fields;
  /// A default-constructed struct.
  std::shared_ptr<const void> defaults;

  const FieldSpec* find(std::string_view name) const {
    for (const FieldSpec& field : fields) {
      if (field.name == name) return &field;
    }
    return nullptr;
  }
};

template <class S>
std::shared_ptr<const StructSpec> make_spec();

/// The visitor that a config struct's describe() talks to.
///   field      a scalar, a list of scalars, with a unit and inclusive bounds where they make sense
///   choice     a string out of a fixed set, or an enum with names
///   group      a nested struct;  list: a vector of structs;  map: string keys to strings or structs
///   shorthand  names the field that a bare scalar in place of the struct sets;  from_file: the scalar names a file
template <class S>
class SpecBuilder {
 public:
  explicit SpecBuilder(StructSpec& spec) : spec_(spec) {}

  void shorthand(const char* name) { spec_.shorthand = name; }
  void from_file() { spec_.from_file = true; }

  template <class M>
  void field(const char* name, M S::*member, const char* doc, const char* unit = "",
             double low = -std::numeric_limits<double>::infinity(),
             double high = std::numeric_limits<double>::infinity()) {
    FieldSpec& f = add(name, member, doc, scalar_kind<M>());
    f.unit = unit;
    if (low > -std::numeric_limits<double>::infinity()) f.low = low;
    if (high < std::numeric_limits<double>::infinity()) f.high = high;
  }
  void field(const char* name, std::vector<std::string> S::*member, const char* doc,
             std::initializer_list<const char*> choices) {
    add(name, member, doc, FieldKind::string_list).choices.assign(choices.begin(), choices.end());
  }
  void choice(const char* name, std::string S::*member, const char* doc, std::initializer_list<const char*> choices) {
    add(name, member, doc, FieldKind::string).choices.assign(choices.begin(), choices.end());
  }
  template <NamedEnum M>
  void choice(const char* name, M S::*member, const char* doc) {
    FieldSpec& f = add(name, member, doc, FieldKind::enumeration);
    for (const std::string_view each : enum_names(M{})) f.choices.emplace_back(each);
    f.name_of = [](const void* value) { return enum_name(*static_cast<const M*>(value)); };
    f.set_name = [](void* value, std::string_view each) { *static_cast<M*>(value) = *enum_value<M>(each); };
  }
  template <class M>
  void group(const char* name, M S::*member, const char* doc) {
    add(name, member, doc, FieldKind::group).element = make_spec<M>();
  }
  template <class M>
  void list(const char* name, std::vector<M> S::*member, const char* doc) {
    FieldSpec& f = add(name, member, doc, FieldKind::struct_list);
    using List = std::vector<M>;
    f.element = make_spec<M>();
    f.append = [](void* list) -> void* { return &static_cast<List*>(list)->emplace_back(); };
    f.count = [](const void* list) { return static_cast<const List*>(list)->size(); };
    f.at = [](const void* list, std::size_t i) -> const void* { return &(*static_cast<const List*>(list))[i]; };
  }
  void map(const char* name, std::map<std::string, std::string> S::*member, const char* doc,
           std::initializer_list<const char*> choices = {}) {
    add(name, member, doc, FieldKind::string_map).choices.assign(choices.begin(), choices.end());
  }
  template <class M>
  void map(const char* name, std::map<std::string, M> S::*member, const char* doc) {
    FieldSpec& f = add(name, member, doc, FieldKind::struct_map);
    using Map = std::map<std::string, M>;
    f.element = make_spec<M>();
    f.emplace = [](void* map, const std::string& key) -> void* { return &(*static_cast<Map*>(map))[key]; };
    f.find = [](const void* map, const std::string& key) -> const void* {
      const auto it = static_cast<const Map*>(map)->find(key);
      return it == static_cast<const Map*>(map)->end() ? nullptr : &it->second;
    };
    f.keys = [](const void* map) {
      std::vector<std::string> keys;
      for (const auto& [key, value] : *static_cast<const Map*>(map)) keys.push_back(key);
      return keys;
    };
  }

 private:
  template <class M>
  static constexpr FieldKind scalar_kind() {
    if constexpr (std::is_same_v<M, std::int64_t>)
      return FieldKind::integer;
    else if constexpr (is_number<M>)
      return FieldKind::number;
    else if constexpr (std::is_same_v<M, bool>)
      return FieldKind::boolean;
    else if constexpr (std::is_same_v<M, std::string>)
      return FieldKind::string;
    else if constexpr (std::is_same_v<M, std::vector<std::int64_t>>)
      return FieldKind::integer_list;
    else if constexpr (std::is_same_v<M, std::vector<double>>)
      return FieldKind::number_list;
    else {
      static_assert(std::is_same_v<M, std::vector<std::string>>, "use group, list or map for structs");
      return FieldKind::string_list;
    }
  }
  template <class M>
  FieldSpec& add(const char* name, M S::*member, const char* doc, FieldKind kind) {
    FieldSpec& f = spec_.fields.emplace_back();
    f.name = name;
    f.doc = doc;
    f.kind = kind;
    f.member = [member](void* owner) -> void* { return &(static_cast<S*>(owner)->*member); };
    return f;
  }
  StructSpec& spec_;
};

template <class S>
std::shared_ptr<const StructSpec> make_spec() {
  auto spec = std::make_shared<StructSpec>();
  SpecBuilder<S> builder(*spec);
  S::describe(builder);
  spec->defaults = std::make_shared<const S>();
  return spec;
}

/// The spec of JobConfig, made once. Safe from any thread.
/// Valid for the life of the process.
const StructSpec& job_spec();

/// "integer in [1, 64]", "number > 0", "one of fail, skip": what a value of this field must look like. For lists and
/// maps it describes one item.
std::string expected_text(const FieldSpec& field);

/// One field of the whole job with its dotted path, such as {"data.sets[].path", ...}; groups come before their fields.
struct SpecEntry {
  std::string path;
  const FieldSpec* field;
};
/// Every field of the job in describe() order: `[]` stands for a list index, `.*` for a map key.
const std::vector<SpecEntry>& job_spec_entries();

}  // namespace troupe::configs
