// A model folder: config, index, and the scales in its shards. An input is several files, each
// behind a line that names it.
#include <algorithm>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/read_model_config.h"
#include "fuzz.h"
#include "scales/read/find_scales.h"

namespace fp8kv::fuzz {
namespace {

constexpr std::string_view kFile = "\n--8<-- ";

// Files directly in the folder, so that no name leaves it.
std::string plain_name(std::string_view line) {
  std::string name;
  for (const char c : line.substr(0, 64)) {
    name += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ? c : '_';
  }
  return name.empty() || name == "." || name == ".." ? "_" : name;
}

// At most eight: more find nothing more.
void lay_out(const std::string& input, const std::filesystem::path& folder) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  size_t at = input.find(kFile);
  for (int count = 0; at != input.npos && count < 8; ++count) {
    const size_t name_at = at + kFile.size();
    const size_t line_end = input.find('\n', name_at);
    if (line_end == input.npos) return;
    at = input.find(kFile, line_end);
    const size_t end = std::min(at, input.size());
    write(folder / plain_name(std::string_view(input).substr(name_at, line_end - name_at)),
          std::string_view(input).substr(line_end + 1, end - line_end - 1));
  }
}

template <typename Work>
void allow_errors(const Work& work) {
  try {
    work();
  } catch (const Error&) {  // one part may be wrong where another is right
  }
}

void run(const std::string& input) {
  const std::filesystem::path folder = work_folder() / "model";
  lay_out(input, folder);
  allow_errors([&] {
    const FoundScales found = survey_scales(folder);
    if (found.refusal || found.absent) return;
    for (const ScaleTensor& tensor : found.tensors) require(!tensor.name.empty(), "a name");
    require(found.scales.cached_layers() > 0, "scales that are found have layers with a cache");
    for (const ScaleTensor& tensor : found.tensors) {
      require(found.scales.layers.at(static_cast<size_t>(tensor.layer)).has_cache(),
              "a tensor is of a layer with a cache");
    }
  });
  const Checkpoint checkpoint = Checkpoint::open(folder);
  for (const auto& [name, location] : checkpoint.tensors()) {
    require(location.shard < checkpoint.shards().size(), "a tensor lies in a shard");
    require(location.entry.end <= checkpoint.shards()[location.shard].bytes, "and within it");
  }
  static_cast<void>(read_model_config(checkpoint));
}

std::vector<std::string> seeds(const std::filesystem::path& root) {
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(root / "tests/golden/dialects")) {
    if (!entry.is_directory()) continue;
    std::string input;
    for (const auto& file : std::filesystem::directory_iterator(entry.path())) {
      input += std::string(kFile) + file.path().filename().string() + "\n" + read(file.path());
    }
    inputs.push_back(input);
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

}  // namespace

const Target kCheckpoint{"checkpoint", run, nullptr, seeds};

}  // namespace fp8kv::fuzz
