#include "scales/identity_json.h"

#include "base/error.h"

namespace fp8kv {
namespace {

std::vector<std::string> texts_of(const Json& array) {
  if (!array.is_array()) fail(array.where(), ": is ", array.brief(), ", expected an array");
  std::vector<std::string> texts;
  for (size_t i = 0; i < array.size(); ++i) texts.push_back(array[i].as_string());
  return texts;
}

}  // namespace

void write_identity(JsonWriter& out, const ModelIdentity& identity) {
  out.begin_object().member("projections", identity.projections).key("config").begin_object();
  for (const ConfigNumber& number : identity.config) out.member(number.key, number.value);
  out.end_object().key("embedding").begin_object();
  out.member("digest", identity.embedding.digest).member("samples", identity.embedding.samples);
  out.end_object();
  std::vector<std::string> digests, samples;
  for (const WeightsIdentity& layer : identity.layers) {
    digests.push_back(layer.digest);
    samples.push_back(layer.samples);
  }
  out.member("layers", std::span<const std::string>(digests));
  out.member("samples", std::span<const std::string>(samples));
  out.member("rest", identity.rest).end_object();
}

ModelIdentity read_identity(const Json& object, const std::string& fingerprint) {
  ModelIdentity identity;
  identity.projections = object.get_string("projections", "");
  const Json config = object.at("config");
  if (!config.is_object()) {
    fail(config.where(), ": is ", config.brief(), ", expected an object");
  }
  for (size_t i = 0; i < config.size(); ++i) {
    identity.config.push_back({config.key(i), config.value(i).as_string()});
  }
  const Json embedding = object.at("embedding");
  identity.embedding = {embedding.at("digest").as_string(), embedding.at("samples").as_string()};
  const std::vector<std::string> digests = texts_of(object.at("layers"));
  const std::vector<std::string> samples = texts_of(object.at("samples"));
  if (samples.size() != digests.size()) {
    fail(object.where(), ": has samples of ", count_of(samples.size(), "layer"), ", expected ",
         digests.size());
  }
  for (size_t i = 0; i < digests.size(); ++i) identity.layers.push_back({digests[i], samples[i]});
  identity.rest = object.at("rest").as_string();
  if (fingerprint_of(identity) == fingerprint) return identity;
  throw Error(cat(object.where(), ": does not give the fingerprint beside it"),
              "the file was edited: calibrate again");
}

}  // namespace fp8kv
