#include "model/weights/weight_stream.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/machine/machine_memory.h"
#include "base/machine/thread_pool.h"
#include "files/block_file.h"

namespace fp8kv {
namespace {

// A reader fills one slot while its other is being copied.
constexpr size_t kSlotsPerReader = 2;

std::string reading(const StreamBlock& block) {
  return cat("reading tensor ", quote(*block.pieces.front().tensor));
}

bool larger_than_half_of_memory(const Checkpoint& checkpoint) {
  uint64_t bytes = 0;
  for (const Shard& shard : checkpoint.shards()) bytes += shard.bytes;
  return bytes > machine_memory().total_bytes / 2;
}

}  // namespace

uint64_t stream_buffer_bytes(const Checkpoint& checkpoint, const ModelConfig& config,
                             const std::vector<StreamedLayer>& layers) {
  const ModelWeights weights(checkpoint, config.dtype);
  uint64_t most = 0;
  for (const StreamedLayer& layer : layers) {
    most = std::max(most, layout_of({weights, config}, layer).bytes);
  }
  return most;
}

// The buffers, and the threads that fill them. Copies to buffer i go through copy queue i + 1. They
// start once the ops that read its old contents are done; ops that read the new contents wait for
// them.
class WeightStream::Device {
 public:
  Device(const WeightStream& stream, const StreamOptions& options)
      : stream_(stream),
        transfers_(*stream.backend_.transfers()),
        options_(options),
        direct_(options.direct.value_or(larger_than_half_of_memory(stream.checkpoint_))) {
    const uint64_t bytes = stream_buffer_bytes(stream.checkpoint_, stream.config_, stream.layers_);
    const size_t wanted = std::min(static_cast<size_t>(options.buffers), stream.layers_.size());
    for (size_t i = 0; i < wanted; ++i) {
      Buffer& buffer = buffers_.emplace_back();
      buffer.memory = with_context(cat("layer buffer ", i + 1, " of ", wanted), [&] {
        return stream.backend_.allocate(DType::u8, Shape{static_cast<int64_t>(bytes)});
      });
      buffer.filled = transfers_.make_mark();
      buffer.read = transfers_.make_mark();
      transfers_.record(buffer.read, kOpsQueue);  // allocating clears the memory, which is an op
    }
    const size_t slot_bytes =
        std::min<uint64_t>(options.block_bytes, bytes) + 2 * BlockFile::kAlignment;
    for (size_t i = 0; i < kSlotsPerReader * static_cast<size_t>(options.readers); ++i) {
      slots_.push_back(
          {transfers_.allocate_pinned(slot_bytes), slot_bytes, transfers_.make_mark()});
    }
    for (size_t i = 0; i < wanted; ++i) load(i);
    try {
      for (size_t i = 0; i < static_cast<size_t>(options.readers); ++i) {
        readers_.emplace_back([this, i] { read_blocks(i); });
      }
    } catch (const std::system_error& error) {
      stop();
      throw cannot_start_thread(readers_.size() + 1, static_cast<size_t>(options.readers), error);
    } catch (...) {
      stop();
      throw;
    }
  }

  ~Device() { stop(); }

  // Waits until all copies of the layer at `position` are queued, and lets the ops that follow wait
  // for them. Failures of later layers do not matter here: this layer can still be computed with.
  LayerWeights begin(size_t position) {
    Buffer& buffer = buffers_[position % buffers_.size()];
    {
      std::unique_lock lock(mutex_);
      while (!buffer.failure && buffer.blocks_left > 0) {
        check_interrupt();
        progress_.wait_for(lock, std::chrono::milliseconds(50));
      }
      if (buffer.failure) std::rethrow_exception(buffer.failure);
    }
    transfers_.wait(kOpsQueue, buffer.filled);
    const StreamedLayer& layer = stream_.layers_[position];
    BumpAllocator region{buffer.memory.view().data, buffer.layout.region_at};
    return weights_in({stream_.files_, stream_.config_}, layer, buffer.layout, &stream_.backend_,
                      region);
  }

  void end(size_t position) {
    transfers_.record(buffers_[position % buffers_.size()].read, kOpsQueue);
    if (position + buffers_.size() < stream_.layers_.size()) load(position + buffers_.size());
  }

 private:
  struct Buffer {
    Tensor memory;
    StreamLayout layout;
    size_t blocks_left = 0;      // not given to the copy queue yet; under mutex_
    std::exception_ptr failure;  // of a block, or of opening them; under mutex_
    int filled = 0;              // mark behind the buffer's last copy
    int read = 0;                // mark behind the ops that used its old contents
  };
  struct Slot {
    std::shared_ptr<std::byte> memory;
    size_t bytes;
    int emptied;  // mark behind its last copy
  };
  struct Job {
    size_t buffer;
    StreamBlock block;
  };

  static int queue_of(size_t buffer) { return static_cast<int>(buffer) + 1; }

  // Queues the reads of a layer. begin(position) reports failures.
  void load(size_t position) {
    const size_t index = position % buffers_.size();
    try {
      std::vector<StreamBlock> blocks = open_blocks(position);
      transfers_.wait(queue_of(index), buffers_[index].read);
      const std::lock_guard lock(mutex_);
      buffers_[index].blocks_left = blocks.size();
      for (StreamBlock& block : blocks) jobs_.push_back({index, std::move(block)});
      work_.notify_all();
    } catch (const Error&) {
      const std::lock_guard lock(mutex_);
      buffers_[index].failure = std::current_exception();
    }
  }

