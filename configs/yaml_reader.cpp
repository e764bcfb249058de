#include "configs/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "base/utf8.h"
#include "configs/scalar.h"

namespace troupe::configs {

namespace {

/// Thrown out of the event handler once an error makes the rest of the text meaningless; caught in parse().
struct Stop {};

/// Turns yaml-cpp's events into ConfigNodes. Events are used instead of yaml-cpp's own tree because that tree merges
/// duplicate keys silently and forgets anchors and tags.
class TreeBuilder : public YAML::EventHandler {
 public:
  /// `fixed` is the origin of every node of an override's value; `context` begins every message.
  TreeBuilder(std::shared_ptr<const SourceFile> source, std::optional<Origin> fixed, std::string context,
              Diagnostics& errors)
      : source_(std::move(source)), fixed_(std::move(fixed)), context_(std::move(context)), errors_(errors) {}

  ConfigNode take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) fail(mark, "a second YAML document; one file holds one job");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (wants_key()) return begin_key(mark, "null", 4);
    place(ConfigNode::make(ConfigNode::Kind::null, at(mark, width_of_null(mark))));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "YAML aliases are not supported; write ${key.path} to repeat a value");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    const bool quoted = tag == "!";
    const int width = count_code_points(value) + (quoted ? 2 : 0);
    if (wants_key()) return begin_key(mark, value, width);
    place(ConfigNode::make_scalar(value, quoted, at(mark, width)));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::map);
  }
  void OnMapEnd() override { close(); }

  Origin at(const YAML::Mark& mark, int width) const {
    if (fixed_) return *fixed_;
    // yaml-cpp counts bytes
    const auto line = static_cast<std::size_t>(mark.line), bytes = static_cast<std::size_t>(mark.column);
    const bool inside = line < source_->lines.size() && bytes <= source_->lines[line].size();
    const int before =
        inside ? count_code_points(std::string_view(source_->lines[line]).substr(0, bytes)) : mark.column;
    return {Origin::Kind::file, source_, mark.line + 1, before + 1, width};
  }

 private:
  /// A collection that is being filled. A duplicate key's value is parsed and thrown away.
  struct Level {
    ConfigNode node;
    std::string key;
    Origin key_origin;
    bool has_key = false;
    bool discard = false;
  };

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) {
    errors_.add(at(mark, 1), context_ + message);
    throw Stop{};
  }
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) fail(mark, "YAML anchors are not supported; write ${key.path} to repeat a value");
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") fail(mark, fmt::format("YAML tag '{}' is not supported", tag));
  }
  bool wants_key() const { return !levels_.empty() && levels_.back().node.is_map() && !levels_.back().has_key; }
  int width_of_null(const YAML::Mark& mark) const {
    if (fixed_ || static_cast<std::size_t>(mark.line) >= source_->lines.size()) return 1;
    const std::string& line = source_->lines[static_cast<std::size_t>(mark.line)];
    return line.compare(std::min(line.size(), static_cast<std::size_t>(mark.column)), 4, "null") == 0 ? 4 : 1;
  }

  void begin_key(const YAML::Mark& mark, const std::string& key, int width) {
    Level& level = levels_.back();
    level.key = key;
    level.key_origin = at(mark, width);
    level.has_key = true;
    level.discard = false;
    if (key == "<<") {
      errors_.add(level.key_origin, context_ + "YAML merge key '<<' is not supported",
                  "use `extends:` at the top of the file");
      level.discard = true;
    } else if (const ConfigEntry* first = level.node.find(key)) {
      const std::string place = first->origin.kind == Origin::Kind::file
                                    ? fmt::format(" (first at {}:{})", first->origin.line, first->origin.column)
                                    : "";
      errors_.add(level.key_origin,
                  context_ + fmt::format("duplicate key '{}' in map '{}'{}", key, path_of_top(), place));
      level.discard = true;
    }
  }

  std::string path_of_top() const {
    std::string path;
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i) {
      const Level& level = levels_[i];
      if (level.node.is_list())
        path += fmt::format("[{}]", level.node.items.size());
      else
        path += (path.empty() ? "" : ".") + level.key;
    }
    return path.empty() ? "(top level)" : path;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, ConfigNode::Kind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (wants_key()) fail(mark, "a key must be a scalar");
    if (levels_.size() >= static_cast<std::size_t>(kMaxConfigDepth)) {
      fail(mark, fmt::format("nested deeper than {} levels", kMaxConfigDepth));
    }
    levels_.emplace_back().node = ConfigNode::make(kind, at(mark, 1));
  }

  void close() {
    ConfigNode done = std::move(levels_.back().node);
    levels_.pop_back();
    place(std::move(done));
  }

  void place(ConfigNode node) {
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node.is_list()) {
      level.node.items.push_back(std::move(node));
      return;
    }
    if (!level.discard) level.node.entries.push_back({level.key, level.key_origin, std::move(node)});
    level.has_key = false;
  }

  std::shared_ptr<const SourceFile> source_;
  std::optional<Origin> fixed_;
  std::string context_;
  Diagnostics& errors_;
  std::vector<Level> levels_;
  ConfigNode root_;
  int documents_ = 0;
};

/// A YAML syntax error in the user's terms.
struct SyntaxMistake {
  int column = 0;  ///< 0-based, bytes
  int width = 1;
  std::string message = {}, hint = {}, fix = {};
};

