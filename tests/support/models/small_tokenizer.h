// A tokenizer.json of a few tokens. A test can set each part.
#pragma once

#include <string>

#include "base/text.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

namespace fp8kv::test {

struct SmallTokenizer {
  std::string added_tokens = "[]";
  std::string normalizer = "null";
  std::string pre_tokenizer = "null";
  std::string post_processor = "null";
  std::string decoder = R"({"type":"Fuse"})";
  // Members of the model beside its type. The ids belong to `vocab`.
  std::string options = R"("unk_token":"<unk>")";
  std::string vocab = R"({"<unk>":0,"a":1,"b":2,"c":3," ":4,"-":5,"ab":6,"abc":7})";
  std::string merges = R"([["a","b"],["ab","c"]])";

  std::string text() const {
    return cat(R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":)", added_tokens,
               R"(,"normalizer":)", normalizer, R"(,"pre_tokenizer":)", pre_tokenizer,
               R"(,"post_processor":)", post_processor, R"(,"decoder":)", decoder,
               R"(,"model":{"type":"BPE",)", options, R"(,"vocab":)", vocab, R"(,"merges":)",
               merges, "}}");
  }

  Tokenizer load() const {
    const TempDir dir;
    return Tokenizer::load(dir.write("tokenizer.json", text()));
  }
};

// An element of added_tokens; `flags` are among "l" (lstrip), "r" (rstrip), "w" (single word),
// "n" (normalised) and "s" (special).
inline std::string added_token(int id, const std::string& content, const std::string& flags = "") {
  const auto flag = [&](char c) { return flags.find(c) != flags.npos; };
  return cat(R"({"id":)", id, R"(,"content":")", content, R"(","single_word":)", flag('w'),
             R"(,"lstrip":)", flag('l'), R"(,"rstrip":)", flag('r'), R"(,"normalized":)", flag('n'),
             R"(,"special":)", flag('s'), "}");
}

}  // namespace fp8kv::test
