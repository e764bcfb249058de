#include "base/page/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/markup.h"
#include "base/utf8.h"

namespace troupe::base {

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    if (n == 1) {
      const char c = text.front();
      append_escaped(out, static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c);
    } else {
      out += n == 0 ? "\xEF\xBF\xBD" : text.substr(0, n);
    }
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

std::string base64(std::string_view bytes) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kLetters[word >> (18 - 6 * k) & 63];
  }
  return out;
}

std::string data_uri(std::string_view media_type, std::string_view bytes) {
  return fmt::format("data:{};base64,{}", media_type, base64(bytes));
}

std::string html_lines(std::string_view text) {
  std::string out = "<pre class=\"lines\">";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += "<span>" + escape_html(text.substr(0, end)) + "</span>";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + "</pre>\n";
}

std::string html_table(const std::vector<HtmlColumn>& columns, const std::vector<std::vector<std::string>>& rows,
                       bool stacks) {
  if (rows.empty()) return {};
  const auto cell = [&](std::size_t column, std::string_view tag, const std::string& html) {
    std::string attributes = columns[column].is_number ? " class=\"n\"" : "";
    if (stacks && tag == "td") attributes += fmt::format(" data-name=\"{}\"", escape_html(columns[column].name));
    return fmt::format("<{0}{1}>{2}</{0}>", tag, attributes, html);
  };
  std::string out = fmt::format("<div class=\"wide\"><table{}>\n", stacks ? " class=\"stacks\"" : "");
  if (std::any_of(columns.begin(), columns.end(), [](const HtmlColumn& c) { return !c.name.empty(); })) {
    out += "<tr>";
    for (std::size_t i = 0; i < columns.size(); ++i) out += cell(i, "th", escape_html(columns[i].name));
    out += "</tr>\n";
  }
  for (const auto& row : rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < std::min(columns.size(), row.size()); ++i) out += cell(i, "td", row[i]);
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string html_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; media-src data:; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style></head><body>\n{}<script>{}</script>\n</body></html>\n",
      escape_html(title), kPageStyle, body, kPageScript);
}

}  // namespace troupe::base
