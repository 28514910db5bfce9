// What decides a model's K and V, as short texts: the numbers of its config, and for each layer a
// digest of its weights with some of the weights themselves, so that of two models it can be told
// which part differs, and by how much. Made by checkpoint/model_identity.h.
#pragma once

#include <cstdint>
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

struct ModelIdentity {
  std::vector<ConfigNumber> config;     // rising by key
  std::vector<WeightsIdentity> layers;  // all tensors from which K and V of any layer follow
  WeightsIdentity embedding;
  int64_t vocab_size = 0;
  std::string rest;  // digest of what changes no K and V: what comes behind them in the last layer
  bool operator==(const ModelIdentity&) const = default;
};

// "kv-v2:<sha256>", over all but `rest` and the samples.
std::string fingerprint_of(const ModelIdentity& identity);

}  // namespace fp8kv
