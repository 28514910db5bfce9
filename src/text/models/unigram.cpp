#include "text/models/unigram.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/interrupt.h"
#include "text/models/parts.h"
#include "unicode/characters.h"

namespace fp8kv {
namespace {

// The penalty of an unknown character, below the worst token's score. Source: both libraries.
constexpr double kUnknownPenalty = 10;
// Source: src/unigram_model.cc of SentencePiece 0.2.3.
constexpr double kLargestSum = 100'000;
// The search covers this many places before it first settles decided tokens.
constexpr size_t kFirstSettled = size_t{64} << 10;

}  // namespace

UnigramTable unigram_table_from_json(const Json& model) {
  check_keys(model, {"type", "unk_id", "vocab", "byte_fallback"});
  UnigramTable table;
  table.where = model.where();
  const Json vocab = array_at(model, "vocab");
  table.vocabulary = Vocabulary(vocab.size());
  double worst = INFINITY;
  for (size_t i = 0; i < vocab.size(); ++i) {
    const Json entry = vocab[i];
    if (!entry.is_array() || entry.size() != 2) {
      fail(entry.where(), ": is ", entry.brief(), ", expected a token and its score");
    }
    const std::string& token = entry[0].as_string();
    if (token.empty()) fail(entry.where(), ": the token is empty");
    if (!table.vocabulary.append(token)) {
      fail(entry.where(), ": the token ", quote(token), " is there twice");
    }
    table.scores.push_back(library_double(entry[1]));
    worst = std::min(worst, table.scores.back());
  }
  table.in_text.assign(table.scores.size(), true);
  table.unknown_score = worst - kUnknownPenalty;
  table.byte_fallback = model.get_bool("byte_fallback", false);
  if (const auto unknown = model.find("unk_id")) {
    const int64_t id = unknown->as_int();
    if (id < 0 || id >= table.vocabulary.end_id()) {
      fail(unknown->where(), ": is ", id, ", expected an id below ", table.vocabulary.end_id());
    }
    table.unknown_id = static_cast<int32_t>(id);
  }
  return table;
}

Unigram::Unigram(UnigramTable table) : table_(std::move(table)) {
  const Vocabulary& vocabulary = table_.vocabulary;
  for (int32_t id = 0; id < vocabulary.end_id(); ++id) {
    if (!table_.in_text[static_cast<size_t>(id)]) continue;
    const std::string_view token = vocabulary.token(id);
    if (token.size() > UINT16_MAX) {
      fail(table_.where, ": the token ", id, " has ", human_bytes(token.size()),
           ", expected at most 64 KiB");
    }
    tokens_.add(token, id);
  }
  if (table_.byte_fallback) byte_pieces_ = BytePieces(vocabulary);
}

// Appends a run of unknown characters. The tokenizers library looks the whole run up as one token.
void Unigram::append_run(std::string_view run, std::vector<int32_t>& ids) const {
  if (table_.rules == UnigramTable::Rules::tokenizers) {
    const int32_t id = table_.vocabulary.find(run);
    if (id != Vocabulary::kNone) return ids.push_back(id);
  }
  if (!byte_pieces_.append(run, ids)) ids.push_back(table_.unknown_id);
}

// The search through one word. Tokens up to the place `base_` are decided and appended.
class Unigram::Search {
 public:
  Search(const Unigram& model, std::string_view word, Scratch& scratch, std::vector<int32_t>& ids)
      : model_(model), word_(word), scratch_(scratch), ids_(ids) {
    size_t ring = 8;  // a character has at most 4 bytes
    while (ring <= model.tokens_.longest()) ring *= 2;
    scratch_.sums.resize(std::max(scratch_.sums.size(), ring));
    mask_ = ring - 1;
    scratch_.sums[0] = 0;
    scratch_.lengths.assign(1, 0);
  }

  void run() {
    InterruptEvery interrupt;
    for (size_t at = 0; at < word_.size();) {
      interrupt.passed(at);
      if (at - base_ >= next_settled_) settle(at);
      at = step(at);
    }
    append_up_to(word_.size());
    end_run(word_.size());
  }

 private:
  uint16_t& length_at(size_t place) { return scratch_.lengths[place - base_]; }

