#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/namespaces.h"

namespace troupe::base {

/// Text as HTML shows it: & < > " ' replaced, bytes that are not UTF-8 replaced by U+FFFD, control characters by
/// blanks.
std::string escape_html(std::string_view text);

/// Base64 (RFC 4648) of the bytes, on one line.
std::string base64(std::string_view bytes);

/// Bytes as an address that holds them: data:MEDIA_TYPE;base64,... `media_type` is such as "image/png".
std::string data_uri(std::string_view media_type, std::string_view bytes);

/// A <pre> of the text: escaped as by escape_html, lines stay lines; one that is wider than the page goes on below,
/// indented.
std::string html_lines(std::string_view text);

/// A column of html_table.
struct HtmlColumn {
  /// Text, not HTML.
  std::string name;
  /// Aligned to the right.
  bool is_number = false;
};
/// A table that scrolls sideways where it is wider than the page; empty without rows. Each row has one cell a column;
/// cells are HTML. Without a name in any column there is no head. `stacks`, for columns of sentences: on a narrow page
/// the cells of a row stand below each other, each behind its column's name.
std::string html_table(const std::vector<HtmlColumn>& columns, const std::vector<std::vector<std::string>>& rows,
                       bool stacks = false);

/// A whole page: its head, the style and the script of all our pages, and `body` (HTML). `title` is text. The page
/// forbids the browser every request: pictures and videos are data: addresses. It can be read without the script.
std::string html_page(std::string_view title, std::string_view body);

/// What html_page puts in: CSS, and the script that lets svg_curves() show values, hide curves and change its scale.
extern const std::string_view kPageStyle, kPageScript;

}  // namespace troupe::base
