#include "remote/read_parts.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/error.h"
#include "checkpoint/quant_config.h"
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
  PartsReader(RemoteFiles& files, fs::path folder) : files_(files), folder_(std::move(folder)) {
    record_.address = files_.address().text();
    if (!files_.commit().empty()) {
      record_.address = cat("hf://", files_.address().hub->repo, "@", files_.commit());
    }
  }

  uint64_t run(const std::string& config, const NeededTensors& needed) {
    write_new_file(folder_ / "config.json", config);
    read_headers(shards());
    write_record();
    read_tensors(needed(Checkpoint::open(folder_)));
    write_record();
    uint64_t bytes = 0;
    for (const auto& [name, file] : record_.files) bytes += file.bytes;
    return bytes;
  }

 private:
  std::string shown(const std::string& file) const {
    return quote(cat(files_.address().text(), ": ", file));
  }

  // The shards that Checkpoint::open will look for, with estimates of their header sizes.
  std::map<std::string, uint64_t> shards() {
    const std::vector<RemoteRequest> requests = {
        {kIndexFile, std::nullopt, kLargestIndex, true},
        {kModelOptFile, std::nullopt, kLargestConfig, true},
        {kSingleFile, ByteRange{0, kFirstRead}, 0, true}};
    std::vector<RemoteBytes> found = files_.read(requests);
    if (!found[1].absent) write_new_file(folder_ / kModelOptFile, found[1].bytes);
    const bool has_single = !found[2].absent;
    if (has_single) heads_.emplace(kSingleFile, std::move(found[2]));
    if (found[0].absent) {
      if (has_single) return {{kSingleFile, kFirstRead}};
      throw Error(cat(quote(files_.address().text()), ": has neither ", kSingleFile, " nor ",
                      kIndexFile, ", so no weights in safetensors"),
                  "only models in safetensors can be read from there");
    }
    write_new_file(folder_ / kIndexFile, found[0].bytes);
    const Json index = Json::parse(found[0].bytes, shown(kIndexFile));
    const std::vector<std::string> named = files_of_index(index);
    const bool index_counts =
        !has_single || std::count(named.begin(), named.end(), kSingleFile) > 0;
    if (!index_counts) return {{kSingleFile, kFirstRead}};
    return header_guesses(index);
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

  void read_tensors(const std::vector<std::string>& names) {
    const Checkpoint checkpoint = Checkpoint::open(folder_);
    std::map<std::string, PartialFile> missing;
    for (const std::string& name : names) {
      const TensorLocation& place = checkpoint.tensors().at(name);
      const std::string& shard = checkpoint.shards()[place.shard].file;
      if (record_.files.at(shard).has(place.entry.begin, place.entry.end)) continue;
      missing[shard].add(place.entry.begin, place.entry.end);
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
    const std::vector<RemoteBytes> parts = files_.read(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      const ByteRange& range = *requests[i].range;
      sparse_.at(requests[i].file).write(range.begin, parts[i].bytes);
      record_.files.at(requests[i].file).add(range.begin, range.begin + parts[i].bytes.size());
    }
  }

  void write_record() {
    std::error_code ignored;
    fs::remove(folder_ / kPartialRecord, ignored);
    write_new_file(folder_ / kPartialRecord, partial_record_text(record_));
  }

  RemoteFiles& files_;
  fs::path folder_;
  PartialRecord record_;
  std::map<std::string, RemoteBytes> heads_;  // the first bytes of each shard
  std::map<std::string, SparseFile> sparse_;
};

}  // namespace

std::string read_remote_config(RemoteFiles& files) {
  const std::vector<RemoteRequest> requests = {{"config.json", std::nullopt, kLargestConfig}};
  std::string text = files.read(requests)[0].bytes;
  Json::parse(text, quote(cat(files.address().text(), ": config.json")), JsonNumbers::python);
  return text;
}

uint64_t read_parts(RemoteFiles& files, const std::string& config, const fs::path& folder,
                    const NeededTensors& needed) {
  return PartsReader(files, folder).run(config, needed);
}

}  // namespace fp8kv
