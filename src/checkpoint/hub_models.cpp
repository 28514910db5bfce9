#include "checkpoint/hub_models.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/shell.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "files/file.h"
#include "json/json.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kEntry = "models--";
constexpr size_t kLongestName = 96;
constexpr size_t kMostNamed = 8;  // files in a line that people copy

// Like huggingface_hub, takes a path that cannot be examined as absent.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_name_part(std::string_view part) {
  const auto of_word = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  if (part.empty() || part.size() > kLongestName) return false;
  if (!of_word(part.front()) || !of_word(part.back())) return false;
  return std::all_of(part.begin(), part.end(),
                     [&](unsigned char c) { return of_word(c) || c == '-' || c == '.'; });
}

bool is_repo(std::string_view repo) {
  const size_t slash = repo.find('/');
  const bool parts = slash == repo.npos ? is_name_part(repo)
                                        : is_name_part(repo.substr(0, slash)) &&
                                              is_name_part(repo.substr(slash + 1));
  return parts && repo.find("--") == repo.npos && repo.find("..") == repo.npos &&
         !repo.ends_with(".git");
}

// Expands a leading ~, $NAME and ${NAME} like a shell, but leaves unset variables as they are.
std::string expanded(std::string text, const Variables& variable) {
  if (text == "~" || text.starts_with("~/")) text = variable("HOME") + text.substr(1);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool braced = text.compare(i, 2, "${") == 0;
    size_t begin = i + (braced ? 2 : 1), end = begin;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    const bool named =
        text[i] == '$' && end > begin && (!braced || (end < text.size() && text[end] == '}'));
    const std::string value = named ? variable(text.substr(begin, end - begin).c_str()) : "";
    if (value.empty()) {
      out += text[i++];
      continue;
    }
    out += value;
    i = end + (braced ? 1 : 0);
  }
  return out;
}

std::string shown(const HubName& name) {
  return name.revision == "main" ? name.repo : cat(name.repo, "@", name.revision);
}

// The command that fetches `files`, or everything needed if there are none or too many.
std::string fetch_line(const HubName& name, const std::vector<std::string>& files = {}) {
  std::string line = cat("hf download ", shell_word(name.repo));
  if (name.revision != "main") line += cat(" --revision ", shell_word(name.revision));
  const bool none_is_a_flag = std::none_of(
      files.begin(), files.end(), [](const std::string& file) { return file.starts_with('-'); });
  if (!files.empty() && files.size() <= kMostNamed && none_is_a_flag) {
    for (const std::string& file : files) line += " " + shell_word(file);
    return line;
  }
  for (const char* pattern :
       {"*.json", "*.safetensors", "*.jinja", "tokenizer.model", "merges.txt"}) {
    line += cat(" --include \"", pattern, "\"");
  }
  return line;
}

// The name "org/name" of the cache entry "models--org--name".
std::string repo_of(const fs::path& entry) {
  std::string repo = entry.filename().string().substr(kEntry.size());
  const size_t at = repo.find("--");
  if (at != repo.npos) repo.replace(at, 2, "/");
  return repo;
}

std::vector<std::string> snapshots_in(const fs::path& entry) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(entry / "snapshots", error), end; !error && at != end;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string commit_of(const fs::path& entry, const std::string& revision) {
  const fs::path ref = entry / "refs" / revision;
  std::error_code ignored;
  if (!fs::is_regular_file(ref, ignored)) return revision;
  std::string commit = read_text(ref, 4096);
  while (!commit.empty() && std::isspace(static_cast<unsigned char>(commit.back())))
    commit.pop_back();
  return commit;
}

// Whether the snapshot holds tensors in another format or, without a config.json, a JSON file that
// could hold scales.
bool holds_others(const fs::path& snapshot) {
  constexpr std::string_view kTensors[] = {".bin", ".gguf", ".npz", ".pt", ".pth", ".safetensors"};
  const bool model = is_there(snapshot / "config.json");
  std::error_code error;
  for (fs::directory_iterator at(snapshot, error), end; !error && at != end; at.increment(error)) {
    const std::string ending = at->path().extension().string();
    if (!model && ending == ".json") return true;
    if (std::find(std::begin(kTensors), std::end(kTensors), ending) != std::end(kTensors)) {
      return true;
    }
  }
  return false;
}

// The files that a complete snapshot would have, by its other files, and that are missing.
std::vector<std::string> missing_from(const fs::path& snapshot) {
  const bool single = is_there(snapshot / kSingleFile), index = is_there(snapshot / kIndexFile);
  std::set<std::string> missing;
  if (!single && !index && holds_others(snapshot)) return {};  // another format, reported elsewhere
  if (!is_there(snapshot / "config.json")) missing.insert("config.json");
  if (!single && !index) missing.insert(kSingleFile);
  if (!single && index) {
    const Json map = Json::read(snapshot / kIndexFile).at("weight_map");
    for (size_t i = 0; i < map.size(); ++i) {
      const std::string& file = map.value(i).as_string();
      if (!is_there(snapshot / file)) missing.insert(file);
    }
  }
  return {missing.begin(), missing.end()};
}

