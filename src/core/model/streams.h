// Several residual streams side by side (AltUp), for the config and for the ops that mix them.
#pragma once

#include <cstdint>

namespace fp8kv {

// AltUp: a layer computes with one stream, the active one. All streams together predict its new
// value, and the layer's result then corrects all streams.
struct StreamsConfig {
  int64_t count = 0;    // 2 to kMostStreams
  int64_t active = 0;   // the stream that layers compute with
  bool scaled = false;  // scales the active stream by a vector where it meets a layer input
  bool operator==(const StreamsConfig&) const = default;
};

inline constexpr int64_t kMostStreams = 8;

// The least mean square that a stream counts for when it is scaled to the size of another stream.
inline constexpr float kLeastMeanSquare = 1e-5f;

}  // namespace fp8kv
