#include "remote/hub_settings.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "files/file.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLongestToken = 4096;

bool is_true(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text == "1" || text == "ON" || text == "YES" || text == "TRUE";
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

fs::path token_path(const Variables& variable) {
  if (const std::string path = variable("HF_TOKEN_PATH"); !path.empty()) return path;
  // hub_cache() returns HF_HOME/hub unless a variable moves the cache alone, so those variables are
  // hidden here.
  const auto without_cache = [&](const char* name) {
    const std::string asked = name;
    const bool moved = asked == "HF_HUB_CACHE" || asked == "HUGGINGFACE_HUB_CACHE";
    return moved ? std::string() : variable(name);
  };
  return hub_cache(without_cache).parent_path() / "token";
}

std::string find_token(const Variables& variable) {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (std::string token = trimmed(variable(name)); !token.empty()) return token;
  }
  const fs::path path = token_path(variable);
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return "";
  return trimmed(read_regular_text(path, kLongestToken));
}

}  // namespace

HubSettings hub_settings(const Variables& variable) {
  HubSettings settings;
  const std::string given = variable("HF_ENDPOINT");
  const auto endpoint = parse_url(given.empty() ? "https://huggingface.co" : given);
  if (!endpoint || endpoint->path.find('?') != std::string::npos) {
    throw Error("HF_ENDPOINT is no address of a hub", "set it to https://HOST, or unset it",
                ErrorKind::usage);
  }
  settings.endpoint = *endpoint;
  if (settings.endpoint.path.ends_with('/')) settings.endpoint.path.pop_back();
  settings.token = find_token(variable);
  const bool plain = std::all_of(settings.token.begin(), settings.token.end(),
                                 [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (!plain || settings.token.size() > kLongestToken) {
    throw Error("the token of the hub has characters that no token has",
                "check HF_TOKEN and the file of 'hf auth login'", ErrorKind::usage);
  }
  settings.offline =
      is_true(variable("HF_HUB_OFFLINE")) || is_true(variable("TRANSFORMERS_OFFLINE"));
  return settings;
}

}  // namespace fp8kv
