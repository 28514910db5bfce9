#include "text/models/bpe.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "unicode/characters.h"

namespace fp8kv {
namespace {

constexpr int32_t kGone = -2;
// Up to this many symbols, a scan over all pairs is faster than a heap.
constexpr size_t kShort = 32;

size_t slot_of(std::string_view word, size_t slots) {
  return std::hash<std::string_view>{}(word) & (slots - 1);
}

}  // namespace

bool WordCache::find(std::string_view word, std::vector<int32_t>& ids) const {
  if (word.size() > kLongestWord || slots_.empty()) return false;
  const Slot& slot = slots_[slot_of(word, kSlots)];
  if (slot.length != word.size() || std::memcmp(slot.word.data(), word.data(), word.size()) != 0) {
    return false;
  }
  ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
  return true;
}

void WordCache::store(std::string_view word, const int32_t* ids, size_t count) {
  if (word.size() > kLongestWord || count > kMostIds) return;
  if (slots_.empty()) slots_.resize(kSlots);
  Slot& slot = slots_[slot_of(word, kSlots)];
  slot.length = static_cast<uint8_t>(word.size());
  slot.count = static_cast<uint8_t>(count);
  std::copy(word.begin(), word.end(), slot.word.begin());
  std::copy_n(ids, count, slot.ids.begin());
}

Bpe::Bpe(BpeTable table, bool byte_spelled)
    : where_(std::move(table.where)),
      vocabulary_(std::move(table.vocabulary)),
      bare_characters_(std::move(table.bare_characters)),
      merges_(table.merges.size()),
      continuing_prefix_(std::move(table.continuing_prefix)),
      end_suffix_(std::move(table.end_suffix)),
      unknown_(table.unknown),
      fuse_unknown_(table.fuse_unknown),
      ignore_merges_(table.ignore_merges) {
  if (unknown_) unknown_id_ = vocabulary_.find(*unknown_);
  if (table.byte_fallback) byte_pieces_ = BytePieces(vocabulary_);
  find_byte_tokens(byte_spelled);
  find_characters();
  for (const BpeTable::Merge& merge : table.merges) {
    // If a pair is listed twice, the last one counts, as in the tokenizers library.
    merges_[pair_key(merge.left, merge.right)] = {merge.rank, merge.merged};
  }
  allow_cuts(table);
}

void Bpe::find_byte_tokens(bool byte_spelled) {
  raw_bytes_ = byte_spelled && continuing_prefix_.empty() && end_suffix_.empty();
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string spelled;
    append_char(spelled, byte_alphabet().of_byte[byte]);
    byte_ids_[byte] = vocabulary_.find(spelled);
    raw_bytes_ = raw_bytes_ && byte_ids_[byte] != Vocabulary::kNone;
  }
}

void Bpe::find_characters() {
  ascii_ids_.fill(Vocabulary::kNone);
  for (int32_t id = 0; id < vocabulary_.end_id(); ++id) {
    if (!vocabulary_.has(id)) continue;
    const std::string_view token = vocabulary_.token(id);
    if (token.empty() || token.size() > 4) continue;
    size_t end = 0;
    const char32_t c = next_char(token, end);
    if (end != token.size()) continue;
    characters_[c] = id;
    if (c < 128) ascii_ids_[c] = id;
  }
  int32_t next = vocabulary_.end_id();
  for (const char32_t c : bare_characters_) {
    characters_[c] = next;
    if (c < 128) ascii_ids_[c] = next;
    ++next;
  }
}

namespace {

bool stands_for_text(std::string_view token, const BpeTable& table) {
  if (table.unknown && token == *table.unknown) return false;
  return !(table.byte_fallback && token.size() == 6 && token.starts_with("<0x"));
}

}  // namespace

// Finds out where a long word can be cut before merging. Without a pre-tokenizer, the whole text is
// one word.
//
// A cut between two characters that are tokens is safe under one condition. No merge may join a
// token ending with the first to a token beginning with the second. Then no merge crosses the cut,
// and both sides merge as if alone.
//
// A character that is no token becomes byte pieces or the unknown token. If no merge uses one of
// those, they never move, and cuts beside them are safe. Two such characters are not cut apart,
// because unknown tokens may be fused.
void Bpe::allow_cuts(const BpeTable& table) {
  can_cut_ = !raw_bytes_ && continuing_prefix_.empty() && end_suffix_.empty() &&
             bare_characters_.empty() &&
             (byte_pieces_.has_all() || unknown_id_ != Vocabulary::kNone);
  for (const BpeTable::Merge& merge : table.merges) {
    if (!can_cut_) return;
    const std::string_view left = vocabulary_.token(merge.left);
    const std::string_view right = vocabulary_.token(merge.right);
    can_cut_ = stands_for_text(left, table) && stands_for_text(right, table);
    size_t begin = 0;
    joints_[pair_key(static_cast<int32_t>(last_char(left)),
                     static_cast<int32_t>(next_char(right, begin)))] = true;
  }
}

