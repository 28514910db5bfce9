#include "text/tokenizer.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "json/json.h"
#include "text/tokenizer_parts.h"
#include "unicode/characters.h"

namespace fp8kv {
namespace {

// The buffers of encoding, kept between calls together with the cache of words.
struct EncodeScratch {
  PatternScratch match;
  Normalizer::Scratch normalizer;
  PreTokenizer::Scratch pre_tokenizer;
  TokenModel::Scratch model;
  std::vector<AddedTokens::Piece> pieces;
  std::vector<AddedTokens::Piece> normalized_pieces;
};

// Hands out one scratch to each encode() that runs at the same time.
class ScratchPool {
 public:
  std::unique_ptr<EncodeScratch> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<EncodeScratch>();
    auto scratch = std::move(free_.back());
    free_.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<EncodeScratch> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<EncodeScratch>> free_;
};

}  // namespace

struct Tokenizer::State : TokenizerParts {
  explicit State(TokenizerParts parts) : TokenizerParts(std::move(parts)) {}

  // `guard`: hides control tokens in normalised text; nullptr hides none.
  void encode_text(std::string_view text, bool is_first, const TokenGuard* guard,
                   EncodeScratch& scratch, std::vector<int32_t>& ids) const;
  bool has(int32_t id) const { return added.text(id) != nullptr || model.vocabulary().has(id); }
  std::string_view token_text(int32_t id) const;
  int32_t end_id() const { return std::max(model.vocabulary().end_id(), added.end_id()); }

  mutable ScratchPool pool;
};

void Tokenizer::State::encode_text(std::string_view text, bool is_first, const TokenGuard* guard,
                                   EncodeScratch& scratch, std::vector<int32_t>& ids) const {
  const auto encode_cut = [&](std::string_view part, bool part_is_first) {
    for (const std::string_view word : pre_tokenizer.cut(
             part, part_is_first, model.takes_raw_bytes(), scratch.pre_tokenizer, scratch.match)) {
      check_interrupt();
      model.encode(word, scratch.model, ids);
    }
  };
  const std::string_view normalized =
      normalizer.apply(text, is_first, scratch.normalizer, scratch.match);
  if (!added.any(true)) return encode_cut(normalized, is_first);
  auto& pieces = scratch.normalized_pieces;
  pieces.clear();
  added.cut(normalized, true, pieces, guard);
  for (const AddedTokens::Piece& piece : pieces) {
    if (piece.id != Vocabulary::kNone) {
      ids.push_back(piece.id);
    } else {
      encode_cut(normalized.substr(piece.begin, piece.end - piece.begin),
                 is_first && piece.begin == 0);
    }
  }
}

std::string_view Tokenizer::State::token_text(int32_t id) const {
  if (const std::string* text = added.text(id)) return *text;
  if (!model.vocabulary().has(id)) {
    fail("the token id ", id, " is not in the vocabulary (ids go from 0 to ", end_id() - 1, ")");
  }
  return model.vocabulary().token(id);
}

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  return Tokenizer(std::make_unique<const State>(parts_from_json(Json::read(path))));
}

std::optional<Tokenizer> Tokenizer::find_in(const std::filesystem::path& folder) {
  const auto has = [&](const char* name) { return std::filesystem::exists(folder / name); };
  if (has("tokenizer.json")) return load(folder / "tokenizer.json");
  if (has("tekken.json")) {
    const Json json = Json::read(folder / "tekken.json");
    return Tokenizer(std::make_unique<const State>(parts_from_tekken(json)));
  }
  if (has("tokenizer.model")) {
    return Tokenizer(std::make_unique<const State>(parts_from_pieces(folder)));
  }
  if (has("vocab.json") && has("merges.txt")) {
    return Tokenizer(std::make_unique<const State>(parts_from_merges(folder)));
  }
  return std::nullopt;
}

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  std::vector<int32_t> ids = encode_with(text, nullptr);
  if (add_special_tokens) {
    ids.insert(ids.begin(), state_->affixes.prefix.begin(), state_->affixes.prefix.end());
    ids.insert(ids.end(), state_->affixes.suffix.begin(), state_->affixes.suffix.end());
  }
  return ids;
}

std::vector<int32_t> Tokenizer::encode_guarded(std::string_view text,
                                               std::span<const TextSpan> closed,
                                               const std::unordered_set<int32_t>& control) const {
  TokenGuard guard{closed, control};
  guard.by_content = state_->added.are_spelled(text, guard);
  return encode_with(text, &guard);
}

std::unordered_set<int32_t> Tokenizer::control_tokens(std::string_view literals) const {
  return state_->added.control_tokens(literals);
}

