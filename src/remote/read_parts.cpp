#include "remote/read_parts.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hf_quant.h"
#include "files/output/copy_file.h"
#include "files/sparse_file.h"
#include "formats/safetensors.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestConfig = uint64_t(16) << 20;
constexpr uint64_t kLargestIndex = uint64_t(128) << 20;
// The first read of a header whose length no index gives. Most headers of single files are shorter;
// huggingface_hub assumes the same.
constexpr uint64_t kFirstRead = 100'000;
// Ranges closer than this are read in one request, since a request costs about as much time as this
// many bytes.
constexpr uint64_t kNearBytes = uint64_t(64) << 10;
constexpr uint64_t kLengthBytes = 8;
// Ranks differ in the digits of their offsets.
constexpr uint64_t kRankMargin = 2048;
constexpr int64_t kMostRanks = 4096;

std::string rank_file(int64_t rank) {
  return cat("rank", rank, ".safetensors");
}

// Estimates the header size of each shard in an index: for each tensor its name and the fields
// beside it ("dtype", "shape", "data_offsets").
std::map<std::string, uint64_t> header_guesses(const Json& index) {
  constexpr uint64_t kBesideName = 104;
  std::map<std::string, uint64_t> guesses;
  const Json weight_map = index.at("weight_map");
  for (size_t i = 0; i < weight_map.size(); ++i) {
    guesses[weight_map.value(i).as_string()] += weight_map.key(i).size() + kBesideName;
  }
  for (auto& [file, bytes] : guesses) bytes += 2048;
  return guesses;
}

class PartsReader {
 public:
  PartsReader(RemoteFiles& files, const FolderForm& form, fs::path folder)
      : files_(files), form_(form), folder_(std::move(folder)) {
    record_.address = recorded_address(files);
  }

  PartialRecord run(const RemoteBytes& config, const NeededParts& needed) {
    add_whole_file(folder_, form_.config, config, record_);
    read_headers(shards(config.bytes));
    write_partial_record(folder_, record_);
    read_missing(needed(folder_));
    write_partial_record(folder_, record_);
    return std::move(record_);
  }

 private:
  std::string shown(const std::string& file) const {
    return quote(cat(files_.address().text(), ": ", file));
  }

  // The shards that a reader of the folder will open, with estimates of their header sizes.
  std::map<std::string, uint64_t> shards(const std::string& config) {
    const std::vector<RemoteRequest> requests = {
        {form_.index, std::nullopt, kLargestIndex, true},
        {kModelOptFile, std::nullopt, kLargestConfig, true},
        {form_.single, ByteRange{0, kFirstRead}, 0, true}};
    std::vector<RemoteBytes> found = files_.read(requests);
    const bool has_single = !found[2].absent;
    if (!has_single && found[0].absent) {
      if (form_.of_mistral) fail_without_weights("");
      return ranks(config);
    }
    add_whole_file(folder_, kModelOptFile, found[1], record_);
    if (has_single) heads_.emplace(form_.single, std::move(found[2]));
    if (found[0].absent) return {{form_.single, kFirstRead}};
    add_whole_file(folder_, form_.index, found[0], record_);
    const Json index = Json::parse(found[0].bytes, shown(form_.index));
    const std::vector<std::string> named = files_of_index(index);
    const bool index_counts =
        !has_single || std::count(named.begin(), named.end(), form_.single) > 0;
    if (!index_counts) return {{form_.single, kFirstRead}};
    return header_guesses(index);
  }

  [[noreturn]] void fail_without_weights(const std::string& more) const {
    throw Error(
        cat(quote(files_.address().text()), ": has no ", form_.single, more.empty() ? " and" : ",",
            " no ", form_.index, more, ", so no weights in safetensors"),
        "only models in safetensors can be read from there; fetch the folder, and name "
        "it here");
  }

  // The files of a TensorRT-LLM folder. All ranks have the same tensors, so their headers are about
  // as long as that of the first.
  std::map<std::string, uint64_t> ranks(const std::string& config) {
    const std::vector<RemoteRequest> requests = {{rank_file(0), ByteRange{0, kFirstRead}, 0, true}};
    std::vector<RemoteBytes> found = files_.read(requests);
    if (found[0].absent) fail_without_weights(cat(" and no ", rank_file(0)));
    const uint64_t guess = header_end(rank_file(0), found[0]) + kRankMargin;
    heads_.emplace(rank_file(0), std::move(found[0]));
    std::map<std::string, uint64_t> guesses;
    const auto mapping =
        Json::parse(config, shown(form_.config), JsonNumbers::python).find("mapping");
    const int64_t n_ranks = mapping ? mapping->get_int("tp_size", 1) : 1;
    // The reader of the folder refuses other numbers.
    if (n_ranks < 1 || n_ranks > kMostRanks) return {{rank_file(0), guess}};
    for (int64_t rank = 0; rank < n_ranks; ++rank) guesses[rank_file(rank)] = guess;
    return guesses;
  }

