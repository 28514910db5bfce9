// Several residual streams side by side (AltUp), for the config and for the ops that mix them.
#pragma once

#include <cstdint>

namespace fp8kv {

// A layer computes with one of the streams: what it will be is predicted from all, and what the
// layer makes of it corrects all.
struct StreamsConfig {
  int64_t count = 0;    // 2 to kMostStreams
  int64_t active = 0;   // the one that layers compute with
  bool scaled = false;  // it is multiplied by a vector where it takes in a layer's own input
  bool operator==(const StreamsConfig&) const = default;
};

inline constexpr int64_t kMostStreams = 8;

// What the mean square of a stream counts for at least, where it is brought to the size of another.
inline constexpr float kLeastMeanSquare = 1e-5f;

}  // namespace fp8kv
