#include "configs/document.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "configs/embedded.h"
#include "configs/suggest.h"
#include "configs/yaml_reader.h"

namespace troupe::configs {

namespace {

namespace fs = std::filesystem;

std::string suggestion(const std::string& name, const std::string& folder) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.name.starts_with(folder)) continue;
    std::string_view shown = file.name.substr(folder.size());
    if (!folder.empty() && shown.ends_with(".yaml")) shown.remove_suffix(5);
    names.emplace_back(shown);
  }
  const std::string near = nearest_name(name, names);
  return near.empty() ? "" : fmt::format("did you mean '{}'?", near);
}

}  // namespace

std::optional<std::string> read_config_file(const std::string& path, const std::string& where, Diagnostics& errors) {
  std::error_code code;
  if (fs::is_directory(path, code)) {
    errors.add_plain(where + ": error: is a directory; name the YAML file");
    return std::nullopt;
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text;
  // one byte over the limit is enough to know that the file is too long
  text.resize(kMaxConfigBytes + 1);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (stream.fail() && !stream.eof())) {
    errors.add_plain(where + ": error: cannot be read");
    return std::nullopt;
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMaxConfigBytes) {
    errors.add_plain(
        fmt::format("{}: error: larger than {} bytes, the limit for a configuration file", where, kMaxConfigBytes));
    return std::nullopt;
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // a byte order mark is not part of the text
  return text;
}

std::optional<Document> find_document(const ConfigNode& name, const std::string& folder, const std::string& from,
                                      bool from_embedded, const std::string& key, Diagnostics& errors) {
  const fs::path beside = fs::path(from).parent_path() / name.text;
  std::error_code code;
  if (!from_embedded && fs::exists(beside, code)) {
    const std::string path = beside.lexically_normal().string();
    auto text = read_config_file(path, path, errors);
    if (!text) return std::nullopt;
    return Document{path, std::move(*text)};
  }
  if (const auto embedded = find_embedded(folder + name.text)) {
    return Document{std::string(embedded->name), std::string(embedded->text), true};
  }
  errors.add(name.origin,
             fmt::format("{}: '{}' does not exist, neither beside {} nor in the binary", key, name.text,
                         from.empty() ? "the working directory" : from),
             suggestion(name.text, folder));
  return std::nullopt;
}

}  // namespace troupe::configs