bool Bpe::can_cut_between(char32_t before, char32_t after) const {
  const auto is_token = [&](char32_t c) {
    return c < 128 ? ascii_ids_[c] != Vocabulary::kNone : characters_.find(c) != nullptr;
  };
  const bool before_is_token = is_token(before);
  const bool after_is_token = is_token(after);
  if (before_is_token != after_is_token) return true;
  return before_is_token &&
         !joints_.find(pair_key(static_cast<int32_t>(before), static_cast<int32_t>(after)));
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (raw_bytes_ || !can_cut_) return encode_part(word, scratch, ids);
  if (ignore_merges_) {
    const int32_t id = vocabulary_.find(word);
    if (id != Vocabulary::kNone) return ids.push_back(id);
  }
  size_t begin = 0;
  size_t at = 0;
  char32_t before = next_char(word, at);
  InterruptEvery interrupt;
  while (at < word.size()) {
    const size_t here = at;
    interrupt.passed(at);
    const char32_t after = next_char(word, at);
    if (can_cut_between(before, after)) {
      encode_part(word.substr(begin, here - begin), scratch, ids);
      begin = here;
    }
    before = after;
  }
  encode_part(word.substr(begin), scratch, ids);
}

void Bpe::encode_part(std::string_view part, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (scratch.cache.find(part, ids)) return;
  if (part.size() > INT32_MAX) {  // symbols store positions in 32 bits
    fail("a word of ", human_bytes(part.size()), " is too long to be encoded; cut the text before");
  }
  std::vector<int32_t>& made = scratch.ids;
  made.clear();
  int32_t whole = Vocabulary::kNone;
  if (ignore_merges_ && !can_cut_) {
    std::string_view spelled = part;
    if (raw_bytes_) {
      scratch.spelled.clear();
      append_byte_spelling(scratch.spelled, part);
      spelled = scratch.spelled;
    }
    whole = vocabulary_.find(spelled);
  }
  if (whole != Vocabulary::kNone) {
    made.push_back(whole);
  } else {
    if (raw_bytes_) {
      for (const char c : part) made.push_back(byte_ids_[static_cast<unsigned char>(c)]);
    } else {
      split_into_characters(part, made);
    }
    if (made.size() <= kShort) {
      merge_short(made, scratch.candidates);
    } else {
      merge_long(scratch);
    }
    if (!bare_characters_.empty()) replace_bare_characters(made);
  }
  scratch.cache.store(part, made.data(), made.size());
  ids.insert(ids.end(), made.begin(), made.end());
}

int32_t Bpe::character_id(char32_t c, std::string_view spelled, bool first, bool last) const {
  if ((first || continuing_prefix_.empty()) && (!last || end_suffix_.empty())) {
    if (c < 128) return ascii_ids_[c];
    const int32_t* id = characters_.find(c);
    return id ? *id : Vocabulary::kNone;
  }
  return vocabulary_.find(spelled);
}

int32_t Bpe::unknown_id(std::string_view character) const {
  if (unknown_id_ == Vocabulary::kNone) {
    fail(where_, ".unk_token: ", quote(*unknown_), " is not in the vocabulary, and ",
         quote(character), " needs it");
  }
  return unknown_id_;
}

// Replaces characters that no merge has taken. As in SentencePiece, adjacent unknown tokens become
// one.
void Bpe::replace_bare_characters(std::vector<int32_t>& ids) const {
  std::vector<int32_t> made;
  made.reserve(ids.size());
  std::string character;
  for (const int32_t id : ids) {
    if (id >= vocabulary_.end_id()) {
      character.clear();
      append_char(character, bare_characters_[static_cast<size_t>(id - vocabulary_.end_id())]);
      if (byte_pieces_.append(character, made)) continue;
    }
    const int32_t known = id < vocabulary_.end_id() ? id : unknown_id(character);
    const bool fused =
        fuse_unknown_ && known == unknown_id_ && !made.empty() && made.back() == unknown_id_;
    if (!fused) made.push_back(known);
  }
  ids.swap(made);
}

