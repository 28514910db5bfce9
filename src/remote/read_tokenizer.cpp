#include "remote/read_tokenizer.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirst = "tokenizer_config.json";
constexpr const char* kSmallFiles[] = {"special_tokens_map.json", "added_tokens.json",
                                       "chat_template.jinja", "chat_template.json"};
constexpr uint64_t kLargestSmall = uint64_t(16) << 20;
// The largest known is tokenizer.json of Gemma 3, with 33 MB.
constexpr uint64_t kLargestVocabulary = uint64_t(256) << 20;

// The vocabularies in the order in which Tokenizer::find_in looks for them.
const std::vector<std::vector<std::string>>& vocabularies() {
  static const std::vector<std::vector<std::string>> names = {
      {"tokenizer.json"}, {"tekken.json"}, {"tokenizer.model"}, {"vocab.json", "merges.txt"}};
  return names;
}

RemoteRequest whole(const std::string& name, uint64_t max_bytes) {
  return {name, std::nullopt, max_bytes, true};
}

class TokenizerFiles {
 public:
  TokenizerFiles(RemoteFiles& files, fs::path folder) : files_(files), folder_(std::move(folder)) {
    record_.address = recorded_address(files);
  }

  PartialRecord run(const RemoteBytes& first) {
    add_whole_file(folder_, kFirst, first, record_);
    std::vector<RemoteRequest> requests;
    for (const char* name : kSmallFiles) requests.push_back(whole(name, kLargestSmall));
    // Most models have the first kind, so its files are read with the others.
    bool found = false;
    for (const auto& names : vocabularies()) {
      if (found) break;
      for (const std::string& name : names) requests.push_back(whole(name, kLargestVocabulary));
      found = read(std::exchange(requests, {}), names);
    }
    if (!found) fail_without();
    write_partial_record(folder_, record_);
    return std::move(record_);
  }

 private:
  // Returns whether all files of `names` are there.
  bool read(const std::vector<RemoteRequest>& requests, const std::vector<std::string>& names) {
    const std::vector<RemoteBytes> answers = files_.read(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      add_whole_file(folder_, requests[i].file, answers[i], record_);
    }
    return std::all_of(names.begin(), names.end(),
                       [&](const std::string& name) { return record_.files.contains(name); });
  }

  [[noreturn]] void fail_without() const {
    std::string missing;
    for (const auto& names : vocabularies()) {
      if (!missing.empty()) missing += &names == &vocabularies().back() ? ", and no " : ", no ";
      missing += names.size() == 1 ? names[0] : cat(names[0], " with a ", names[1]);
    }
    throw Error(cat(quote(files_.address().text()), ": has no ", missing),
                "check the address, or name a model with the same tokenizer");
  }

  RemoteFiles& files_;
  fs::path folder_;
  PartialRecord record_;
};

}  // namespace

RemoteReader tokenizer_reader() {
  const auto first = std::make_shared<RemoteBytes>();
  RemoteReader reader;
  reader.suffix = "-tokenizer";
  reader.begin = [first](RemoteFiles& files) {
    const std::vector<RemoteRequest> requests = {whole(kFirst, kLargestSmall)};
    *first = std::move(files.read(requests)[0]);
  };
  reader.fill = [first](RemoteFiles& files, const fs::path& folder) {
    return TokenizerFiles(files, folder).run(*first);
  };
  // The record lists all files that were there.
  reader.is_complete = [](const fs::path&, const PartialRecord&) { return true; };
  return reader;
}

}  // namespace fp8kv
