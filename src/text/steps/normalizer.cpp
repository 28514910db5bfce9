#include "text/steps/normalizer.h"

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"
#include "text/models/parts.h"
#include "unicode/characters.h"

namespace fp8kv {

Normalizer Normalizer::from_json(const std::optional<Json>& normalizer) {
  Normalizer made;
  if (!normalizer) return made;
  made.where_ = normalizer->where();
  made.add(*normalizer);
  return made;
}

Normalizer Normalizer::of_pieces(PieceNormalizer normalizer, const std::string& where) {
  Normalizer made;
  made.where_ = where;
  made.steps_.emplace_back(std::make_shared<const PieceNormalizer>(std::move(normalizer)));
  return made;
}

// Returns the step of a type that has no members.
std::optional<Normalizer::Step> Normalizer::plain_step(const std::string& type) {
  if (type == "NFC") return NormalForm::nfc;
  if (type == "NFD") return NormalForm::nfd;
  if (type == "NFKC") return NormalForm::nfkc;
  if (type == "NFKD") return NormalForm::nfkd;
  if (type == "Lowercase") return Lowercase{};
  if (type == "StripAccents") return StripAccents{};
  if (type == "Nmt") return Nmt{};
  if (type == "ByteLevel") return Bytes{};
  return std::nullopt;
}

void Normalizer::add(const Json& normalizer) {
  const std::string type = normalizer.at("type").as_string();
  if (type == "Sequence") {
    check_keys(normalizer, {"type", "normalizers"});
    const Json members = array_at(normalizer, "normalizers");
    for (size_t i = 0; i < members.size(); ++i) add(members[i]);
  } else if (type == "Prepend") {
    check_keys(normalizer, {"type", "prepend"});
    steps_.push_back(Prepend{normalizer.at("prepend").as_string()});
  } else if (type == "Replace") {
    check_keys(normalizer, {"type", "pattern", "content"});
    const Json json = normalizer.at("pattern");
    Replace step{Pattern::from_json(json), normalizer.at("content").as_string(), false};
    // The library's result would depend on the steps behind it: it may insert twice.
    if (step.pattern.can_match_nothing()) {
      fail(json.where(), ": a pattern that can match nothing is not supported in a normalizer");
    }
    const std::string& literal = step.pattern.literal();
    size_t end = 0;
    if (!literal.empty()) next_char(literal, end);
    step.one_character = end > 0 && end == literal.size() && !step.content.empty();
    steps_.push_back(std::move(step));
  } else if (type == "Strip") {
    check_keys(normalizer, {"type", "strip_left", "strip_right"});
    steps_.push_back(
        Strip{normalizer.at("strip_left").as_bool(), normalizer.at("strip_right").as_bool()});
  } else {
    const std::optional<Step> plain = plain_step(type);
    if (!plain) {
      fail_unsupported(normalizer, type,
                       {"ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Prepend",
                        "Replace", "Sequence", "Strip", "StripAccents"});
    }
    check_keys(normalizer, {"type"});
    steps_.push_back(*plain);
  }
}

std::string_view Normalizer::apply(std::string_view text, bool is_first, Scratch& scratch,
                                   PatternScratch& match) const {
  size_t next = 0;
  const GrowthLimit limit(text.size(), where_);
  for (const Step& step : steps_) {
    std::string& out = scratch.buffers[next];
    std::string_view result;
    if (const auto* pieces = std::get_if<Pieces>(&step)) {
      (*pieces)->apply(text, is_first, out, limit);
      result = out;
    } else {
      result = run(step, text, out, match, limit);
    }
    limit.check(result.size());
    // The next step must not write to the buffer that holds its input.
    if (result.data() == out.data()) next = 1 - next;
    text = result;
  }
  return text;
}

bool Normalizer::keeps_the_beginning() const {
  return std::all_of(steps_.begin(), steps_.end(), [](const Step& step) {
    if (const auto* replace = std::get_if<Replace>(&step)) return replace->one_character;
    return std::holds_alternative<NormalForm>(step) || std::holds_alternative<Lowercase>(step);
  });
}

namespace {

std::string_view strip(std::string_view text, bool left, bool right) {
  size_t begin = 0;
  for (size_t at = 0; left && at < text.size();) {
    if (!is_white_space(next_char(text, at))) break;
    begin = at;
  }
  size_t end = text.size();
  while (right && end > begin) {
    const char32_t last = last_char(text.substr(0, end));
    if (!is_white_space(last)) break;
    do {
      --end;
    } while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  }
  return text.substr(begin, end - begin);
}

// Follows sentencepiece's normalizer named "nmt": drops controls, and turns odd blanks into spaces.
void append_nmt(std::string& out, char32_t c) {
  const bool dropped = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
                       c == 0x7F || c == 0x8F || c == 0x9F;
  const bool blank = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                     (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xFEFF || c == 0xFFFD;
  if (!dropped) append_char(out, blank ? U' ' : c);
}

template <typename Change>
std::string_view for_each_char(std::string_view text, std::string& out, Change&& change) {
  out.clear();
  InterruptEvery interrupt;
  for (size_t at = 0; at < text.size();) {
    interrupt.passed(at);
    change(next_char(text, at));
  }
  return out;
}

}  // namespace

void Normalizer::replace(const Replace& step, std::string_view text, std::string& out,
                         PatternScratch& match, const GrowthLimit& limit) {
  out.clear();
  size_t copied = 0;
  step.pattern.for_each(text, match, [&](const Pattern::Match& found) {
    out += text.substr(copied, found.begin - copied);
    limit.check(out.size() + step.content.size());
    out += step.content;
    copied = found.end;
  });
  out += text.substr(copied);
}

std::string_view Normalizer::run(const Step& step, std::string_view text, std::string& out,
                                 PatternScratch& match, const GrowthLimit& limit) {
  if (const auto* form = std::get_if<NormalForm>(&step))
    return normal_form(text, *form, out, check_interrupt);
  if (const auto* prepend = std::get_if<Prepend>(&step)) {
    if (text.empty()) return text;
    limit.check(prepend->text.size() + text.size());
    out.assign(prepend->text);
    return out += text;
  }
  if (const auto* replacing = std::get_if<Replace>(&step)) {
    replace(*replacing, text, out, match, limit);
    return out;
  }
  if (const auto* sides = std::get_if<Strip>(&step)) return strip(text, sides->left, sides->right);
  if (std::holds_alternative<Lowercase>(step)) {
    return for_each_char(text, out, [&](char32_t c) { append_lower(out, c); });
  }
  if (std::holds_alternative<StripAccents>(step)) {
    return for_each_char(text, out, [&](char32_t c) {
      if (!is_combining_mark(c)) append_char(out, c);
    });
  }
  if (std::holds_alternative<Nmt>(step)) {
    return for_each_char(text, out, [&](char32_t c) { append_nmt(out, c); });
  }
  out.clear();
  append_byte_spelling(out, text);
  return out;
}

}  // namespace fp8kv
