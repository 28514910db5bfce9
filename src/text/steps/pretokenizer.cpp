#include "text/steps/pretokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"
#include "text/models/parts.h"
#include "unicode/characters.h"

namespace fp8kv {
namespace {

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace

PreTokenizer PreTokenizer::from_json(const std::optional<Json>& pre_tokenizer,
                                     const Normalizer& normalizer) {
  PreTokenizer made;
  if (!pre_tokenizer) return made;
  made.where_ = pre_tokenizer->where();
  made.add(*pre_tokenizer, normalizer);
  return made;
}

void PreTokenizer::add(const Json& json, const Normalizer& normalizer) {
  const std::string type = json.at("type").as_string();
  if (type == "Sequence") {
    check_keys(json, {"type", "pretokenizers"});
    const Json members = array_at(json, "pretokenizers");
    for (size_t i = 0; i < members.size(); ++i) add(members[i], normalizer);
  } else if (type == "ByteLevel") {
    add_byte_level(json);
  } else if (type == "Metaspace") {
    add_metaspace(json, normalizer);
  } else if (type == "Split") {
    check_keys(json, {"type", "pattern", "behavior", "invert"});
    steps_.push_back(Split{Pattern::from_json(json.at("pattern")), behaviour_from(json),
                           json.at("invert").as_bool()});
  } else if (type == "Digits") {
    check_keys(json, {"type", "individual_digits"});
    const bool individual = json.at("individual_digits").as_bool();
    steps_.push_back(
        Split{Property::numeric, individual ? Behaviour::isolated : Behaviour::contiguous});
  } else if (type == "Punctuation") {
    check_keys(json, {"type", "behavior"});
    steps_.push_back(Split{Property::punctuation,
                           json.has("behavior") ? behaviour_from(json) : Behaviour::isolated});
  } else if (type == "CharDelimiterSplit") {
    check_keys(json, {"type", "delimiter"});
    steps_.push_back(Split{character_at(json, "delimiter"), Behaviour::removed});
  } else if (type == "Whitespace") {
    check_keys(json, {"type"});
    // Cuts like Rust's pattern "\w+|[^\w\s]+".
    steps_.push_back(Split{Property::white_space, Behaviour::removed});
    steps_.push_back(Split{Property::word, Behaviour::contiguous});
  } else if (type == "WhitespaceSplit") {
    check_keys(json, {"type"});
    steps_.push_back(Split{Property::white_space, Behaviour::removed});
  } else if (type == "BertPreTokenizer") {
    check_keys(json, {"type"});
    steps_.push_back(Split{Property::white_space, Behaviour::removed});
    steps_.push_back(Split{Property::punctuation, Behaviour::isolated});
  } else {
    fail_unsupported(json, type,
                     {"BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Digits", "Metaspace",
                      "Punctuation", "Sequence", "Split", "Whitespace", "WhitespaceSplit"});
  }
}

void PreTokenizer::add_byte_level(const Json& json) {
  check_byte_level(json);
  ByteLevel step{json.at("add_prefix_space").as_bool(), std::nullopt};
  if (json.get_bool("use_regex", true)) {
    step.split = Split{Pattern::from_regex(kGpt2, json.where()), Behaviour::isolated};
  }
  steps_.push_back(std::move(step));
}

void PreTokenizer::add_metaspace(const Json& json, const Normalizer& normalizer) {
  const MetaspaceOptions options = metaspace_from(json);
  Metaspace step{{}, options.prepend, options.split};
  append_char(step.replacement, options.replacement);
  if (step.prepend == Prepend::first) check_beginning(json, normalizer);
  steps_.push_back(std::move(step));
}

// Throws unless it is certain which piece begins the text. Cuts alone keep track of it. A
// normalizer may turn the first character into several, and the library counts a cut between those
// as the beginning, too.
void PreTokenizer::check_beginning(const Json& json, const Normalizer& normalizer) const {
  const bool only_cuts = std::all_of(steps_.begin(), steps_.end(), [](const Step& earlier) {
    return std::holds_alternative<Split>(earlier);
  });
  const bool clear = normalizer.empty() || (normalizer.keeps_the_beginning() && steps_.empty());
  if (only_cuts && clear) return;
  fail(json.where(), ": prepend_scheme first is not supported after ",
       only_cuts ? "this normalizer" : "a pre-tokenizer that changes the text");
}

bool PreTokenizer::asks_for_the_beginning() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
    const auto* metaspace = std::get_if<Metaspace>(&step);
    return metaspace && metaspace->prepend == Prepend::first;
  });
}

