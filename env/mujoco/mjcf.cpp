#include "env/mujoco/mjcf.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/markup.h"

namespace troupe::env {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) append_escaped(out, c);
  return out;
}

}  // namespace

MjcfElement& MjcfElement::set(std::string_view name, std::string_view text) {
  const auto found =
      std::find_if(attributes_.begin(), attributes_.end(), [name](const auto& a) { return a.first == name; });
  if (found != attributes_.end()) {
    found->second = text;
  } else {
    attributes_.emplace_back(name, text);
  }
  return *this;
}

MjcfElement& MjcfElement::set(std::string_view name, double value) {
  return set(name, std::span<const double>(&value, 1));
}

MjcfElement& MjcfElement::set(std::string_view name, std::initializer_list<double> values) {
  return set(name, std::span<const double>(values.begin(), values.size()));
}

MjcfElement& MjcfElement::set(std::string_view name, std::span<const double> values) {
  return set(name, std::string_view(fmt::format("{}", fmt::join(values.begin(), values.end(), " "))));
}

MjcfElement& MjcfElement::add(std::string tag) { return children_.emplace_back(std::move(tag)); }

std::string MjcfElement::to_xml() const {
  std::string out;
  write(out, 0);
  return out;
}

void MjcfElement::write(std::string& out, int depth) const {
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  out += indent + "<" + tag_;
  for (const auto& [name, text] : attributes_) out += fmt::format(" {}=\"{}\"", name, escaped(text));
  if (children_.empty()) {
    out += "/>\n";
    return;
  }
  out += ">\n";
  for (const MjcfElement& child : children_) child.write(out, depth + 1);
  out += indent + "</" + tag_ + ">\n";
}

}  // namespace troupe::env
