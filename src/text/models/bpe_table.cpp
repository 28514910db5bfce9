#include "text/models/bpe_table.h"

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"
#include "text/models/parts.h"
#include "unicode/characters.h"

namespace fp8kv {
namespace {

void read_options(const Json& model, BpeTable& table) {
  if (const auto dropout = model.find("dropout"); dropout && dropout->as_double() != 0) {
    fail(dropout->where(), ": is ", dropout->brief(),
         ", which makes tokens random; expected null or 0");
  }
  table.continuing_prefix = model.get_string("continuing_subword_prefix", "");
  table.end_suffix = model.get_string("end_of_word_suffix", "");
  table.fuse_unknown = model.get_bool("fuse_unk", false);
  table.byte_fallback = model.get_bool("byte_fallback", false);
  table.ignore_merges = model.get_bool("ignore_merges", false);
  if (const auto unknown = model.find("unk_token")) table.unknown = unknown->as_string();
}

// Runs `add`. If it throws, adds the context that `where` returns.
template <typename Where, typename Add>
void add_named(const Where& where, const Add& add) {
  try {
    add();
  } catch (Error& error) {
    error.add_context(where());
    throw;
  }
}

// Adds a merge spelled "left right".
void add_spelled_merge(std::string_view text, BpeTable& table) {
  if (text.starts_with("#version")) return;  // the first line of a merges.txt
  const size_t space = text.find(' ');
  if (space == text.npos || text.find(' ', space + 1) != text.npos) {
    fail("is ", quote(text), ", expected two tokens with a space between");
  }
  table.add_merge(text.substr(0, space), text.substr(space + 1));
}

// Adds a merge given as an array or a string.
void add_json_merge(const Json& merge, BpeTable& table) {
  const auto where = [&] { return merge.where(); };
  if (!merge.is_array()) {
    const std::string& text = merge.as_string();
    return add_named(where, [&] { add_spelled_merge(text, table); });
  }
  if (merge.size() != 2) {
    fail(merge.where(), ": has ", count_of(merge.size(), "element"), ", expected 2");
  }
  const Json left = merge[0];
  const Json right = merge[1];
  const std::string_view left_text = left.as_string();
  const std::string_view right_text = right.as_string();
  add_named(where, [&] { table.add_merge(left_text, right_text); });
}

}  // namespace

void BpeTable::add_merge(std::string_view left, std::string_view right) {
  const auto id_of = [&](std::string_view token) {
    const int32_t id = vocabulary.find(token);
    if (id == Vocabulary::kNone) fail("the token ", quote(token), " is not in the vocabulary");
    return id;
  };
  const int32_t left_id = id_of(left);
  const int32_t right_id = id_of(right);
  if (right.size() <= continuing_prefix.size() || left.empty()) {
    fail("the tokens ", quote(left), " and ", quote(right),
         " join to nothing longer than they are");
  }
  const int32_t merged = id_of(cat(left, right.substr(continuing_prefix.size())));
  merges.push_back({left_id, right_id, static_cast<int32_t>(merges.size()), merged});
}

BpeTable bpe_table_from_json(const Json& model) {
  check_keys(model,
             {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
              "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  BpeTable table;
  table.where = model.where();
  table.vocabulary = Vocabulary(model.at("vocab"));
  read_options(model, table);
  const Json merges = array_at(model, "merges");
  table.merges.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) add_json_merge(merges[i], table);
  return table;
}

BpeTable bpe_table_from_files(const Json& vocab, std::string_view merges,
                              const std::string& merges_file) {
  BpeTable table;
  table.where = vocab.where();
  table.vocabulary = Vocabulary(vocab);
  for (size_t line = 1; !merges.empty(); ++line) {
    check_interrupt();
    const size_t end = std::min(merges.find('\n'), merges.size());
    std::string_view text = merges.substr(0, end);
    merges.remove_prefix(std::min(end + 1, merges.size()));
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty()) continue;
    add_named([&] { return cat(quote(merges_file), ": line ", line); },
              [&] { add_spelled_merge(text, table); });
  }
  return table;
}

BpeTable bpe_table_from_ranks(const std::vector<std::string>& tokens, int32_t first_id,
                              const std::string& where) {
  BpeTable table;
  table.where = where;
  table.vocabulary = Vocabulary(tokens.size());
  table.vocabulary.skip(static_cast<size_t>(first_id));
  table.ignore_merges = true;
  std::string spelled;
  for (size_t rank = 0; rank < tokens.size(); ++rank) {
    spelled.clear();
    append_byte_spelling(spelled, tokens[rank]);
    if (!table.vocabulary.append(spelled)) {
      fail(where, ": the token of rank ", rank, ", ", quote(spelled), ", is there already");
    }
  }
  for (size_t rank = 256; rank < tokens.size(); ++rank) {
    check_interrupt();
    const auto id = static_cast<int32_t>(rank) + first_id;
    const std::string_view whole = table.vocabulary.token(id);
    for (size_t cut = 0; next_char(whole, cut), cut < whole.size();) {
      const int32_t left = table.vocabulary.find(whole.substr(0, cut));
      if (left == Vocabulary::kNone) continue;
      const int32_t right = table.vocabulary.find(whole.substr(cut));
      if (right == Vocabulary::kNone) continue;
      table.merges.push_back({left, right, static_cast<int32_t>(rank), id});
    }
  }
  return table;
}

}  // namespace fp8kv
