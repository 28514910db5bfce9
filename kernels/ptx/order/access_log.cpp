#include "kernels/ptx/order/access_log.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "base/error.h"

namespace fp8kv::ptx {

LastingName lasting_name(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return &*names.insert(name).first;
}

void TouchedParts::touch(uint64_t at, uint8_t how) {
  const std::atomic_ref<uint8_t> flags(flags_[at / kPartBytes]);
  if ((flags.load(std::memory_order_relaxed) & how) == how) return;
  flags.fetch_or(how, std::memory_order_relaxed);
  std::atomic_ref<bool>(any_).store(true, std::memory_order_relaxed);
}

std::string AccessLog::note(size_t part, bool writes, const WorkTime& time, LastingName name) {
  Part& own = parts_[part];
  const auto before = [&](const Use& use) {
    return use.stream < 0 || time.comes_after(use.stream, use.number);
  };
  if (!before(own.write)) {
    return cat(writes ? "writes" : "reads", " what '", *own.write.name,
               "' writes in another stream, without waiting for it");
  }
  if (writes) {
    for (const Use& read : own.reads) {
      if (before(read)) continue;
      return cat("writes what '", *read.name, "' reads in another stream, without waiting for it");
    }
    own = {};
    own.write = {time.stream, time.number(), name};
    return "";
  }
  const auto same = std::find_if(own.reads.begin(), own.reads.end(), [&](const Use& read) {
    return read.stream == time.stream || read.stream < 0;
  });
  FP8KV_ASSERT(same != own.reads.end());
  *same = {time.stream, time.number(), name};
  return "";
}

}  // namespace fp8kv::ptx
