#pragma once

#include <initializer_list>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::env {

/// One element of an MJCF model (MuJoCo's XML), built from C++ tables instead of asset files:
///     MjcfElement model("mujoco");
///     auto& torso = model.add("worldbody").add("body").set("name", "torso").set("pos", {0, 0, 0.7});
///     torso.add("geom").set("type", "sphere").set("size", 0.25);
///     auto compiled = compile_mjcf(model.to_xml());
/// Numbers are written with as many digits as give the same double back. Value semantics; not thread-safe. A reference
/// that add() returns is valid while the element that it was added to lives.
class MjcfElement {
 public:
  explicit MjcfElement(std::string tag) : tag_(std::move(tag)) {}

  /// Sets an attribute; the same name again replaces it. Text is escaped.
  MjcfElement& set(std::string_view name, std::string_view text);
  MjcfElement& set(std::string_view name, double value);
  MjcfElement& set(std::string_view name, std::initializer_list<double> values);
  MjcfElement& set(std::string_view name, std::span<const double> values);

  /// A new last child.
  MjcfElement& add(std::string tag);

  /// The element with all below it, as XML text.
  std::string to_xml() const;

 private:
  void write(std::string& out, int depth) const;

  std::string tag_;
  std::vector<std::pair<std::string, std::string>> attributes_;
  std::list<MjcfElement> children_;
};

}  // namespace troupe::env
