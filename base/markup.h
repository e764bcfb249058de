#pragma once

#include <string>

#include "base/namespaces.h"

namespace troupe::base {

/// Appends `c` to a text or attribute of XML or HTML: & < > " and ' as references, all else as it is.
/// Source: XML 1.0, 2.4.
inline void append_escaped(std::string& out, char c) {
  switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += c;
  }
}

}  // namespace troupe::base
