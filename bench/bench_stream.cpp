// What it takes to bring a model's layers to a device, beside what the disk and the link give.
// usage: fp8kv_bench_stream MODEL cuda|hip|sim
//
// Files are read as often as it takes to have them in the page cache, so "warm" is memory's speed;
// "direct" goes past it to the disk. Each figure is the median of five passes over all layers.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "backend/plugin.h"
#include "base/block_file.h"
#include "base/error.h"
#include "io/architectures.h"
#include "io/checkpoint.h"
#include "model/weight_stream.h"

namespace fp8kv::bench {
namespace {

constexpr int kPasses = 5;

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

// Every shard by one thread, block after block.
void read_all(const Checkpoint& checkpoint, bool direct, std::span<std::byte> room) {
  const uint64_t block_bytes = room.size() - 2 * BlockFile::kAlignment;
  for (const Shard& shard : checkpoint.shards()) {
    const BlockFile file(checkpoint.folder() / shard.file, direct);
    for (uint64_t at = 0; at < shard.bytes; at += block_bytes) {
      file.read(at, static_cast<size_t>(std::min(block_bytes, shard.bytes - at)), room);
    }
  }
}

void stream_all(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                const StreamOptions& options) {
  std::vector<StreamedLayer> layers;
  for (int64_t i = 0; i < config.n_layers; ++i) layers.push_back({i, LayerPart::whole});
  WeightStream stream(checkpoint, config, backend, layers, options);
  for (int64_t i = 0; i < config.n_layers; ++i) {
    const LayerWeights& weights = stream.begin();
    // One word of the last tensor: waits until it is there.
    std::byte word[2];
    backend.download({weights.attn_norm.data, DType::u8, Shape{2}}, word);
    stream.end();
  }
}

void run(const std::string& model, const std::string& device) {
  const Checkpoint checkpoint = Checkpoint::open(model);
  const ModelConfig config = read_model_config(checkpoint);
  const auto backend = load_plugin(device);
  uint64_t bytes = 0, of_layers = 0;
  for (const Shard& shard : checkpoint.shards()) bytes += shard.bytes;
  for (int64_t i = 0; i < config.n_layers; ++i) {
    of_layers += stream_buffer_bytes(checkpoint, config, {{i, LayerPart::whole}});
  }
  std::printf("%s\n%s in files, %s in layers\n", backend->describe().c_str(),
              human_bytes(bytes).c_str(), human_bytes(of_layers).c_str());
  const StreamOptions options;
  const size_t room_bytes = options.block_bytes + 2 * BlockFile::kAlignment;
  const auto room = backend->transfers()->allocate_pinned(room_bytes);
  for (const bool direct : {false, true}) {
    const char* how = direct ? "direct" : "warm";
    const Spread read = times_of([&] { read_all(checkpoint, direct, {room.get(), room_bytes}); });
    print_row(cat("one thread reading, ", how), read, bytes, 0);
    const double limit = static_cast<double>(bytes) / read.median;
    for (const int readers : {1, 2, 4}) {
      StreamOptions with = options;
      with.readers = readers;
      with.direct = direct;
      print_row(cat("layers to the device, ", how, ", ", readers, " readers"),
                times_of([&] { stream_all(checkpoint, config, *backend, with); }), of_layers,
                limit);
    }
  }
}

}  // namespace
}  // namespace fp8kv::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: fp8kv_bench_stream MODEL cuda|hip|sim\n");
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