/// yaml-cpp names what it missed; the two mistakes that people make most are named by what is there instead.
SyntaxMistake name_mistake(const std::string& line, const YAML::Mark& mark, const std::string& found) {
  const auto column = static_cast<std::size_t>(std::max(0, mark.column));
  const std::size_t indent = line.find_first_not_of(" \t-"), tab = line.find('\t');
  if (tab != std::string::npos && tab < std::min(indent, line.size())) {
    return {.column = static_cast<int>(tab),
            .message = "a tab cannot indent in YAML",
            .hint = "write spaces",
            .fix = "two spaces for each tab, as `expand -t 2 FILE` writes them"};
  }
  if (column > 0 && column < line.size() && line.compare(column - 1, 2, "${") == 0) {
    const std::size_t begin = line.find_last_of(" [{,:", column - 1) + 1, brace = line.find('}', column);
    const std::size_t end = brace == std::string::npos ? brace : line.find_first_of(",}]", brace + 1);
    std::string value = line.substr(begin, end == std::string::npos ? end : end - begin);
    value.erase(value.find_last_not_of(" \t") + 1);  // npos + 1 is 0
    return {.column = static_cast<int>(begin),
            .width = count_code_points(value),
            .message = "a reference inside { } or [ ] needs quotes, since its braces would be YAML's",
            .hint = fmt::format("write \"{}\"", value)};
  }
  return {.column = mark.column, .message = found};
}

/// Runs yaml-cpp over the text. False when it could not be read to its end; the reason is in `errors`.
bool parse(const std::string& text, const std::string& context, TreeBuilder& builder, Diagnostics& errors) {
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    return true;
  } catch (const Stop&) {
    return false;
  } catch (const YAML::Exception& e) {
    YAML::Mark mark = e.mark.is_null() ? YAML::Mark() : e.mark;
    const SourceFile lines = *make_source("", text);
    const auto row = static_cast<std::size_t>(std::max(0, mark.line));
    const SyntaxMistake mistake = name_mistake(row < lines.lines.size() ? lines.lines[row] : "", mark, e.msg);
    mark.column = mistake.column;
    errors.add(builder.at(mark, mistake.width), context + mistake.message, mistake.hint, mistake.fix);
    return false;
  }
}

/// The encoding that a text probably has, whose first byte that is no UTF-8 text is `at`; empty: none that is known.
std::string encoding_of(const std::string& text, std::size_t at) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) return "utf-16";
  if (text[at] != '\0') return "latin1";
  return at == 0 ? "utf-16be" : at == 1 ? "utf-16le" : "";
}

/// Reports the first byte that is no text, with its place; the excerpt shows `?` for such bytes.
void refuse_bytes(const std::string& name, const std::string& text, Diagnostics& errors) {
  const std::size_t at = find_non_text(text);
  const auto byte = static_cast<unsigned char>(text[at]);
  std::string shown = to_utf8(text);
  std::replace(shown.begin(), shown.end(), '\0', '?');
  const std::size_t start = text.rfind('\n', at) + 1;  // npos + 1 is 0
  const auto line = static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  const Origin origin{Origin::Kind::file, make_source(name, shown), line + 1,
                      count_code_points(std::string_view(text).substr(start, at - start)) + 1, 1};
  const std::string from = encoding_of(text, at);
  errors.add(origin, fmt::format("byte 0x{:02X} is not UTF-8 text", byte), "",
             from.empty() ? "" : fmt::format("save the file as UTF-8, as `iconv -f {} -t utf-8 FILE` writes it", from));
}

}  // namespace

std::shared_ptr<const SourceFile> make_source(const std::string& name, const std::string& text) {
  auto source = std::make_shared<SourceFile>();
  source->name = name;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    source->lines.push_back(std::move(line));
  }
  return source;
}

std::optional<ConfigNode> read_yaml(const std::string& name, const std::string& text, Diagnostics& errors) {
  if (text.size() > kMaxConfigBytes) {
    errors.add_plain(
        fmt::format("{}: error: {} bytes; a configuration file may have {}", name, text.size(), kMaxConfigBytes));
    return std::nullopt;
  }
  if (!is_text(text)) {
    refuse_bytes(name, text, errors);
    return std::nullopt;
  }
  const auto source = make_source(name, text);
  TreeBuilder builder(source, std::nullopt, "", errors);
  if (!parse(text, "YAML syntax: ", builder, errors)) return std::nullopt;
  ConfigNode root = builder.take_root();
  if (root.is_null()) {
    root.kind = ConfigNode::Kind::map;
    root.origin = {Origin::Kind::file, source, 1, 1, 1};
  }
  if (!root.is_map()) {
    errors.add(root.origin, "a configuration file is a map of sections, such as `training: {steps: 100}`");
    return std::nullopt;
  }
  return root;
}

std::optional<ConfigNode> read_yaml_value(const std::string& key, const std::string& text, const Origin& origin,
                                          Diagnostics& errors) {
  const std::size_t begin = text.find_first_not_of(" \t");
  const std::string trimmed =
      begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
  if (trimmed.empty() || trimmed == "null" || trimmed == "~") {
    return ConfigNode::make(ConfigNode::Kind::null, origin);
  }
  if (!is_text(trimmed) || trimmed.find('\n') != std::string::npos) {
    errors.add(origin, fmt::format("{}: the value is not one line of UTF-8 text", key));
    return std::nullopt;
  }
  // Everything that is not quoted, bracketed or an indicator is the scalar itself: `0:0-7` and `a: b` need no quoting.
  if (std::string_view("[{\"'&*!|>%@`").find(trimmed.front()) == std::string_view::npos) {
    return ConfigNode::make_scalar(trimmed, false, origin);
  }
  const std::string context = fmt::format("{}: cannot read '{}': ", key, trimmed);
  TreeBuilder builder(nullptr, origin, context, errors);
  if (!parse(trimmed, context, builder, errors)) return std::nullopt;
  return builder.take_root();
}

}  // namespace troupe::configs