PreTokenizer::Behaviour PreTokenizer::behaviour_from(const Json& json) {
  const Json behaviour = json.at("behavior");
  const std::string& name = behaviour.as_string();
  if (name == "Removed") return Behaviour::removed;
  if (name == "Isolated") return Behaviour::isolated;
  if (name == "MergedWithPrevious") return Behaviour::merged_with_previous;
  if (name == "MergedWithNext") return Behaviour::merged_with_next;
  if (name == "Contiguous") return Behaviour::contiguous;
  fail(behaviour.where(), ": is ", quote(name),
       ", expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

bool PreTokenizer::ends_in_byte_level() const {
  return !steps_.empty() && std::holds_alternative<ByteLevel>(steps_.back());
}

// `spans` divide `text`, which is the input or lies in one of the buffers.
struct PreTokenizer::Words {
  Scratch& scratch;
  PatternScratch& match;
  std::string_view text;
  GrowthLimit limit;
  size_t next_buffer = 0;

  // Runs `change(piece, index, out)` for every word. The text that it appends replaces the word.
  template <typename Change>
  void rewrite(Change&& change) {
    std::string& out = scratch.buffers[next_buffer];
    out.clear();
    for (size_t i = 0; i < scratch.spans.size(); ++i) {
      check_interrupt();
      Span& span = scratch.spans[i];
      const size_t begin = out.size();
      change(text.substr(span.begin, span.end - span.begin), span, out);
      limit.check(out.size());
      span = {begin, out.size()};
    }
    text = out;
    next_buffer = 1 - next_buffer;
  }

  void keep(const Span& span) {
    if (span.begin < span.end) scratch.next_spans.push_back(span);
  }
};

const std::vector<std::string_view>& PreTokenizer::cut(std::string_view text, bool is_first,
                                                       bool raw_bytes, Scratch& scratch,
                                                       PatternScratch& match) const {
  scratch.words.clear();
  scratch.spans.clear();
  if (!text.empty()) scratch.spans.push_back({0, text.size()});
  Words state{scratch, match, text, GrowthLimit(text.size(), where_)};
  for (const Step& step : steps_) {
    if (const auto* split = std::get_if<Split>(&step)) {
      run(*split, state);
    } else if (const auto* byte_level = std::get_if<ByteLevel>(&step)) {
      run(*byte_level, raw_bytes && &step == &steps_.back(), state);
    } else {
      run(std::get<Metaspace>(step), is_first, state);
    }
  }
  for (const Span& span : scratch.spans) {
    scratch.words.push_back(state.text.substr(span.begin, span.end - span.begin));
  }
  return scratch.words;
}

// Finds cuts that cover all of `text`; some may be empty. Offsets are relative to `text`.
void PreTokenizer::find_cuts(const Split& split, std::string_view text, Words& words) {
  std::vector<Cut>& cuts = words.scratch.cuts;
  cuts.clear();
  size_t covered = 0;
  const auto found = [&](const Pattern::Match& match) {
    if (covered < match.begin) cuts.push_back({{covered, match.begin}, split.invert});
    cuts.push_back({{match.begin, match.end}, !split.invert});
    covered = match.end;
  };
  if (const auto* pattern = std::get_if<Pattern>(&split.delimiter)) {
    pattern->for_each(text, words.match, found);
  } else {
    const auto is_delimiter = [&](char32_t c) {
      if (const auto* exact = std::get_if<char32_t>(&split.delimiter)) return c == *exact;
      const Property property = std::get<Property>(split.delimiter);
      return property == Property::numeric       ? is_numeric(c)
             : property == Property::punctuation ? is_punctuation(c)
             : property == Property::word        ? is_word(c)
                                                 : is_white_space(c);
    };
    InterruptEvery interrupt;
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      interrupt.passed(at);
      if (is_delimiter(next_char(text, at))) found({begin, at});
    }
  }
  if (covered < text.size()) cuts.push_back({{covered, text.size()}, split.invert});
}

namespace {

// Merges neighbours in place: each match joins the piece before it, unless that is a match too.
// Follows the tokenizers library, also if the text begins with a match.
template <typename Cuts, typename Join>
void merge_matches(Cuts& cuts, Join&& join) {
  size_t kept = 0;
  bool previous_match = false;
  for (const auto& cut : cuts) {
    const bool is_match = cut.is_match;
    if (is_match && !previous_match && kept > 0) {
      join(cuts[kept - 1].span, cut.span);
    } else {
      cuts[kept++] = cut;
    }
    previous_match = is_match;
  }
  cuts.resize(kept);
}

}  // namespace

void PreTokenizer::run(const Split& split, Words& words) {
  Scratch& scratch = words.scratch;
  scratch.next_spans.clear();
  for (const Span& piece : scratch.spans) {
    check_interrupt();
    find_cuts(split, words.text.substr(piece.begin, piece.end - piece.begin), words);
    std::vector<Cut>& cuts = scratch.cuts;
    switch (split.behaviour) {
      case Behaviour::isolated:
        break;
      case Behaviour::removed:
        std::erase_if(cuts, [](const Cut& cut) { return cut.is_match; });
        break;
      case Behaviour::merged_with_previous:
        merge_matches(cuts, [](Span& before, const Span& match) { before.end = match.end; });
        break;
      case Behaviour::merged_with_next:
        std::reverse(cuts.begin(), cuts.end());
        merge_matches(cuts, [](Span& after, const Span& match) { after.begin = match.begin; });
        std::reverse(cuts.begin(), cuts.end());
        break;
      case Behaviour::contiguous: {
        size_t kept = 0;
        bool previous_match = false;
        for (const Cut& cut : cuts) {
          const bool is_match = cut.is_match;
          if (is_match == previous_match && kept > 0) {
            cuts[kept - 1].span.end = cut.span.end;
          } else {
            cuts[kept++] = cut;
          }
          previous_match = is_match;
        }
        cuts.resize(kept);
        break;
      }
    }
    for (const Cut& cut : cuts) {
      words.keep({piece.begin + cut.span.begin, piece.begin + cut.span.end});
    }
  }
  scratch.spans.swap(scratch.next_spans);
}

void PreTokenizer::run(const ByteLevel& step, bool raw_bytes, Words& words) {
  const std::string_view text = words.text;
  const auto lacks_space = [&](const Span& span) { return text[span.begin] != ' '; };
  if (step.add_prefix_space &&
      std::any_of(words.scratch.spans.begin(), words.scratch.spans.end(), lacks_space)) {
    words.rewrite([](std::string_view piece, const Span&, std::string& out) {
      if (piece[0] != ' ') out += ' ';
      out += piece;
    });
  }
  if (step.split) run(*step.split, words);
  if (!raw_bytes) {
    words.rewrite([](std::string_view piece, const Span&, std::string& out) {
      append_byte_spelling(out, piece);
    });
  }
}

void PreTokenizer::run(const Metaspace& step, bool is_first, Words& words) {
  words.rewrite([&](std::string_view piece, const Span& span, std::string& out) {
    const bool marked = piece[0] == ' ' || piece.starts_with(step.replacement);
    const bool wanted = step.prepend == Prepend::always ||
                        (step.prepend == Prepend::first && is_first && span.begin == 0);
    if (wanted && !marked) out += step.replacement;
    for (const char c : piece) {
      if (c == ' ') {
        out += step.replacement;
      } else {
        out += c;
      }
    }
  });
  if (!step.split) return;
  size_t end = 0;
  const char32_t replacement = next_char(step.replacement, end);
  run(Split{replacement, Behaviour::merged_with_next}, words);
}

}  // namespace fp8kv
