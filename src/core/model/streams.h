// Several residual streams side by side (AltUp, hyper-connections), for the config and for the ops
// that mix them.
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

// Hyper-connections: attention and the feed-forward part each read a weighted sum of all streams.
// Their output is added to every stream, times a weight. A product of all streams makes a row's
// weights. At the end of the model another weighted sum merges the streams.
// The streams may mix too, before a block's output joins them (DeepSeek V4). Then the product also
// makes a matrix of count x count weights: a softmax along each row, whose columns and rows are in
// turn divided by their sums.
// With a rank, each element of each stream has a weight of its own (Qwen 4 Exp). Streams are
// normed, and two products with that many numbers between them make the weights: see GatedStreams.
// The next three fields have no use then.
struct HyperConfig {
  int64_t count = 0;          // 2 to kMostStreams
  int64_t rank = 0;           // 0: one weight for a stream
  double eps = 0.0;           // added to all weights
  double most_written = 2.0;  // multiplies the sigmoid that makes the weights of what is written
  int64_t rounds = 0;         // divisions of the mixing matrix by sums of columns; 0: no mixing
  bool eps_written = true;    // eps is added to the weights of what is written, too
  bool mean_head = false;     // the mean of the streams ends the model, without weights: GLM-5 Next
  bool f32_product = false;   // the files have these products in F32 beside weights in 16 bits
  // The numbers that the product before a block makes.
  int64_t width() const { return (rounds > 0 ? 2 + count : 2) * count; }
  bool operator==(const HyperConfig&) const = default;
};

inline constexpr int64_t kMostStreams = 8;
inline constexpr int64_t kMostMixed = 16;  // that Backend::mix_streams sums up

// How Backend::mix_streams sums streams up.
struct StreamSum {
  float more = 0.0f;  // added to each share
  bool onto = true;   // adds the sums to what is there
};

// The least product that a stream gate takes the root of.
inline constexpr float kLeastProduct = 1e-6f;

// The least mean square that a stream counts for when it is scaled to the size of another stream.
inline constexpr float kLeastMeanSquare = 1e-5f;

}  // namespace fp8kv
