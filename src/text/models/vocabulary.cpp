#include "text/models/vocabulary.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace fp8kv {

Vocabulary::Vocabulary(size_t count) {
  size_t capacity = 16;
  while (capacity < 2 * count) capacity *= 2;
  slots_.resize(capacity);
  entries_.reserve(count);
}

int64_t Vocabulary::id_limit(size_t count) {
  return static_cast<int64_t>(std::min<size_t>(16 * count + 65536, INT32_MAX));
}

Vocabulary::Vocabulary(const Json& tokens) : Vocabulary(tokens.size()) {
  if (!tokens.is_object()) tokens.at("");  // throws: not an object
  const size_t count = tokens.size();
  const int64_t limit = id_limit(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string& token = tokens.key(i);
    const Json value = tokens.value(i);
    const int64_t id = value.as_int();
    if (id < 0 || id >= limit) {
      fail(value.where(), ": the id ", id, " is out of range, expected 0 to ", limit - 1, " for ",
           count_of(count, "token"));
    }
    if (id >= end_id()) index_of_id_.resize(static_cast<size_t>(id) + 1);
    if (has(static_cast<int32_t>(id))) {
      fail(value.where(), ": the id ", id, " is that of ",
           quote(this->token(static_cast<int32_t>(id))), " already");
    }
    put(slot_of(token), token, static_cast<int32_t>(id));
  }
}

bool Vocabulary::append(std::string_view token) {
  const size_t slot = slot_of(token);
  if (slots_[slot] != 0) return false;
  index_of_id_.push_back(0);
  put(slot, token, end_id() - 1);
  return true;
}

void Vocabulary::skip(size_t ids) {
  index_of_id_.resize(index_of_id_.size() + ids);
}

void Vocabulary::put(size_t slot, std::string_view token, int32_t id) {
  entries_.push_back(
      {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(token.size()), id});
  bytes_ += token;
  const auto index = static_cast<uint32_t>(entries_.size());
  slots_[slot] = index;
  index_of_id_[static_cast<size_t>(id)] = index;
}

size_t Vocabulary::slot_of(std::string_view token) const {
  size_t slot = std::hash<std::string_view>{}(token) & (slots_.size() - 1);
  while (slots_[slot] != 0 && text_of(entries_[slots_[slot] - 1]) != token) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

int32_t Vocabulary::find(std::string_view token) const {
  if (slots_.empty()) return kNone;
  const uint32_t index = slots_[slot_of(token)];
  return index == 0 ? kNone : entries_[index - 1].id;
}

std::string_view Vocabulary::token(int32_t id) const {
  FP8KV_ASSERT(has(id));
  return text_of(entries_[index_of_id_[static_cast<size_t>(id)] - 1]);
}

}  // namespace fp8kv
