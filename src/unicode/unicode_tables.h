// Properties of characters. They are the same in every build, whatever Unicode versions other
// libraries have, since token ids depend on them. They match the tokenizers library 0.23, whose
// parts use different versions of Unicode: patterns 16, case 17, normal forms 12, accents and
// punctuation an older one. Made by scripts/make_unicode_tables.py.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fp8kv::unicode {

// Runs of code points that share a value, in order and without gaps: first << 8 | value.
using Runs = std::span<const uint32_t>;

extern const Runs kCategoryRuns;        // a GeneralCategory
extern const Runs kScriptRuns;          // an index into kScriptNames
extern const Runs kAlphabeticRuns;      // 0 or 1; so are the next three
extern const Runs kNumericRuns;         // categories Nd, Nl, No
extern const Runs kPunctuationRuns;     // categories P*, and every ASCII punctuation character
extern const Runs kMarkRuns;            // categories M*
extern const Runs kCombiningClassRuns;  // canonical combining classes

// Names in the order of the values of kCategoryRuns.
inline constexpr std::string_view kCategoryNames[] = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};

struct ScriptName {
  std::string_view name;
  std::string_view alias;  // the four letters of ISO 15924
};
extern const std::span<const ScriptName> kScriptNames;

// Every `step`th character from `first` to `last` has itself plus `delta` as its lower case.
struct LowerRow {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t delta;
};
extern const std::span<const LowerRow> kLowerRows;

// Decompositions of characters, one step down, except Hangul syllables. Each row has a head and its
// parts, in order. The head has the code point and the number of parts << 24. kCompatible means
// that NFC and NFD leave the character alone, and kComposes that NFC puts its parts together again.
extern const std::span<const uint32_t> kDecompositions;
inline constexpr uint32_t kCompatible = 1u << 21;
inline constexpr uint32_t kComposes = 1u << 22;

// The value of a code point in `runs`. REQUIRES c <= 0x10FFFF.
uint8_t value_in(Runs runs, char32_t c);

}  // namespace fp8kv::unicode
