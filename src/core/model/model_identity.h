// Everything that decides a model's K and V, as short texts: the numbers of its config, and for
// each layer a digest and some samples of its weights. Two identities tell which parts of two
// models differ, and by how much. checkpoint/identity/model_identity.h makes them.
#pragma once

#include <string>
#include <vector>

namespace fp8kv {

// A config value that the forward pass uses: {"rope_theta", "500000"}.
struct ConfigNumber {
  std::string key;
  std::string value;
  bool operator==(const ConfigNumber&) const = default;
};

struct WeightsIdentity {
  std::string digest;  // 16 hex digits, over bytes of every tensor
  // Up to eight weights of each tensor: their bytes in the file, in hex. Blanks separate tensors.
  std::string samples;
  bool operator==(const WeightsIdentity&) const = default;
};

// The size of one tensor's sampled rows.
struct RowSizes {
  double all = 0;      // root mean square over all sampled rows
  double largest = 0;  // root mean square of the row that has the largest
  std::string name;    // "model.layers.0.self_attn.v_proj.weight"; scale files leave it out
  bool operator==(const RowSizes& other) const {
    return all == other.all && largest == other.largest;
  }
};

// An identity made from pieces of many rows of every tensor of a layer.
struct RowsIdentity {
  std::string digest;  // 16 hex digits, over these pieces
  std::vector<RowSizes> sizes;
  bool operator==(const RowsIdentity&) const = default;
};

struct ModelIdentity {
  std::vector<ConfigNumber> config;     // rising by key
  std::vector<WeightsIdentity> layers;  // covers every tensor that influences K or V of any layer
  WeightsIdentity embedding;
  // Digest of the weights that influence no K or V: those behind K and V in the last layer, and
  // later ones.
  std::string rest;
  // Rows of the same tensors as in `layers`, by layer; empty in files of older versions.
  // checkpoint/identity/sampled_rows.h makes them.
  std::vector<RowsIdentity> rows;
  std::string projections;  // the fingerprint of version 1 (checkpoint/identity/fingerprint.h)
  bool operator==(const ModelIdentity&) const = default;
};

inline constexpr const char* kIdentityFingerprint = "kv-v2:";

// kIdentityFingerprint and a SHA-256 over everything except `rest`, `rows`, `projections` and
// samples.
std::string fingerprint_of(const ModelIdentity& identity);

}  // namespace fp8kv
