#pragma once

#include <string>
#include <string_view>

namespace troupe::data {

/// Resolves character references once, as Python's html.unescape and HTML5 do: decimal and hexadecimal numbers (128 to
/// 159 read as Windows-1252, non-characters dropped), the 2,231 names, and the longest old name that may stand without
/// its semicolon. All other text stays as it is.
std::string unescape_html(std::string_view utf8);

/// Resolves once only whole references, from `&` to `;`: numbers and names of at most 24 characters, and names in
/// capitals (`&HELLIP;`, `&EACUTE;`) where HTML5 itself reads nothing else into them; those give the upper case of the
/// lower-case name's character. This is the narrower reading of ftfy's repair, which the prompt cleaning repeats.
std::string unescape_whole_html(std::string_view utf8);

}  // namespace troupe::data