  std::vector<StreamBlock> open_blocks(size_t position) {
    StreamLayout& layout = buffers_[position % buffers_.size()].layout;
    const Checkpoint& checkpoint = stream_.checkpoint_;
    const StreamedLayer& layer = stream_.layers_[position];
    layout = layout_of({stream_.files_, stream_.config_}, layer);
    for (const ModelTensor& tensor : needed_tensors(stream_.config_, layer.index, layer.part)) {
      stream_.files_.check_values(stream_.files_.at(tensor));
    }
    std::vector<StreamBlock> blocks = blocks_of(layout, options_.block_bytes);
    std::map<size_t, std::shared_ptr<const BlockFile>> files;
    for (StreamBlock& block : blocks) {
      std::shared_ptr<const BlockFile>& file = files[block.shard];
      if (!file) {
        const std::string& name = checkpoint.shards()[block.shard].file;
        file = with_context(reading(block), [&] {
          return std::make_shared<const BlockFile>(checkpoint.folder() / name, direct_);
        });
      }
      block.file = file;
    }
    return blocks;
  }

  void read_blocks(size_t reader) {
    for (size_t turn = 0;; ++turn) {
      std::optional<Job> job;
      {
        std::unique_lock lock(mutex_);
        work_.wait(lock, [&] { return stopped_ || !jobs_.empty(); });
        if (stopped_) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      try {
        carry(*job, slots_[reader * kSlotsPerReader + turn % kSlotsPerReader]);
        count_block(job->buffer);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        Buffer& buffer = buffers_[job->buffer];
        if (!buffer.failure) buffer.failure = std::current_exception();
        progress_.notify_all();
      }
    }
  }

  // Whoever counts the last block knows that all other copies are already in the queue.
  void count_block(size_t index) {
    const std::lock_guard lock(mutex_);
    Buffer& buffer = buffers_[index];
    if (--buffer.blocks_left > 0) return;
    transfers_.record(buffer.filled, queue_of(index));
    progress_.notify_all();
  }

  // Reads a block from its file into the slot, and starts its copies to the buffer.
  void carry(const Job& job, const Slot& slot) {
    transfers_.wait_here(slot.emptied);
    const StreamBlock& block = job.block;
    const std::byte* read = with_context(reading(block), [&] {
      return block.file->read(block.offset, block.bytes, {slot.memory.get(), slot.bytes});
    });
    std::byte* memory = buffers_[job.buffer].memory.view().data;
    for (const StreamPiece& piece : block.pieces) {
      transfers_.to_device(queue_of(job.buffer), memory + piece.at, read + piece.in_block,
                           piece.bytes);
    }
    transfers_.record(slot.emptied, queue_of(job.buffer));
  }

  // Waits for copies under way, since they read slots and write buffers.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      work_.notify_all();
    }
    for (std::thread& reader : readers_) reader.join();
    try {
      for (const Slot& slot : slots_) transfers_.wait_here(slot.emptied);
    } catch (const std::exception&) {  // the device is lost, and its copies with it
    }
  }

  const WeightStream& stream_;
  Transfers& transfers_;
  const StreamOptions options_;
  const bool direct_;
  std::vector<Buffer> buffers_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable work_;      // there are jobs, or the stream stops
  std::condition_variable progress_;  // all of a buffer's copies are queued, or one failed
  std::deque<Job> jobs_;
  bool stopped_ = false;
  std::vector<std::thread> readers_;
};

WeightStream::WeightStream(const Checkpoint& checkpoint, const ModelConfig& config,
                           Backend& backend, std::vector<StreamedLayer> layers,
                           const StreamOptions& options)
    : checkpoint_(checkpoint),
      config_(config),
      files_(checkpoint, config.dtype),
      backend_(backend),
      layers_(std::move(layers)) {
  if (backend.transfers()) device_ = std::make_unique<Device>(*this, options);
}

WeightStream::~WeightStream() = default;

const LayerWeights& WeightStream::begin() {
  FP8KV_ASSERT(position_ < layers_.size());
  if (device_) {
    weights_ = device_->begin(position_);
    return weights_;
  }
  const StreamedLayer& layer = layers_[position_];
  std::vector<Tensor> storage;
  const auto find_file = [&](const TensorEntry& entry) {
    const MappedTensor mapped = checkpoint_.map(entry.name);
    return ConstTensorView(
        storage.emplace_back(backend_.upload(mapped.view, mapped.keep_alive)).view());
  };
  const auto allocate = [&](DType dtype, const Shape& shape) {
    return storage.emplace_back(backend_.allocate(dtype, shape)).view();
  };
  const auto find = [&](const ModelTensor& tensor) {
    const Weight weight = files_.at(tensor);
    files_.check_values(weight);
    return find_weight(tensor, weight, &backend_, find_file, allocate);
  };
  const auto numbers = [&](const ModelTensor& tensor) { return numbers_in(checkpoint_, tensor); };
  weights_ =
      make_layer_weights(config_, layer.index, layer.part, {find, allocate, numbers, &backend_});
  weights_.storage = std::move(storage);
  return weights_;
}

void WeightStream::end() {
  weights_ = {};
  if (device_) device_->end(position_);
  ++position_;
}

}  // namespace fp8kv
