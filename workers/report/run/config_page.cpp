#include "workers/report/run/config_page.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <vector>

#include "base/page/html.h"
#include "configs/embedded.h"
#include "configs/loader.h"
#include "workers/report/config_lines.h"

namespace troupe::workers {

namespace {

/// The embedded file that the job was made from.
std::optional<EmbeddedFile> base_of(const std::vector<ConfigLine>& lines) {
  std::optional<EmbeddedFile> preset;
  for (const ConfigLine& line : lines) {
    const std::string file = line.source.substr(0, line.source.rfind(':'));
    const auto found = file.find(".yaml") == std::string::npos ? std::nullopt : find_embedded(file);
    if (!found || found->name != file) continue;
    if (found->name.substr(0, 8) == "recipes/") return found;
    if (!preset) preset = found;
  }
  return preset;
}

/// Values by path of what the job was made from; nothing where that does not load by itself.
std::map<std::string, std::string> values_of(const EmbeddedFile& base) {
  std::map<std::string, std::string> values;
  const LoadOutcome loaded = load_job_text(std::string(base.name), std::string(base.text), {});
  if (!loaded.config) return values;
  for (const ConfigLine& line : config_lines(loaded.config->resolved_yaml)) {
    if (line.is_leaf()) values[line.path] = line.value;
  }
  return values;
}

std::string html_of(const ConfigLine& line, bool differs, const std::string& before) {
  const std::string source = line.source.empty() ? "" : "  # " + line.source;
  std::string text = escape_html(line.text.substr(0, line.text.size() - source.size()));
  if (differs) text = "<mark>" + text + "</mark>";
  if (!source.empty()) text += fmt::format("<span class=\"from\">{}</span>", escape_html(source));
  if (!before.empty()) text += fmt::format(" <span class=\"warning\">was {}</span>", escape_html(before));
  return text + "\n";
}

}  // namespace

std::string config_page(const std::string& resolved_yaml) {
  const auto lines = config_lines(resolved_yaml);
  const auto base = base_of(lines);
  const auto values = base ? values_of(*base) : std::map<std::string, std::string>();
  std::string body;
  std::int64_t count = 0;
  for (const ConfigLine& line : lines) {
    const auto known = values.find(line.path);
    const bool is_from_base = line.source == "default" || (base && line.source.rfind(std::string(base->name), 0) == 0);
    const bool differs = line.is_leaf() && (known != values.end() ? known->second != line.value : !is_from_base);
    count += differs;
    body += html_of(line, differs, differs && known != values.end() ? known->second : "");
  }
  const std::string origin = base ? std::string(base->name) : "the defaults";
  const std::string head =
      count == 0 ? fmt::format("<p>As {} says.</p>\n", escape_html(origin))
                 : fmt::format("<p>{} values differ from {}: they are marked.</p>\n", count, escape_html(origin));
  return head + "<pre><code>" + body + "</code></pre>\n";
}

}  // namespace troupe::workers
