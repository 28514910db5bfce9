// Speed of bringing a model's layers to a device, beside the limits of disk and link.
// usage: fp8kv_bench_stream MODEL cuda|hip|ptx|sim
//
// "warm" reads files that are in the page cache already, at the speed of memory. "direct" goes past
// the page cache to the disk. Each figure is the median of five passes over the first layers, of 2
// GiB at most.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "backend/open/plugin.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/model/read_model_config.h"
#include "files/block_file.h"
#include "model/weights/weight_stream.h"

namespace fp8kv::bench {
namespace {

constexpr int kPasses = 5;
constexpr uint64_t kMostBytes = uint64_t(2) << 30;

struct Spread {
  double median, least, most;  // seconds
};

Spread times_of(const std::function<void()>& pass) {
  using Clock = std::chrono::steady_clock;
  pass();
  std::vector<double> times;
  for (int i = 0; i < kPasses; ++i) {
    const auto start = Clock::now();
    pass();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return {times[kPasses / 2], times.front(), times.back()};
}

void print_row(const std::string& name, const Spread& time, uint64_t bytes, double limit) {
  const double rate = static_cast<double>(bytes) / time.median;
  std::printf("%-44s %8.2f GB/s  %6.1f to %.1f", name.c_str(), rate / 1e9,
              static_cast<double>(bytes) / time.most / 1e9,
              static_cast<double>(bytes) / time.least / 1e9);
  if (limit > 0) std::printf("  %5.1f %% of reading", 100 * rate / limit);
  std::printf("\n");
  std::fflush(stdout);
}

// Reads by one thread, block after block. Returns how many bytes it read.
uint64_t read_files(const Checkpoint& checkpoint, bool direct, std::span<std::byte> room) {
  const uint64_t block_bytes = room.size() - 2 * BlockFile::kAlignment;
  uint64_t bytes = 0;
  for (const Shard& shard : checkpoint.shards()) {
    const BlockFile file(checkpoint.folder() / shard.file, direct);
    for (uint64_t at = 0; at < shard.bytes && bytes < kMostBytes; at += block_bytes) {
      const uint64_t length = std::min(block_bytes, shard.bytes - at);
      file.read(at, static_cast<size_t>(length), room);
      bytes += length;
    }
  }
  return bytes;
}

struct Layers {
  std::vector<StreamedLayer> layers;
  uint64_t bytes = 0;
};

Layers first_layers(const Checkpoint& checkpoint, const ModelConfig& config) {
  Layers first;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    const StreamedLayer layer{i, LayerPart::whole};
    const uint64_t bytes = stream_buffer_bytes(checkpoint, config, {layer});
    if (i > 0 && first.bytes + bytes > kMostBytes) break;
    first.layers.push_back(layer);
    first.bytes += bytes;
  }
  return first;
}

void stream_all(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                const std::vector<StreamedLayer>& layers, const StreamOptions& options) {
  WeightStream stream(checkpoint, config, backend, layers, options);
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerWeights& weights = stream.begin();
    // Downloads one word of any tensor: ops and copies after begin() wait for the whole layer.
    std::byte word[2];
    backend.download({weights.o.weight.data, DType::u8, Shape{2}}, word);
    stream.end();
  }
}

void run(const std::string& model, const std::string& device) {
  const Checkpoint checkpoint = Checkpoint::open(model);
  const ModelConfig config = read_model_config(checkpoint);
  const auto backend = load_plugin(device);
  const Layers first = first_layers(checkpoint, config);
  std::printf("%s\n%zu of %lld layers, %s\n", backend->describe().c_str(), first.layers.size(),
              static_cast<long long>(config.n_layers()), human_bytes(first.bytes).c_str());
  const StreamOptions options;
  const size_t room_bytes = options.block_bytes + 2 * BlockFile::kAlignment;
  const auto room = backend->transfers()->allocate_pinned(room_bytes);
  for (const bool direct : {false, true}) {
    const char* how = direct ? "direct" : "warm";
    uint64_t bytes = 0;
    const Spread read = times_of([&] {
      bytes = read_files(checkpoint, direct, {room.get(), room_bytes});
    });
    print_row(cat("one thread reading, ", how), read, bytes, 0);
    const double limit = static_cast<double>(bytes) / read.median;
    for (const int readers : {1, 2, 4}) {
      StreamOptions with = options;
      with.readers = readers;
      with.direct = direct;
      print_row(cat("layers to the device, ", how, ", ", readers, " readers"),
                times_of([&] { stream_all(checkpoint, config, *backend, first.layers, with); }),
                first.bytes, limit);
    }
  }
}

}  // namespace
}  // namespace fp8kv::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: fp8kv_bench_stream MODEL cuda|hip|ptx|sim\n");
    return 2;
  }
  try {
    fp8kv::bench::run(argv[1], argv[2]);
    return 0;
  } catch (const fp8kv::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
