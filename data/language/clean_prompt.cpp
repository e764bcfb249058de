// The cleaning before Wan's tokenizer (declared in unicode.h; docs/text.md). Line by line, until nothing changes:
// references resolved, characters repaired, NFC. Then references resolved twice and white space collapsed.
#include <fmt/format.h>
#include <unicode/normalizer2.h>

#include <algorithm>
#include <utility>

#include "data/language/html_entities.h"
#include "data/language/icu_text.h"
#include "data/language/mojibake.h"
#include "data/language/unicode.h"

namespace troupe::data {
namespace {

constexpr int kMaxRounds = 64;  // levels of references within references; real prompts have one or two

struct Replacement {
  UChar32 from;
  const char* to;
};

/// What the repair writes for a character: C1 controls read as Windows-1252, digraphs and ligatures spelt out, curly
/// quotes straight. Sorted.
constexpr Replacement kReplacements[] = {
    {0x0080, "\u20AC"},  {0x0082, "'"},       {0x0083, "\u0192"},  {0x0084, "\""},     {0x0085, "\u2026"},
    {0x0086, "\u2020"},  {0x0087, "\u2021"},  {0x0088, "\u02C6"},  {0x0089, "\u2030"}, {0x008A, "\u0160"},
    {0x008B, "\u2039"},  {0x008C, "\u0152"},  {0x008E, "\u017D"},  {0x0091, "'"},      {0x0092, "'"},
    {0x0093, "\""},      {0x0094, "\""},      {0x0095, "\u2022"},  {0x0096, "\u2013"}, {0x0097, "\u2014"},
    {0x0098, "\u02DC"},  {0x0099, "\u2122"},  {0x009A, "\u0161"},  {0x009B, "\u203A"}, {0x009C, "\u0153"},
    {0x009E, "\u017E"},  {0x009F, "\u0178"},  {0x0132, "IJ"},      {0x0133, "ij"},     {0x0149, "'n"},
    {0x01C4, "D\u017D"}, {0x01C5, "D\u017E"}, {0x01C6, "d\u017E"}, {0x01C7, "LJ"},     {0x01C8, "Lj"},
    {0x01C9, "lj"},      {0x01CA, "NJ"},      {0x01CB, "Nj"},      {0x01CC, "nj"},     {0x01F1, "DZ"},
    {0x01F2, "Dz"},      {0x01F3, "dz"},      {0x02BC, "'"},       {0x2018, "'"},      {0x2019, "'"},
    {0x201A, "'"},       {0x201B, "'"},       {0x201C, "\""},      {0x201D, "\""},     {0x201E, "\""},
    {0x201F, "\""},      {0xFB00, "ff"},      {0xFB01, "fi"},      {0xFB02, "fl"},     {0xFB03, "ffi"},
    {0xFB04, "ffl"},     {0xFB05, "\u017Ft"}, {0xFB06, "st"}};

const char* replacement(UChar32 c) {
  const auto* it = std::lower_bound(std::begin(kReplacements), std::end(kReplacements), c,
                                    [](const Replacement& entry, UChar32 wanted) { return entry.from < wanted; });
  return it != std::end(kReplacements) && it->from == c ? it->to : nullptr;
}

/// Controls and invisible marks that the repair removes.
bool is_dropped(UChar32 c) {
  return c <= 0x08 || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || (c >= 0x206A && c <= 0x206F) ||
         c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFC);
}

/// Length of the terminal escape sequence at `i`, such as ESC [ 31 m; 0 for none.
std::size_t escape_sequence(const CodePoints& text, std::size_t i) {
  if (text[i] != 0x1B || i + 1 >= text.size() || text[i + 1] != '[') return 0;
  std::size_t end = i + 2;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == ';')) ++end;
  const bool letter = end < text.size() && ((text[end] | 0x20) >= 'a' && (text[end] | 0x20) <= 'z');
  return letter ? end + 1 - i : 0;
}

/// Characters replaced, then escapes and controls removed (a full-width bracket may have begun an escape), then NFC.
Result<icu::UnicodeString> repair_characters(const icu::UnicodeString& text) {
  UErrorCode code = U_ZERO_ERROR;
  const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(code);
  const icu::Normalizer2* nfkc = icu::Normalizer2::getNFKCInstance(code);
  if (U_FAILURE(code)) return Error{Errc::internal, fmt::format("ICU has no normaliser: {}", u_errorName(code))};
  icu::UnicodeString replaced;
  for (const UChar32 c : code_points(text)) {
    if (const char* other = replacement(c)) {
      replaced += icu::UnicodeString::fromUTF8(other);
    } else if (c >= 0xFF01 && c <= 0xFFEF) {
      replaced += nfkc->normalize(icu::UnicodeString(c), code);  // full-width and half-width forms
    } else {
      replaced += c;
    }
  }
  const CodePoints in = code_points(replaced);
  icu::UnicodeString kept;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (const std::size_t n = escape_sequence(in, i); n > 0) {
      i += n - 1;
    } else if (!is_dropped(in[i])) {
      kept += in[i];
    }
  }
  icu::UnicodeString normal = nfc->normalize(kept, code);
  if (U_FAILURE(code)) {
    return Error{Errc::internal, fmt::format("ICU could not normalise a text: {}", u_errorName(code))};
  }
  return normal;
}

/// Repairs a line until nothing changes.
Result<std::string> repair_line(std::string line, bool with_references) {
  for (int round = 0; round < kMaxRounds; ++round) {
    std::string next = with_references ? unescape_whole_html(line) : line;
    TROUPE_ASSIGN(icu::UnicodeString text, decode_utf8(next));
    if (looks_mis_decoded(code_points(text))) {
      return invalid_argument(
          fmt::format("the prompt '{}' looks like UTF-8 decoded with another encoding; mend it at its source "
                      "(tasks.jsonl, or the request)",
                      line));
    }
    TROUPE_ASSIGN(text, repair_characters(text));
    next = encode_utf8(text);
    if (next == line) return line;
    line = std::move(next);
  }
  return invalid_argument(fmt::format("a prompt nests character references more than {} levels deep", kMaxRounds));
}

/// Runs of white space to one blank, none at the ends.
std::string collapse_space(const icu::UnicodeString& text) {
  icu::UnicodeString out;
  bool gap = false;
  for (const UChar32 c : code_points(text)) {
    if (is_unicode_space(c)) {
      gap = !out.isEmpty();
      continue;
    }
    if (gap) out += u' ';
    gap = false;
    out += c;
  }
  return encode_utf8(out);
}

}  // namespace

Result<std::string> clean_prompt(std::string_view utf8) {
  TROUPE_TRY(decode_utf8(utf8));
  std::string repaired;
  bool with_references = true;  // until the first line that may hold markup
  while (!utf8.empty()) {
    const std::string line(utf8.substr(0, std::min(utf8.find('\n'), utf8.size() - 1) + 1));
    utf8.remove_prefix(line.size());
    with_references = with_references && line.find('<') == std::string::npos;
    TROUPE_ASSIGN(const std::string mended, repair_line(line, with_references));
    repaired += mended;
  }
  TROUPE_ASSIGN(const icu::UnicodeString text, decode_utf8(unescape_html(unescape_html(repaired))));
  return collapse_space(text);
}

}  // namespace troupe::data