void check_whole(const HubName& name, const fs::path& snapshot) {
  const std::vector<std::string> missing = missing_from(snapshot);
  if (missing.empty()) return;
  std::vector<std::string> named(
      missing.begin(),
      missing.begin() + static_cast<std::ptrdiff_t>(std::min(missing.size(), kMostNamed)));
  if (named.size() < missing.size())
    named.push_back(count_of(missing.size() - named.size(), "other"));
  throw Error(cat(quote(snapshot.string()), ": is not whole: ", join(named),
                  missing.size() == 1 ? " is" : " are", " missing"),
              cat("fetch what is missing: ", fetch_line(name, missing)));
}

// Finds the snapshot of a revision. REQUIRES the model's entry in the cache.
fs::path find_snapshot(const HubName& name, const fs::path& entry) {
  const fs::path snapshot = entry / "snapshots" / commit_of(entry, name.revision);
  if (!is_there(snapshot)) {
    const std::vector<std::string> others = snapshots_in(entry);
    const std::string there =
        others.empty() ? "no revision"
                       : cat(others.size() == 1 ? "the revision " : "the revisions ", join(others));
    throw Error(cat(quote(shown(name)), ": the hub's cache has ", there, " of it, not ",
                    quote(name.revision), " (", entry.string(), ")"),
                cat("fetch it: ", fetch_line(name),
                    others.empty() ? ""
                                   : cat("; or name one that is there: ",
                                         shell_word(cat(name.repo, "@", others.back())))));
  }
  check_whole(name, snapshot);
  return snapshot;
}

bool is_entry(const fs::path& path) {
  return path.filename().string().starts_with(kEntry) && is_there(path / "snapshots");
}

fs::path find_existing(const fs::path& given) {
  std::error_code ignored;
  fs::path path = fs::absolute(given, ignored).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (is_entry(path)) return find_snapshot({repo_of(path), "main"}, path);
  const fs::path snapshots = path.parent_path();
  if (snapshots.filename() == "snapshots" && is_entry(snapshots.parent_path())) {
    check_whole({repo_of(snapshots.parent_path()), path.filename().string()}, path);
  }
  return given;
}

}  // namespace

std::optional<HubName> hub_name(std::string_view text) {
  const size_t at = text.find('@');
  const std::string_view repo = text.substr(0, at);
  const std::string_view revision = at == text.npos ? "main" : text.substr(at + 1);
  const bool leaves = revision.find("..") != revision.npos || revision.starts_with('/');
  if (!is_repo(repo) || revision.empty() || leaves) return std::nullopt;
  return HubName{std::string(repo), std::string(revision)};
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path hub_cache(const Variables& variable) {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string folder = variable(name); !folder.empty())
      return expanded(folder, variable);
  }
  if (const std::string home = variable("HF_HOME"); !home.empty()) {
    return fs::path(expanded(home, variable)) / "hub";
  }
  const std::string caches = variable("XDG_CACHE_HOME");
  return fs::path(expanded(caches.empty() ? "~/.cache" : caches, variable)) / "huggingface" / "hub";
}

fs::path find_model(const fs::path& given, const Variables& variable) {
  std::error_code ignored;
  if (fs::symlink_status(given, ignored).type() != fs::file_type::not_found) {
    return find_existing(given);
  }
  const auto name = hub_name(given.string());
  if (!name) return given;
  const fs::path cache = hub_cache(variable);
  std::string entry_name = cat(kEntry, name->repo);
  if (const size_t slash = entry_name.find('/'); slash != entry_name.npos) {
    entry_name.replace(slash, 1, "--");
  }
  const fs::path entry = cache / entry_name;
  if (is_there(entry)) return find_snapshot(*name, entry);
  if (name->repo.find('/') == std::string::npos) return given;
  throw Error(cat(quote(given.string()),
                  ": is no path here, and no model of this name is in the hub's cache (",
                  cache.string(), ")"),
              cat("check the path; or fetch the model: ", fetch_line(*name)));
}

fs::path model_folder(const fs::path& given, const Variables& variable) {
  const fs::path found = find_model(given, variable);
  std::error_code ignored;
  if (found.extension() != ".safetensors" || !fs::is_regular_file(found, ignored)) return found;
  const fs::path folder = found.has_parent_path() ? found.parent_path() : ".";
  return is_there(folder / form_of(folder).config) ? folder : found;
}

}  // namespace fp8kv
