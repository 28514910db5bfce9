// Encodes and decodes many texts with the tokenizer of a folder, for scripts/check_tokenizers.
// usage: fp8kv_encode_texts FOLDER < TEXTS     each line of both sides is a JSON value
// For each text prints {"ids": ..., "special": ..., "text": ..., "skipped": ...} or {"error": ...}.
// "ids" are without special tokens and "special" with them. "text" is "special" decoded, and
// "skipped" leaves out special tokens.
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "json/json.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

std::vector<int64_t> widened(const std::vector<int32_t>& ids) {
  return {ids.begin(), ids.end()};
}

std::string answer(const Tokenizer& tokenizer, const std::string& text) {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object();
  try {
    const std::vector<int32_t> ids = tokenizer.encode(text, false);
    const std::vector<int32_t> special = tokenizer.encode(text, true);
    json.key("ids").value(std::span<const int64_t>(widened(ids)));
    json.key("special").value(std::span<const int64_t>(widened(special)));
    json.member("text", tokenizer.decode(special, false));
    json.member("skipped", tokenizer.decode(special, true));
  } catch (const Error& error) {
    json.member("error", std::string(error.what()));
  }
  return json.end_object().text();
}

void run(const std::filesystem::path& folder) {
  const std::optional<Tokenizer> tokenizer = Tokenizer::find_in(folder);
  if (!tokenizer) fail(quote(folder.string()), ": has no tokenizer");
  std::ios::sync_with_stdio(false);
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    const Json text = Json::parse_line(line, number, "standard input");
    std::cout << answer(*tokenizer, text.as_string()) << '\n';
  }
}

}  // namespace
}  // namespace fp8kv

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER < TEXTS\n", arguments[0]);
    return 2;
  }
  try {
    fp8kv::run(arguments[1]);
  } catch (const fp8kv::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 3;
  }
  return 0;
}
