#include "data/shard.h"

#include <charconv>

#include "base/error.h"

namespace fp8kv {

std::optional<WindowShard> shard_from_text(const std::string& text) {
  WindowShard shard;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  if (index.ec != std::errc() || index.ptr == end || *index.ptr != '/') return std::nullopt;
  const auto of = std::from_chars(index.ptr + 1, end, shard.of);
  if (of.ec != std::errc() || of.ptr != end || shard.index >= shard.of) return std::nullopt;
  return shard;
}

ShardNote take_shard(Windows& windows, const WindowShard& shard) {
  FP8KV_ASSERT(shard.index < shard.of && windows.document.size() == windows.ids.size());
  if (shard.of == 1) return {};
  const uint64_t n_windows = windows.ids.size();
  if (shard.index >= n_windows) {
    throw Error(
        cat("the data gives only ", count_of(n_windows, "window"), ", so this shard has none"),
        cat("use at most ", count_of(n_windows, "shard"), ", or add data"), ErrorKind::usage);
  }
  ShardNote note{shard.of, {shard.index}, windows.documents, n_windows, windows.tokens};
  Windows kept;
  kept.files = std::move(windows.files);
  kept.chat_templates = std::move(windows.chat_templates);
  for (uint64_t i = shard.index; i < n_windows; i += shard.of) {
    const bool first = i == 0 || windows.document[i] != windows.document[i - 1];
    kept.documents += first ? 1 : 0;
    kept.tokens += windows.ids[i].size();
    kept.ids.push_back(std::move(windows.ids[i]));
    kept.document.push_back(windows.document[i]);
  }
  windows = std::move(kept);
  return note;
}

}  // namespace fp8kv
