#include "text/steps/decoder.h"

#include <algorithm>

#include "base/error.h"
#include "text/models/byte_pieces.h"
#include "text/models/parts.h"
#include "text/steps/shared_steps.h"
#include "unicode/characters.h"

namespace fp8kv {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

size_t count_at(const Json& json, std::string_view key) {
  const Json value = json.at(key);
  const int64_t count = value.as_int();
  if (count < 0) fail(value.where(), ": is ", count, ", expected 0 or more");
  return static_cast<size_t>(count);
}

// Returns 10 for "<0x0A>", and -1 for any other token. Like the library, takes digits of either
// case.
int byte_of_any_piece(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const int lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  // Rust's from_str_radix accepts a sign.
  const int high = token[3] == '+' ? 0 : digit(token[3]);
  const int low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

}  // namespace

Decoder Decoder::from_json(const std::optional<Json>& decoder) {
  Decoder made;
  if (decoder) {
    made.where_ = decoder->where();
    made.add(*decoder);
  } else {
    made.steps_.emplace_back(Spaces{});
  }
  return made;
}

Decoder Decoder::of_pieces(const SentencePieceFile& file) {
  Decoder made;
  made.where_ = file.where;
  made.steps_.emplace_back(
      Pieces{file.byte_fallback, file.add_dummy_prefix || file.remove_extra_whitespaces,
             file.remove_extra_whitespaces, file.pieces[static_cast<size_t>(file.unknown_id)].text,
             file.unknown_surface});
  return made;
}

void Decoder::add(const Json& json) {
  const std::string type = json.at("type").as_string();
  if (type == "Sequence") {
    check_keys(json, {"type", "decoders"});
    const Json members = array_at(json, "decoders");
    for (size_t i = 0; i < members.size(); ++i) add(members[i]);
  } else if (type == "ByteLevel") {
    check_byte_level(json);
    steps_.emplace_back(ByteLevel{});
  } else if (type == "ByteFallback") {
    check_keys(json, {"type"});
    steps_.emplace_back(ByteFallback{});
  } else if (type == "Fuse") {
    check_keys(json, {"type"});
    steps_.emplace_back(Fuse{});
  } else if (type == "Replace") {
    check_keys(json, {"type", "pattern", "content"});
    steps_.emplace_back(
        Replace{Pattern::from_json(json.at("pattern")), json.at("content").as_string()});
  } else if (type == "Strip") {
    check_keys(json, {"type", "content", "start", "stop"});
    Strip step{{}, count_at(json, "start"), count_at(json, "stop")};
    append_char(step.content, character_at(json, "content"));
    steps_.emplace_back(std::move(step));
  } else if (type == "Metaspace") {
    const MetaspaceOptions options = metaspace_from(json);
    Metaspace step{{}, options.prepend != MetaspaceOptions::Prepend::never};
    append_char(step.replacement, options.replacement);
    steps_.emplace_back(std::move(step));
  } else if (type == "BPEDecoder") {
    check_keys(json, {"type", "suffix"});
    Suffix step{json.at("suffix").as_string()};
    if (step.suffix.empty()) fail(json.at("suffix").where(), ": is empty, expected a suffix");
    steps_.emplace_back(std::move(step));
  } else {
    fail_unsupported(json, type,
                     {"BPEDecoder", "ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace",
                      "Sequence", "Strip"});
  }
}

Decoding::Decoding(const Decoder& decoder, Broken broken)
    : steps_(decoder.steps_),
      broken_(broken),
      states_(decoder.steps_.size()),
      limit_(0, decoder.where_) {}

std::string Decoding::replaced(std::string_view text, std::string_view from,
                               std::string_view to) const {
  std::string out;
  size_t copied = 0;
  for (size_t at; (at = text.find(from, copied)) != text.npos; copied = at + from.size()) {
    out += text.substr(copied, at - copied);
    limit_.check(out.size() + to.size());
    out += to;
  }
  return out += text.substr(copied);
}

void Decoding::add(std::string_view token) {
  limit_.add_given(token.size() + 1);  // the text on both sides of a space can be empty
  text(0, token);
  end_token(0);
}

void Decoding::finish() {
  for (size_t step = 0; step < steps_.size(); ++step) finish(step);
}

void Decoding::text(size_t step, std::string_view fragment) {
  if (step == steps_.size()) {
    made_ += fragment.size();
    limit_.check(made_);
    out_ += fragment;
    return;
  }
  State& state = states_[step];
  const Decoder::Step& kind = steps_[step];
  if (std::holds_alternative<Decoder::Fuse>(kind)) return pass(step, fragment);
  if (const auto* sides = std::get_if<Decoder::Strip>(&kind)) return strip(step, *sides, fragment);
  if (const auto* space = std::get_if<Decoder::Metaspace>(&kind)) {
    const bool dropped = state.tokens == 0 && space->prepended;
    return pass(step, replaced(fragment, space->replacement, dropped ? "" : " "));
  }
  const auto* replace = std::get_if<Decoder::Replace>(&kind);
  if (replace && !replace->pattern.literal().empty() &&
      utf8_front(replace->pattern.literal()).length == replace->pattern.literal().size()) {
    // A single character: later fragments cannot change this one.
    return pass(step, replaced(fragment, replace->pattern.literal(), replace->content));
  }
  state.token += fragment;
}

void Decoding::end_token(size_t step) {
  if (step == steps_.size()) return;
  State& state = states_[step];
  const Decoder::Step& kind = steps_[step];
  if (std::holds_alternative<Decoder::Fuse>(kind)) return;
  whole_token(step, kind);
  ++state.tokens;
  state.stripped = 0;
}

// Handles a complete token. It is in `state.token` for the kinds that collect it.
void Decoding::whole_token(size_t step, const Decoder::Step& kind) {
  State& state = states_[step];
  const std::string token = std::exchange(state.token, {});
  if (std::holds_alternative<Decoder::ByteLevel>(kind)) {
    // A token with characters outside the byte alphabet stands for itself.
    std::string bytes;
    for (size_t at = 0; at < token.size();) {
      const char32_t c = next_char(token, at);
      const int byte = c < ByteAlphabet::kEnd ? byte_alphabet().to_byte[c] : -1;
      if (byte < 0) {
        bytes = token;
        break;
      }
      bytes += static_cast<char>(byte);
    }
    state.held += bytes;
    return flush_bytes(step, false);
  }
  if (std::holds_alternative<Decoder::ByteFallback>(kind)) {
    const int byte = byte_of_any_piece(token);
    if (byte >= 0) {
      state.held += static_cast<char>(byte);
      return;
    }
    flush_byte_pieces(step);
    pass(step, token);
  } else if (const auto* pieces = std::get_if<Decoder::Pieces>(&kind)) {
    return add_piece(step, *pieces, token);
  } else if (const auto* replace = std::get_if<Decoder::Replace>(&kind)) {
    std::string out;
    size_t copied = 0;
    replace->pattern.for_each(token, match_, [&](const Pattern::Match& found) {
      out.append(token, copied, found.begin - copied);
      limit_.check(out.size() + replace->content.size());
      out += replace->content;
      copied = found.end;
    });
    pass(step, out.append(token, copied));
  } else if (std::holds_alternative<Decoder::Spaces>(kind)) {
    if (state.tokens > 0) pass(step, " ");
    pass(step, token);
  } else if (std::holds_alternative<Decoder::Strip>(kind)) {
    state.held.clear();  // the characters to strip at the end
  } else if (const auto* suffix = std::get_if<Decoder::Suffix>(&kind)) {
    // Every token except the last gets a space in place of its suffix.
    if (state.holds) {
      pass(step, replaced(state.held, suffix->suffix, " "));
      end_token(step + 1);
    }
    state.held = token;
    state.holds = true;
    return;
  }
  end_token(step + 1);
}

void Decoding::finish(size_t step) {
  State& state = states_[step];
  const Decoder::Step& kind = steps_[step];
  if (std::holds_alternative<Decoder::ByteLevel>(kind)) {
    flush_bytes(step, true);
    end_token(step + 1);
  } else if (std::holds_alternative<Decoder::ByteFallback>(kind)) {
    flush_byte_pieces(step);
  } else if (std::holds_alternative<Decoder::Pieces>(kind)) {
    flush_piece_bytes(step, true);
    end_token(step + 1);
  } else if (std::holds_alternative<Decoder::Fuse>(kind)) {
    end_token(step + 1);
  } else if (const auto* suffix = std::get_if<Decoder::Suffix>(&kind); suffix && state.holds) {
    pass(step, replaced(state.held, suffix->suffix, ""));
    end_token(step + 1);
  }
}

// Passes on the complete characters of the held bytes, and U+FFFD for invalid bytes.
void Decoding::flush_bytes(size_t step, bool last) {
  std::string& held = states_[step].held;
  if (broken_ == Broken::kept) return pass(step, std::exchange(held, {}));
  std::string characters;
  size_t at = 0;
  while (at < held.size()) {
    const Utf8Front front = utf8_front(std::string_view(held).substr(at));
    if (front.length == 0 && front.prefix_of_valid && !last) break;
    characters += front.length > 0 ? std::string_view(held).substr(at, front.length) : kReplacement;
    at += front.length > 0 ? front.length : front.bad;
  }
  held.erase(0, at);
  pass(step, characters);
}

// A run of byte pieces is one token if it is valid UTF-8, else one U+FFFD for each byte.
void Decoding::flush_byte_pieces(size_t step) {
  const std::string run = std::exchange(states_[step].held, {});
  if (run.empty()) return;
  if (broken_ == Broken::kept || is_utf8(run)) {
    pass(step, run);
    return end_token(step + 1);
  }
  for (size_t i = 0; i < run.size(); ++i) {
    pass(step, kReplacement);
    end_token(step + 1);
  }
}

// Follows SentencePiece: one U+FFFD for each byte that belongs to no character.
void Decoding::flush_piece_bytes(size_t step, bool last) {
  State& state = states_[step];
  std::string characters;
  if (broken_ == Broken::kept) characters = std::exchange(state.held, {});
  size_t at = 0;
  while (at < state.held.size()) {
    const Utf8Front front = utf8_front(std::string_view(state.held).substr(at));
    if (front.length == 0 && front.prefix_of_valid && !last) break;
    characters +=
        front.length > 0 ? std::string_view(state.held).substr(at, front.length) : kReplacement;
    at += std::max<size_t>(front.length, 1);
  }
  state.held.erase(0, at);
  if (!characters.empty()) state.at_beginning = false;
  pass(step, characters);
}

// Drops the space that was added before the text, or all spaces at the beginning.
void Decoding::add_piece(size_t step, const Decoder::Pieces& kind, std::string_view piece) {
  constexpr std::string_view kSpace = "\xE2\x96\x81";
  State& state = states_[step];
  const int byte = kind.bytes ? byte_of_piece(piece) : -1;
  if (byte >= 0) {
    state.held += static_cast<char>(byte);
    return flush_piece_bytes(step, false);
  }
  flush_piece_bytes(step, true);
  if (state.dropped) state.at_beginning = false;
  const bool is_unknown = piece == kind.unknown;
  if (!is_unknown && state.at_beginning && kind.drops_space && piece.starts_with(kSpace)) {
    piece.remove_prefix(kSpace.size());
    state.dropped = !kind.drops_spaces;
  }
  const std::string shown = is_unknown ? kind.unknown_surface : replaced(piece, kSpace, " ");
  if (!shown.empty()) state.at_beginning = false;
  pass(step, shown);
}

void Decoding::strip(size_t step, const Decoder::Strip& kind, std::string_view fragment) {
  State& state = states_[step];
  // `stripped` counts up to `start`. Any other character ends the stripping.
  while (state.stripped < kind.start && !fragment.empty()) {
    if (!fragment.starts_with(kind.content)) {
      state.stripped = kind.start;
      break;
    }
    fragment.remove_prefix(kind.content.size());
    ++state.stripped;
  }
  if (kind.stop == 0) return pass(step, fragment);
  state.held += fragment;
  size_t tail = 0;  // number of trailing characters that may be stripped
  size_t begin = state.held.size();
  while (tail < kind.stop &&
         std::string_view(state.held).substr(0, begin).ends_with(kind.content)) {
    begin -= kind.content.size();
    ++tail;
  }
  const std::string certain = state.held.substr(0, begin);
  state.held.erase(0, begin);
  pass(step, certain);
}

}  // namespace fp8kv
