#include "text/sentencepiece/piece_normalizer.h"

#include "base/interrupt.h"
#include "unicode/characters.h"

namespace fp8kv {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

PieceNormalizer::PieceNormalizer(const SentencePieceFile& file, bool prefix_once)
    : space_(file.escape_whitespaces ? kSpaceSymbol : " "),
      add_prefix_(file.add_dummy_prefix && !file.whitespace_as_suffix),
      prefix_once_(prefix_once),
      add_suffix_(file.add_dummy_prefix && file.whitespace_as_suffix),
      remove_extra_(file.remove_extra_whitespaces) {
  for (const std::string_view piece : file.user_defined()) kept_.add(piece, 0);
  if (!file.charsmap.empty()) {
    charsmap_ = Charsmap(file.charsmap, file.where + ": normalizer_spec.precompiled_charsmap");
  }
}

PieceNormalizer::Front PieceNormalizer::front(std::string_view text) const {
  if (const auto kept = kept_.longest_at(text, 0))
    return {text.substr(0, kept->length), kept->length};
  if (const auto match = charsmap_.longest(text)) return {match->replacement, match->length};
  // A rule that ends inside a character leaves the rest of that character.
  const size_t length = utf8_front(text.substr(0, 4)).length;
  if (length == 0) return {kReplacement, 1};
  return {text.substr(0, length), length};
}

void PieceNormalizer::append(std::string_view text, std::string& out) const {
  for (const char c : text) {
    if (c == ' ') {
      out += space_;
    } else {
      out += c;
    }
  }
}

void PieceNormalizer::apply(std::string_view text, bool is_first, std::string& out,
                            const GrowthLimit& limit) const {
  out.clear();
  size_t at = 0;
  InterruptEvery interrupt;
  for (; remove_extra_ && at < text.size();) {
    interrupt.passed(at);
    const Front next = front(text.substr(at));
    if (next.text != " ") break;
    at += next.length;
  }
  if (at == text.size()) return;
  if (add_prefix_ && (is_first || !prefix_once_)) out += space_;
  bool after_space = remove_extra_;
  while (at < text.size()) {
    interrupt.passed(at);
    Front next = front(text.substr(at));
    while (after_space && next.text.starts_with(' ')) next.text.remove_prefix(1);
    if (!next.text.empty()) {
      append(next.text, out);
      limit.check(out.size());
      after_space = remove_extra_ && next.text.ends_with(' ');
    }
    at += next.length;
  }
  while (remove_extra_ && out.ends_with(space_)) out.resize(out.size() - space_.size());
  if (add_suffix_) out += space_;
}

}  // namespace fp8kv
