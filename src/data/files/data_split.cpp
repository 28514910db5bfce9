#include "data/files/data_split.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <vector>

#include "base/error.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

struct SplitWord {
  std::string_view word;
  std::string_view split;
};
constexpr std::array<SplitWord, 10> kWords = {{{"train", "train"},
                                               {"training", "train"},
                                               {"validation", "validation"},
                                               {"valid", "validation"},
                                               {"val", "validation"},
                                               {"dev", "validation"},
                                               {"test", "test"},
                                               {"testing", "test"},
                                               {"eval", "test"},
                                               {"evaluation", "test"}}};

bool is_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// Returns NAME for "NAME-00000-of-00002" with any ending, and "" for any other name.
std::string_view part_name(std::string_view name) {
  constexpr size_t kDigits = 5;
  constexpr std::string_view kOf = "-of-";
  for (size_t at = name.find('-'); at != name.npos; at = name.find('-', at + 1)) {
    const std::string_view rest = name.substr(at + 1);
    const auto digits = [](std::string_view text) {
      return text.size() == kDigits && text.find_first_not_of("0123456789") == text.npos;
    };
    if (at > 0 && digits(rest.substr(0, kDigits)) && rest.substr(kDigits).starts_with(kOf) &&
        digits(rest.substr(kDigits + kOf.size(), kDigits))) {
      return name.substr(0, at);
    }
  }
  return "";
}

std::string word_in(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    for (const SplitWord& each : kWords) {
      if (each.word == word) return std::string(each.split);
    }
    at = std::max(end, at + 1);
  }
  return "";
}

}  // namespace

std::string split_name(std::string_view name) {
  for (const SplitWord& each : kWords) {
    if (each.word == name) return std::string(each.split);
  }
  return std::string(name);
}

std::string split_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (const std::string_view part = part_name(name); !part.empty()) return split_name(part);
  // Suffixes need no removal: in a.test.jsonl.gz, "test" names the split, and no suffix names one.
  for (const fs::path& each : path) {
    if (std::string found = word_in(each.string()); !found.empty()) return found;
  }
  return "";
}

fs::path dataset_folder(const fs::path& folder) {
  const fs::path snapshots = folder / "snapshots";
  std::error_code ignored;
  if (!fs::is_directory(snapshots, ignored)) return folder;
  std::string commit;
  std::ifstream(folder / "refs" / "main") >> commit;
  if (!commit.empty() && commit.find('/') == commit.npos && fs::is_directory(snapshots / commit)) {
    return snapshots / commit;
  }
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(snapshots, ignored))
    found.push_back(entry.path());
  if (found.size() == 1) return found[0];
  throw Error(cat(quote(folder.string()), ": has ", count_of(found.size(), "snapshot"),
                  ", and none of them is its revision main"),
              found.empty() ? "fetch the data set again" : "name one of the folders in snapshots");
}

}  // namespace fp8kv
