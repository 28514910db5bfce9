// Compares merging with a plain version of its definition: join the leftmost pair that is first in
// the list, until the list has no pair of the word.
#include <algorithm>
#include <map>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "support/models/small_tokenizer.h"
#include "text/models/bpe.h"

namespace fp8kv {
namespace {

using Pair = std::pair<std::string, std::string>;

struct RandomModel {
  std::vector<std::string> vocab{"<unk>"};
  std::vector<Pair> merges;

  RandomModel(Rng& rng, const std::vector<std::string>& characters, size_t n_merges) {
    vocab.insert(vocab.end(), characters.begin(), characters.end());
    while (merges.size() < n_merges) {
      const Pair pair{vocab[1 + rng.next() % (vocab.size() - 1)],
                      vocab[1 + rng.next() % (vocab.size() - 1)]};
      const std::string merged = pair.first + pair.second;
      if (merged.size() > 12) continue;
      if (std::find(merges.begin(), merges.end(), pair) != merges.end()) continue;
      merges.push_back(pair);
      if (std::find(vocab.begin(), vocab.end(), merged) == vocab.end()) vocab.push_back(merged);
    }
  }

  Tokenizer load(const std::string& pre_tokenizer, const std::string& options) const {
    JsonWriter vocab_json(JsonWriter::Layout::one_line);
    vocab_json.begin_object();
    for (size_t id = 0; id < vocab.size(); ++id) vocab_json.member(vocab[id], int64_t(id));
    JsonWriter merges_json(JsonWriter::Layout::one_line);
    merges_json.begin_array();
    for (const auto& [left, right] : merges) {
      merges_json.begin_array().value(left).value(right).end_array();
    }
    test::SmallTokenizer small;
    small.pre_tokenizer = pre_tokenizer;
    small.options = options;
    small.vocab = vocab_json.end_object().text();
    small.merges = merges_json.end_array().text();
    return small.load();
  }

  // The ids of `pieces` after merging by the definition.
  std::vector<int32_t> merged(std::vector<std::string> pieces) const {
    std::map<Pair, size_t> ranks;
    for (size_t rank = 0; rank < merges.size(); ++rank) ranks[merges[rank]] = rank;
    while (true) {
      size_t best = merges.size();
      size_t at = 0;
      for (size_t i = 0; i + 1 < pieces.size(); ++i) {
        const auto found = ranks.find({pieces[i], pieces[i + 1]});
        if (found == ranks.end() || found->second >= best) continue;
        best = found->second;
        at = i;
      }
      if (best == merges.size()) break;
      pieces[at] += pieces[at + 1];
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    std::vector<int32_t> ids;
    for (const std::string& piece : pieces) {
      const auto found = std::find(vocab.begin(), vocab.end(), piece);
      ids.push_back(found == vocab.end() ? 0 : static_cast<int32_t>(found - vocab.begin()));
    }
    return ids;
  }
};

void check_random_words(const std::vector<std::string>& known, const std::vector<std::string>& used,
                        const std::string& pre_tokenizer, const std::string& options,
                        size_t n_merges, uint64_t seed) {
  Rng rng(seed);
  for (int round = 0; round < 12; ++round) {
    const RandomModel model(rng, known, n_merges);
    const Tokenizer tokenizer = model.load(pre_tokenizer, options);
    for (const size_t length : {1, 2, 5, 31, 32, 33, 40, 100, 300}) {
      std::vector<std::string> characters(length);
      std::string word;
      for (std::string& character : characters) {
        character = used[rng.next() % used.size()];
        word += character;
      }
      CAPTURE(word);
      // The second time the word comes from the cache.
      for (int time = 0; time < 2; ++time) {
        CHECK(tokenizer.encode(word, false) == model.merged(characters));
      }
    }
  }
}

TEST_CASE("bpe: merges words of any length as the definition says") {
  // Without an unknown token, long texts are not cut.
  const std::vector<std::string> letters{"a", "b", "c"};
  check_random_words(letters, letters, "null", R"("unk_token":null)", 30, 1);
}

TEST_CASE("bpe: a long word that is cut where no merge crosses gives the same tokens") {
  // Few merges between many characters, so most neighbours never join.
  const std::vector<std::string> letters{"a", "b", "c", "d", "e", "é", "▁", "日", "本", "."};
  check_random_words(letters, letters, "null", R"("unk_token":"<unk>")", 12, 2);
}

TEST_CASE("bpe: cuts beside unknown characters change nothing") {
  const std::vector<std::string> known{"a", "b", "▁", "日"};
  std::vector<std::string> used = known;
  used.push_back("x");
  used.push_back("ß");
  check_random_words(known, used, "null", R"("unk_token":"<unk>")", 8, 3);
}

TEST_CASE("bpe: a merge that has the unknown token as a side keeps the word whole") {
  test::SmallTokenizer small;
  small.vocab = R"({"<unk>":0,"a":1,"<unk>a":2})";
  small.merges = R"([["<unk>","a"]])";
  CHECK(small.load().encode("xaxxa", false) == std::vector<int32_t>{2, 0, 2});
}

TEST_CASE("bpe: unknown characters are fused when the model says so") {
  test::SmallTokenizer small;
  CHECK(small.load().encode("xxaxyza", false) == std::vector<int32_t>{0, 0, 1, 0, 0, 0, 1});
  small.options = R"("unk_token":"<unk>","fuse_unk":true)";
  CHECK(small.load().encode("xxaxyza", false) == std::vector<int32_t>{0, 1, 0, 1});
}

TEST_CASE("bpe: bytes that have no piece make the whole character unknown") {
  test::SmallTokenizer small;
  small.options = R"("unk_token":"<unk>","byte_fallback":true)";
  small.vocab = R"({"<unk>":0,"a":1,"<0xC3>":2,"<0xA9>":3})";
  small.merges = "[]";
  CHECK(small.load().encode("aéa", false) == std::vector<int32_t>{1, 2, 3, 1});
  CHECK(small.load().encode("aßa", false) == std::vector<int32_t>{1, 0, 1});
  // Like the tokenizers library, puts a pending unknown token after the bytes that follow it.
  CHECK(small.load().encode("ßéa", false) == std::vector<int32_t>{2, 3, 0, 1});
}

TEST_CASE("bpe: ignore_merges takes a word that is a token as it is") {
  test::SmallTokenizer small;
  small.vocab = R"({"<unk>":0,"a":1,"b":2," ":3,"bab":4})";
  small.merges = "[]";
  small.pre_tokenizer = R"({"type":"WhitespaceSplit"})";
  CHECK(small.load().encode("bab ba", false) == std::vector<int32_t>{2, 1, 2, 2, 1});
  small.options = R"("unk_token":"<unk>","ignore_merges":true)";
  CHECK(small.load().encode("bab ba", false) == std::vector<int32_t>{4, 2, 1});
}

}  // namespace
}  // namespace fp8kv
