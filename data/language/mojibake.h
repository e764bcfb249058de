#pragma once

#include "data/language/icu_text.h"

namespace troupe::data {

/// True where UTF-8 was once decoded as a one-byte encoding, so that repairing it would need guessing: either the whole
/// text turns back into valid UTF-8 in one of ten encodings (Windows-1250 to 1254 and 1257, ISO 8859-1 and 8859-2, Mac
/// Roman, code page 437), or a part of it does in Windows-1252 and stands where no written word has such characters.
bool looks_mis_decoded(const CodePoints& text);

}  // namespace troupe::data