// Follows the tokenizers library. An unknown token waits for the next known character, so that
// others can be fused with it; byte pieces do not end the wait. Without an unknown token, a
// character that is no token is dropped.
void Bpe::split_into_characters(std::string_view word, std::vector<int32_t>& ids) const {
  int32_t waiting = Vocabulary::kNone;
  InterruptEvery interrupt;
  for (size_t at = 0; at < word.size();) {
    const size_t begin = at;
    interrupt.passed(at);
    const char32_t c = next_char(word, at);
    const bool first = begin == 0;
    const bool last = at == word.size();
    const std::string_view character = word.substr(begin, at - begin);
    std::string affixed;
    std::string_view spelled = character;
    if ((!first && !continuing_prefix_.empty()) || (last && !end_suffix_.empty())) {
      affixed = cat(first ? "" : continuing_prefix_, character, last ? end_suffix_ : "");
      spelled = affixed;
    }
    const int32_t id = character_id(c, spelled, first, last);
    if (id != Vocabulary::kNone) {
      if (waiting != Vocabulary::kNone) ids.push_back(std::exchange(waiting, Vocabulary::kNone));
      ids.push_back(id);
    } else if (!byte_pieces_.append(spelled, ids) && unknown_) {
      if (waiting != Vocabulary::kNone && !fuse_unknown_) ids.push_back(waiting);
      waiting = unknown_id(character);
    }
  }
  if (waiting != Vocabulary::kNone) ids.push_back(waiting);
}

Bpe::Candidate Bpe::candidate(int32_t left, int32_t right, int32_t at) const {
  const Merge* merge = merge_of(left, right);
  return merge ? Candidate{merge->rank, at, merge->merged}
               : Candidate{INT32_MAX, at, Vocabulary::kNone};
}

void Bpe::merge_short(std::vector<int32_t>& ids, std::vector<Candidate>& candidates) const {
  candidates.clear();
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    candidates.push_back(candidate(ids[i], ids[i + 1], 0));
  }
  while (!candidates.empty()) {
    const auto first =
        std::min_element(candidates.begin(), candidates.end(),
                         [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
    if (first->rank == INT32_MAX) return;
    const auto at = first - candidates.begin();
    ids[static_cast<size_t>(at)] = first->merged;
    ids.erase(ids.begin() + at + 1);
    candidates.erase(first);
    const auto i = static_cast<size_t>(at);
    if (i < candidates.size()) candidates[i] = candidate(ids[i], ids[i + 1], 0);
    if (i > 0) candidates[i - 1] = candidate(ids[i - 1], ids[i], 0);
  }
}

// Merges with a heap, in O(n log n). Outdated candidates are skipped when they come up. A candidate
// is valid if its place still makes the same token. Ids and texts are one to one and symbols only
// grow, so another pair at that place makes another token.
void Bpe::merge_long(Scratch& scratch) const {
  std::vector<int32_t>& ids = scratch.ids;
  std::vector<Symbol>& symbols = scratch.symbols;
  std::vector<Candidate>& heap = scratch.candidates;
  const auto count = static_cast<int32_t>(ids.size());
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  symbols.clear();
  heap.clear();
  InterruptEvery interrupt;
  for (int32_t i = 0; i < count; ++i) {
    interrupt.passed(static_cast<size_t>(i));
    const bool last = i + 1 == count;
    symbols.push_back({ids[static_cast<size_t>(i)], i - 1, last ? -1 : i + 1});
    if (last) break;
    const Candidate made =
        candidate(ids[static_cast<size_t>(i)], ids[static_cast<size_t>(i) + 1], i);
    if (made.rank == INT32_MAX) continue;
    heap.push_back(made);
    std::push_heap(heap.begin(), heap.end(), later);
  }
  const auto symbol = [&](int32_t at) -> Symbol& { return symbols[static_cast<size_t>(at)]; };
  const auto consider = [&](int32_t left) {
    const Candidate made = candidate(symbol(left).id, symbol(symbol(left).next).id, left);
    if (made.rank == INT32_MAX) return;
    heap.push_back(made);
    std::push_heap(heap.begin(), heap.end(), later);
  };
  InterruptEvery popped_interrupt;
  for (size_t popped = 0; !heap.empty(); ++popped) {
    popped_interrupt.passed(popped);
    std::pop_heap(heap.begin(), heap.end(), later);
    const Candidate top = heap.back();
    heap.pop_back();
    Symbol& left = symbol(top.at);
    if (left.next < 0) continue;  // the last symbol, or already merged
    Symbol& right = symbol(left.next);
    if (candidate(left.id, right.id, top.at).merged != top.merged) continue;
    left.id = top.merged;
    left.next = right.next;
    right.next = kGone;
    if (left.next >= 0) {
      symbol(left.next).previous = top.at;
      consider(top.at);
    }
    if (left.previous >= 0) consider(left.previous);
  }
  ids.clear();
  for (int32_t i = 0; i >= 0; i = symbol(i).next) ids.push_back(symbol(i).id);
}

}  // namespace fp8kv
