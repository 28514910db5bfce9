#include "text/steps/pattern_classes.h"

#include <map>
#include <mutex>

#include "base/error.h"
#include "text/steps/pattern.h"
#include "unicode/characters.h"

namespace fp8kv {
namespace {

// Normalises a property's name for comparison: ignores case and "_".
std::string loose(std::string_view name) {
  std::string made;
  for (const char c : name) {
    if (c != '_') made += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return made;
}

// PCRE2's spelling of a property, and its characters.
struct Property {
  std::string spelling;
  CharRanges characters;
};

std::optional<Property> find_property(std::string_view name) {
  const std::string wanted = loose(name);
  if (wanted.empty()) return std::nullopt;
  if (wanted == "alphabetic") {
    return Property{"Alphabetic",
                    CharRanges::of(unicode::kAlphabeticRuns, [](uint32_t has) { return has; })};
  }
  if (wanted.size() <= 2) {
    CharRanges characters = CharRanges::of(unicode::kCategoryRuns, [&](uint32_t category) {
      return loose(unicode::kCategoryNames[category]).starts_with(wanted);
    });
    if (characters.empty()) return std::nullopt;
    std::string spelling = wanted;
    spelling[0] = static_cast<char>(spelling[0] - 'a' + 'A');
    return Property{std::move(spelling), std::move(characters)};
  }
  for (uint32_t i = 0; i < unicode::kScriptNames.size(); ++i) {
    const unicode::ScriptName& script = unicode::kScriptNames[i];
    if (loose(script.name) != wanted && loose(script.alias) != wanted) continue;
    // A bare script name would include its extensions in PCRE2.
    return Property{cat("sc:", script.name),
                    CharRanges::of(unicode::kScriptRuns, [&](uint32_t s) { return s == i; })};
  }
  return std::nullopt;
}

// The planes in which versions of Unicode may differ. The planes between have no characters, and
// those behind are for private use.
constexpr CharRanges::Range kCompared[] = {{0, 0xD800}, {0xE000, 0x40000}, {0xE0000, 0xF0000}};

// Asks PCRE2 for the characters of a property. Returns nothing for a script newer than this PCRE2.
std::optional<CharRanges> ask_pcre2(const std::string& spelling) {
  std::optional<Pattern> pattern;
  try {
    pattern = Pattern::from_pcre2(cat("\\p{", spelling, "}+"), "a property");
  } catch (const Error&) {
    return std::nullopt;
  }
  CharRanges made;
  PatternScratch scratch;
  std::string text;
  for (const CharRanges::Range& compared : kCompared) {
    text.clear();
    for (char32_t c = compared.begin; c < compared.end; ++c) append_char(text, c);
    pattern->for_each(text, scratch, [&](const Pattern::Match& match) {
      size_t at = match.begin;
      const char32_t first = next_char(text, at);
      made.append({first, last_char(std::string_view(text).substr(0, match.end)) + 1});
    });
  }
  return made;
}

// Caches the answer, which never changes and takes milliseconds.
const std::optional<CharRanges>& known_to_pcre2(const std::string& spelling) {
  static std::mutex mutex;
  static std::map<std::string, std::optional<CharRanges>> answers;
  const std::lock_guard lock(mutex);
  const auto known = answers.find(spelling);
  if (known != answers.end()) return known->second;
  return answers.emplace(spelling, ask_pcre2(spelling)).first->second;
}

}  // namespace

std::optional<PatternClasses::Set> PatternClasses::make(std::string_view property) {
  const std::optional<Property> found = find_property(property);
  if (!found) return std::nullopt;
  const CharRanges& ours = found->characters;
  const CharRanges others = ours.others();
  Set set{{cat("\\p{", found->spelling, "}"), ours.class_items()},
          {cat("\\P{", found->spelling, "}"), others.class_items()}};
  const std::optional<CharRanges>& theirs = known_to_pcre2(found->spelling);
  if (!theirs) {
    set.members.fast = set.members.exact;
    set.others.fast = set.others.exact;
    return set;
  }
  const CharRanges compared{kCompared[0], kCompared[1], kCompared[2]};
  differences_ = differences_.joined_with(ours.shared_with(compared).shared_with(theirs->others()))
                     .joined_with(others.shared_with(*theirs));
  return set;
}

std::optional<PatternClasses::Items> PatternClasses::items(std::string_view property,
                                                           bool negated) {
  auto known = known_.find(property);
  if (known == known_.end()) known = known_.emplace(property, make(property)).first;
  const std::optional<Set>& set = known->second;
  if (!set) return std::nullopt;
  return negated ? set->others : set->members;
}

}  // namespace fp8kv