std::vector<int32_t> Tokenizer::encode_with(std::string_view text, const TokenGuard* guard) const {
  size_t bad_at = 0;
  if (!is_utf8(text, &bad_at)) fail("the text is not valid UTF-8 at byte ", bad_at);
  std::unique_ptr<EncodeScratch> scratch = state_->pool.take();
  std::vector<int32_t> ids;
  const bool by_content = guard != nullptr && guard->by_content;
  const TokenGuard* later = by_content ? guard : nullptr;
  if (!state_->added.any(false) && !by_content) {
    state_->encode_text(text, true, later, *scratch, ids);
  } else {
    scratch->pieces.clear();
    state_->added.cut(text, false, scratch->pieces, guard);
    for (const AddedTokens::Piece& piece : scratch->pieces) {
      if (piece.id != Vocabulary::kNone) {
        ids.push_back(piece.id);
      } else {
        state_->encode_text(text.substr(piece.begin, piece.end - piece.begin), piece.begin == 0,
                            later, *scratch, ids);
      }
    }
  }
  state_->pool.give_back(std::move(scratch));
  return ids;
}

namespace {

template <typename State>
void add_token(const State& state, int32_t id, bool skip_special_tokens, Decoding& decoding) {
  if (!state.has(id)) return;
  const std::string_view token = state.token_text(id);
  if (!skip_special_tokens || !state.added.is_skipped(token)) decoding.add(token);
}

}  // namespace

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  Decoding decoding(state_->decoder);
  for (const int32_t id : ids) {
    check_interrupt();
    add_token(*state_, id, skip_special_tokens, decoding);
  }
  decoding.finish();
  return decoding.take();
}

// Decodes the id twice in a row and returns what the second one adds. Decoders may drop a space at
// the beginning of a text.
std::string Tokenizer::bytes_of(int32_t id) const {
  const auto times = [&](int count) {
    Decoding decoding(state_->decoder, Broken::kept);
    for (int i = 0; i < count; ++i) add_token(*state_, id, false, decoding);
    decoding.finish();
    return decoding.take();
  };
  return times(2).substr(times(1).size());
}

std::string Tokenizer::text_of(int32_t id) const {
  const std::string bytes = bytes_of(id);
  std::string text;
  for (std::string_view rest = bytes; !rest.empty();) {
    const Utf8Front front = utf8_front(rest);
    text += front.length > 0 ? rest.substr(0, front.length) : std::string_view("\xEF\xBF\xBD");
    rest.remove_prefix(front.length > 0 ? front.length : std::max<size_t>(front.bad, 1));
  }
  return text;
}

const std::vector<int32_t>& Tokenizer::prefix() const {
  return state_->affixes.prefix;
}

const std::vector<int32_t>& Tokenizer::suffix() const {
  return state_->affixes.suffix;
}

int32_t Tokenizer::vocab_size() const {
  return state_->end_id();
}

bool Tokenizer::has(int32_t id) const {
  return state_->has(id);
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  int32_t id = state_->added.find(token);
  if (id == Vocabulary::kNone) id = state_->model.vocabulary().find(token);
  return id == Vocabulary::kNone ? std::nullopt : std::optional(id);
}

std::string_view Tokenizer::token(int32_t id) const {
  return state_->token_text(id);
}

bool Tokenizer::is_special(int32_t id) const {
  return state_->added.is_special(id);
}

TokenStream::TokenStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                         bool skip_special_tokens)
    : tokenizer_(tokenizer),
      skip_special_tokens_(skip_special_tokens),
      decoding_(std::make_unique<Decoding>(tokenizer.state_->decoder)) {
  for (const int32_t id : prompt) {
    add_token(*tokenizer.state_, id, skip_special_tokens, *decoding_);
  }
  // The prompt was shown in full, including text that `decoding_` still holds back.
  const std::string certain = decoding_->take();
  seen_ = tokenizer.decode(prompt, skip_special_tokens).substr(certain.size());
}

TokenStream::~TokenStream() = default;

std::string TokenStream::add(int32_t id) {
  add_token(*tokenizer_.state_, id, skip_special_tokens_, *decoding_);
  return unseen(decoding_->take());
}

std::string TokenStream::finish() {
  decoding_->finish();
  return unseen(decoding_->take());
}

// Removes text that was already shown at the end of the prompt. If that ended in half a character,
// the texts differ, and the complete character is returned.
std::string TokenStream::unseen(std::string text) {
  const size_t shorter = std::min(text.size(), seen_.size());
  if (text.compare(0, shorter, seen_, 0, shorter) != 0) {
    seen_.clear();
    return text;
  }
  seen_.erase(0, shorter);
  return text.substr(shorter);
}

}  // namespace fp8kv
