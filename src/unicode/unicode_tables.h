// What is known of characters: the same wherever the program is built, whatever versions of Unicode
// other libraries have. Token ids depend on it, so it is what the tokenizers library 0.23 knows,
// whose parts have different versions: patterns Unicode 16, cases 17, normal forms 12, accents and
// punctuation an older one. Made by scripts/make_unicode_tables.py.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fp8kv::unicode {

// Runs of code points of one value, in order and without gaps: first << 8 | value.
using Runs = std::span<const uint32_t>;

extern const Runs kCategoryRuns;        // a GeneralCategory
extern const Runs kScriptRuns;          // a place in kScriptNames
extern const Runs kAlphabeticRuns;      // 0 or 1, as in the next three
extern const Runs kNumericRuns;         // categories Nd, Nl, No
extern const Runs kPunctuationRuns;     // categories P*, and every ASCII punctuation character
extern const Runs kMarkRuns;            // categories M*
extern const Runs kCombiningClassRuns;  // canonical combining classes

// In the order of the values in kCategoryRuns.
inline constexpr std::string_view kCategoryNames[] = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};

struct ScriptName {
  std::string_view name;
  std::string_view alias;  // four letters, of ISO 15924
};
extern const std::span<const ScriptName> kScriptNames;

// Every `step`th character from `first` to `last` has as lower case itself plus `delta`.
struct LowerRow {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t delta;
};
extern const std::span<const LowerRow> kLowerRows;

// What characters are made of, one step down, but for Hangul syllables: in order, a head and its
// parts. The head has the code point, kCompatible where the normal forms NFC and NFD leave it,
// kComposes where NFC puts the parts together again, and the number of parts << 24.
extern const std::span<const uint32_t> kDecompositions;
inline constexpr uint32_t kCompatible = 1u << 21;
inline constexpr uint32_t kComposes = 1u << 22;

// The value that the runs give a code point. REQUIRES c <= 0x10FFFF.
uint8_t value_in(Runs runs, char32_t c);

}  // namespace fp8kv::unicode
