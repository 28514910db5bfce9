// What decides a model's K and V, as short texts: the numbers of its config, and for each layer a
// digest of its weights with some of the weights themselves, so that of two models it can be told
// which part differs, and by how much. Made by checkpoint/model_identity.h.
#pragma once

#include <string>
#include <vector>

namespace fp8kv {

// A number or a choice that the forward pass is told: {"rope_theta", "500000"}.
struct ConfigNumber {
  std::string key;
  std::string value;
  bool operator==(const ConfigNumber&) const = default;
};

struct WeightsIdentity {
  std::string digest;  // 16 hex digits, over bytes of every tensor
  // Up to eight weights of each tensor, as the bytes that the file has, in hex; a blank between
  // tensors.
  std::string samples;
  bool operator==(const WeightsIdentity&) const = default;
};

// How large the sampled rows of one tensor are.
struct RowSizes {
  double all = 0;      // root of the mean square over all of them
  double largest = 0;  // that of the row where it is largest
  std::string name;    // "model.layers.0.self_attn.v_proj.weight"; scale files leave it out
  bool operator==(const RowSizes& other) const {
    return all == other.all && largest == other.largest;
  }
};

// Pieces of many rows of every tensor of a layer.
struct RowsIdentity {
  std::string digest;  // 16 hex digits, over these pieces
  std::vector<RowSizes> sizes;
  bool operator==(const RowsIdentity&) const = default;
};

struct ModelIdentity {
  std::vector<ConfigNumber> config;     // rising by key
  std::vector<WeightsIdentity> layers;  // all tensors from which K and V of any layer follow
  WeightsIdentity embedding;
  // Digest of what changes no K and V: what comes behind them in the last layer, and after it.
  std::string rest;
  // By layer, of the tensors of `layers`; empty in files of older versions. Made by
  // checkpoint/sampled_rows.h.
  std::vector<RowsIdentity> rows;
  std::string projections;  // the fingerprint of version 1 (checkpoint/fingerprint.h)
  bool operator==(const ModelIdentity&) const = default;
};

inline constexpr const char* kIdentityFingerprint = "kv-v2:";

// That and a SHA-256, over all but `rest`, `rows`, `projections` and the samples.
std::string fingerprint_of(const ModelIdentity& identity);

}  // namespace fp8kv
