#include "data/language/mojibake.h"

#include <unicode/uchar.h>
#include <unicode/ucnv.h>

#include <array>
#include <unordered_map>

namespace troupe::data {
namespace {

/// From characters to the bytes 128 to 255 of a one-byte encoding.
using ByteTable = std::unordered_map<UChar32, int>;

constexpr std::size_t kWindows1252Place = 0;  // its place in kEncodings
constexpr const char* kEncodings[] = {"windows-1252", "ISO-8859-1",   "windows-1251", "windows-1250", "windows-1253",
                                      "windows-1254", "windows-1257", "ISO-8859-2",   "macintosh",    "ibm-437"};
using ByteTables = std::array<ByteTable, std::size(kEncodings)>;

ByteTables read_tables() {
  ByteTables tables;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    UErrorCode code = U_ZERO_ERROR;
    UConverter* converter = ucnv_open(kEncodings[i], &code);
    if (U_FAILURE(code)) continue;  // an ICU built without this table: its texts pass as they are
    for (int byte = 0x80; byte < 0x100; ++byte) {
      const char raw = static_cast<char>(byte);
      UChar units[4];
      code = U_ZERO_ERROR;
      const auto count = ucnv_toUChars(converter, units, 4, &raw, 1, &code);
      // bytes without a character stand for the C1 control of the same number
      const bool defined = U_SUCCESS(code) && count == 1 && units[0] != 0xFFFD;
      tables[i].emplace(defined ? units[0] : byte, byte);
    }
    ucnv_close(converter);
  }
  // text decoded as Latin-1 and as Windows-1252 is mixed often enough to be read as one
  for (int byte = 0x80; byte < 0x100; ++byte) tables[kWindows1252Place].emplace(byte, byte);
  return tables;
}

/// The byte of a character, -1 for none.
int byte_of(const ByteTable& table, UChar32 c) {
  if (c < 0x80) return static_cast<int>(c);
  const auto it = table.find(c);
  return it == table.end() ? -1 : it->second;
}

/// Length of the multi-byte UTF-8 sequence that the characters from `i` on would be; 0 for none.
std::size_t sequence_at(const ByteTable& table, const CodePoints& text, std::size_t i) {
  const int lead = byte_of(table, text[i]);
  const std::size_t tail = lead >= 0xC2 && lead <= 0xDF   ? 1
                           : lead >= 0xE0 && lead <= 0xEF ? 2
                           : lead >= 0xF0 && lead <= 0xF4 ? 3
                                                          : 0;
  if (tail == 0 || i + tail >= text.size()) return 0;
  for (std::size_t k = 1; k <= tail; ++k) {
    const int byte = byte_of(table, text[i + k]);
    // the second byte of some leads is narrower: no overlong forms, surrogates, or code points past U+10FFFF
    const int low = k == 1 && lead == 0xE0 ? 0xA0 : k == 1 && lead == 0xF0 ? 0x90 : 0x80;
    const int high = k == 1 && lead == 0xED ? 0x9F : k == 1 && lead == 0xF4 ? 0x8F : 0xBF;
    if (byte < low || byte > high) return 0;
  }
  return tail + 1;
}

bool is_upper(const CodePoints& text, std::size_t i) { return i > 0 && u_isUUppercase(text[i - 1]) != 0; }
bool is_lower(const CodePoints& text, std::size_t i) { return i > 0 && u_isULowercase(text[i - 1]) != 0; }

/// A control of Latin-1's upper half: in a sequence it is a byte, never a mark that someone wrote.
bool is_c1(UChar32 c) { return c >= 0x80 && c < 0xA0; }

/// How much a sequence at `i` speaks for text that was decoded wrongly: 2 enough, 1 when there is another one, 0 not at
/// all because written words have such characters side by side.
int evidence(const CodePoints& text, std::size_t i, std::size_t length) {
  constexpr UChar32 kSharpS = 0xDF, kTimes = 0xD7, kDivide = 0xF7;
  const UChar32 lead = text[i];
  if (length > 2) {
    bool marks = true;  // two closing marks behind a word, such as olé”…
    for (std::size_t k = 1; k < length; ++k) marks = marks && u_ispunct(text[i + k]) != 0;
    return marks && is_lower(text, i) ? 0 : 2;
  }
  if (is_c1(text[i + 1])) return 2;
  if (u_charType(lead) == U_DASH_PUNCTUATION || lead == kTimes || lead == kDivide) return 1;  // Graz–Österreich, 3×½
  if (u_ispunct(lead) != 0 || is_unicode_space(lead)) return 0;                               // l’école, «étage
  const bool ends_word = i + 2 >= text.size() || u_isalpha(text[i + 2]) == 0;
  return ends_word && (lead == kSharpS || is_upper(text, i)) ? 0 : 2;  // Spaß…, CAFÉ®
}

/// Every character beyond ASCII is part of a sequence.
bool is_whole(const ByteTable& table, const CodePoints& text) {
  int sum = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = text[i] < 0x80 ? 1 : sequence_at(table, text, i);
    if (length == 0) return false;
    if (length > 1) sum += evidence(text, i, length);
    i += length;
  }
  return sum >= 2;
}

/// A sequence amid other text: three or four characters, a pair with a control, and pairs behind a small letter, before
/// another sequence, or with the leads of Latin-1's own letters; those leads also before a blank that was U+00A0.
bool has_part(const ByteTable& table, const CodePoints& text) {
  constexpr UChar32 kUpperA = 0xC2, kUpperATilde = 0xC3;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] < 0x80) continue;
    const bool latin = text[i] == kUpperA || text[i] == kUpperATilde;
    if (latin && i + 2 < text.size() && text[i + 1] == ' ' && !is_upper(text, i)) return true;
    const std::size_t length = sequence_at(table, text, i);
    if (length == 0 || evidence(text, i, length) < 2) continue;
    if (length > 2 || is_c1(text[i + 1]) || latin || is_lower(text, i)) return true;
    if (i + 2 < text.size() && sequence_at(table, text, i + 2) != 0) return true;
  }
  return false;
}

}  // namespace

bool looks_mis_decoded(const CodePoints& text) {
  bool ascii = true;
  for (const UChar32 c : text) ascii = ascii && c < 0x80;
  if (ascii) return false;
  static const ByteTables tables = read_tables();
  for (const ByteTable& table : tables) {
    if (is_whole(table, text)) return true;
  }
  return has_part(tables[kWindows1252Place], text);
}

}  // namespace troupe::data