  // Tries all tokens that begin at `at`. Returns the place of the next character.
  size_t step(size_t at) {
    if (rounds()) keep_precise(at);
    const double sum = scratch_.sums[at & mask_];
    const size_t next = at + utf8_front(word_.substr(at, 4)).length;
    const size_t farthest =
        std::min(word_.size(), at + std::max<size_t>(model_.tokens_.longest(), 4));
    scratch_.lengths.resize(std::max(scratch_.lengths.size(), farthest - base_ + 1));
    bool has_character = false;
    model_.tokens_.for_each_at(word_, at, [&](size_t length, int32_t id) {
      consider(at, length, sum + model_.table_.scores[static_cast<size_t>(id)]);
      has_character = has_character || at + length == next;
    });
    if (!has_character) {
      if (consider(at, next - at, sum + model_.table_.unknown_score) &&
          model_.table_.unknown_id == Vocabulary::kNone) {
        fail(model_.table_.where, ".unk_id: is missing, and ", quote(word_.substr(at, next - at)),
             " needs it");
      }
    }
    return next;
  }

  bool consider(size_t at, size_t length, double sum) {
    double& best = scratch_.sums[(at + length) & mask_];
    uint16_t& best_length = length_at(at + length);
    if (rounds()) sum = static_cast<float>(sum);
    if (best_length != 0 && !(sum > best)) return false;
    best = sum;
    best_length = static_cast<uint16_t>(length);
    return true;
  }

  // SentencePiece keeps sums precise: it subtracts a large sum from those of all reached places.
  void keep_precise(size_t at) {
    const double offset = scratch_.sums[at & mask_];
    if (std::abs(offset) <= kLargestSum) return;
    for (size_t place = at; place - base_ < scratch_.lengths.size(); ++place) {
      double& sum = scratch_.sums[place & mask_];
      if (place == at || length_at(place) != 0) sum = static_cast<float>(sum - offset);
    }
  }

  bool rounds() const { return model_.table_.rules == UnigramTable::Rules::sentencepiece; }

  // Appends the tokens that all possible best ways share. These end where the ways to all places
  // reached from before `at` meet.
  void settle(size_t at) {
    std::vector<size_t>& places = scratch_.places;  // a heap: the farthest is first
    places.assign(1, at);
    for (size_t place = at + 1; place - base_ < scratch_.lengths.size(); ++place) {
      if (length_at(place) != 0) places.push_back(place);
    }
    std::make_heap(places.begin(), places.end());
    size_t nearest = at;
    while (places.front() != nearest) {
      check_interrupt();
      const size_t place = places.front();
      while (!places.empty() && places.front() == place) {
        std::pop_heap(places.begin(), places.end());
        places.pop_back();
      }
      const size_t before = place - length_at(place);
      nearest = std::min(nearest, before);
      places.push_back(before);
      std::push_heap(places.begin(), places.end());
    }
    append_up_to(places.front());
    next_settled_ = std::max(kFirstSettled, 2 * (at - base_));
  }

  void append_up_to(size_t place) {
    scratch_.ends.clear();
    for (size_t end = place; end > base_; end -= length_at(end)) scratch_.ends.push_back(end);
    size_t begin = base_;
    while (!scratch_.ends.empty()) {
      append(begin, scratch_.ends.back());
      begin = scratch_.ends.back();
      scratch_.ends.pop_back();
    }
    scratch_.lengths.erase(scratch_.lengths.begin(),
                           scratch_.lengths.begin() + static_cast<ptrdiff_t>(place - base_));
    base_ = place;
  }

  void append(size_t begin, size_t end) {
    int32_t id = model_.table_.vocabulary.find(word_.substr(begin, end - begin));
    if (id == Vocabulary::kNone || !model_.table_.in_text[static_cast<size_t>(id)]) {
      id = model_.table_.unknown_id;
    }
    if (id == model_.table_.unknown_id) {
      if (!in_run_) run_begin_ = begin;
      in_run_ = true;
      return;
    }
    end_run(begin);
    ids_.push_back(id);
  }

  void end_run(size_t end) {
    if (in_run_) model_.append_run(word_.substr(run_begin_, end - run_begin_), ids_);
    in_run_ = false;
  }

  const Unigram& model_;
  std::string_view word_;
  Scratch& scratch_;
  std::vector<int32_t>& ids_;
  size_t mask_;
  size_t base_ = 0;
  size_t next_settled_ = kFirstSettled;
  bool in_run_ = false;
  size_t run_begin_ = 0;
};

void Unigram::encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  Search(*this, word, scratch, ids).run();
}

}  // namespace fp8kv