  void read_headers(const std::map<std::string, uint64_t>& guesses) {
    std::vector<RemoteRequest> requests;
    for (const auto& [name, guess] : guesses) {
      if (!heads_.contains(name)) requests.push_back({name, ByteRange{0, guess}});
    }
    add_to_heads(requests);
    requests.clear();
    for (const auto& [name, head] : heads_) {
      const uint64_t wanted = header_end(name, head);
      if (wanted > head.bytes.size()) {
        requests.push_back({name, ByteRange{head.bytes.size(), wanted}});
      }
    }
    add_to_heads(requests);
    for (const auto& [name, head] : heads_) write_head(name, head);
  }

  void add_to_heads(const std::vector<RemoteRequest>& requests) {
    std::vector<RemoteBytes> parts = files_.read(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      RemoteBytes& head = heads_[requests[i].file];
      head.file_bytes = parts[i].file_bytes;
      head.etag = std::move(parts[i].etag);
      head.bytes += parts[i].bytes;
    }
  }

  // The end of the header by the file's first bytes, which are validated later.
  uint64_t header_end(const std::string& name, const RemoteBytes& head) const {
    if (head.bytes.size() < kLengthBytes) return head.bytes.size();
    uint64_t length = 0;
    std::memcpy(&length, head.bytes.data(), kLengthBytes);
    if (length > kMaxSafetensorsHeader) parse_safetensors(head.bytes, head.file_bytes, shown(name));
    return std::min(head.file_bytes, kLengthBytes + length);
  }

  void write_head(const std::string& name, const RemoteBytes& head) {
    parse_safetensors(head.bytes, head.file_bytes, shown(name));
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    SparseFile& file = sparse_.try_emplace(name, path, head.file_bytes).first->second;
    file.write(0, head.bytes);
    PartialFile& known = record_.files[name];
    known.bytes = head.file_bytes;
    known.etag = head.etag;
    known.add(0, head.bytes.size());
  }

  void read_missing(const std::vector<FilePart>& parts) {
    std::map<std::string, PartialFile> missing;
    for (const FilePart& part : parts) {
      const auto& [begin, end] = part.range;
      if (!record_.files.at(part.file).has(begin, end)) missing[part.file].add(begin, end);
    }
    std::vector<RemoteRequest> requests;
    for (const auto& [shard, file] : missing) {
      std::optional<ByteRange> last;
      for (const ByteRange& range : file.present) {
        if (last && range.begin - last->end <= kNearBytes) {
          last->end = range.end;
          continue;
        }
        if (last) requests.push_back({shard, last});
        last = range;
      }
      requests.push_back({shard, last});
    }
    const std::vector<RemoteBytes> answers = files_.read(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      const ByteRange& range = *requests[i].range;
      sparse_.at(requests[i].file).write(range.begin, answers[i].bytes);
      record_.files.at(requests[i].file).add(range.begin, range.begin + answers[i].bytes.size());
    }
  }

  RemoteFiles& files_;
  FolderForm form_;
  fs::path folder_;
  PartialRecord record_;
  std::map<std::string, RemoteBytes> heads_;  // the first bytes of each shard
  std::map<std::string, SparseFile> sparse_;
};

// The config of a remote model, and the form that its folder has by it.
struct RemoteConfig {
  FolderForm form = kHuggingFaceForm;
  RemoteBytes file;
};

RemoteConfig read_remote_config(RemoteFiles& files) {
  const auto read = [&](const FolderForm& form, bool may_be_absent) {
    const std::vector<RemoteRequest> requests = {
        {form.config, std::nullopt, kLargestConfig, may_be_absent}};
    return RemoteConfig{form, std::move(files.read(requests)[0])};
  };
  for (const FolderForm& form : {kHuggingFaceForm, kMistralForm}) {
    RemoteConfig config = read(form, true);
    if (!config.file.absent) return config;
  }
  return read(kHuggingFaceForm, false);  // says why there is none
}

}  // namespace

RemoteReader parts_reader(NeededParts needed) {
  const auto config = std::make_shared<RemoteConfig>();
  RemoteReader reader;
  reader.begin = [config](RemoteFiles& files) {
    *config = read_remote_config(files);
    const std::string shown = quote(cat(files.address().text(), ": ", config->form.config));
    Json::parse(config->file.bytes, shown, JsonNumbers::python);
  };
  reader.fill = [config, needed](RemoteFiles& files, const fs::path& folder) {
    return PartsReader(files, config->form, folder).run(config->file, needed);
  };
  reader.is_complete = [needed](const fs::path& folder, const PartialRecord& record) {
    const std::vector<FilePart> parts = needed(folder);
    return std::all_of(parts.begin(), parts.end(), [&](const FilePart& part) {
      const auto file = record.files.find(part.file);
      return file != record.files.end() && file->second.has(part.range.begin, part.range.end);
    });
  };
  return reader;
}

}  // namespace fp8kv
