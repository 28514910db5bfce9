#include "prompts.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace fp8kv {
namespace {

constexpr uint64_t kMaxPromptFile = uint64_t(1) << 30;

void check_text(const std::string& text, const std::string& where) {
  size_t bad = 0;
  if (!is_utf8(text, &bad)) fail(where, ": is not valid UTF-8 at byte ", bad);
}

std::string prompt_of(const Json& record) {
  if (const auto prompt = record.find("prompt")) return prompt->as_string();
  if (const auto text = record.find("text")) return text->as_string();
  throw Error(cat(record.where(), ": has neither 'prompt' nor 'text'"),
              R"(write one record a line: {"prompt": "..."})");
}

}  // namespace

std::vector<std::string> read_prompts(const std::vector<std::string>& given,
                                      const std::filesystem::path& file) {
  for (size_t i = 0; i < given.size(); ++i) check_text(given[i], cat("--prompt ", i + 1));
  if (!given.empty()) return given;
  if (file.empty()) {
    throw Error("no prompt given", "pass --prompt TEXT, --prompts FILE, or - for standard input",
                ErrorKind::usage);
  }
  const std::string name = file == "-" ? "standard input" : quote(file.string());
  const std::string text = read_text(file, kMaxPromptFile);
  std::vector<std::string> prompts;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    prompts.push_back(prompt_of(Json::parse_line(line, number, name)));
  }
  if (prompts.empty()) throw Error(cat(name, ": has no prompts"), "write one JSON record a line");
  return prompts;
}

}  // namespace fp8kv
