// kv_cache_scales.json, ours and vLLM's.
#include "base/error.h"
#include "base/text.h"
#include "core/scales/compare_models.h"
#include "fuzz.h"
#include "json/json.h"
#include "scales/scale_file.h"

namespace fp8kv::fuzz {
namespace {

// The identity of a model with two layers.
ModelIdentity known_identity() {
  return {{{"head_dim", "2"}, {"rope_theta", "10000"}, {"torch_dtype", "bfloat16"}},
          {{"0011223344556677", "803F 0040"}, {"8899aabbccddeeff", "803f 0080"}},
          {"0123456789abcdef", "803f"},
          "fedcba9876543210",
          {{"00", {{1, 2, ""}}}, {"01", {{3, 4, ""}}}},
          "kv-proj-v1:00"};
}

std::string file_with_identity() {
  return R"({"model_type":"llama","kv_cache":{"dtype":"float8_e4m3fn","scaling_factor":{"0":{"0":0.5,"1":2}}},)"
         R"("fp8kv":{"schema":"fp8kv.scales/1","format":"float8_e4m3fn","granularity":"tensor",)"
         R"("k_scale":[[0.5],[2]],"v_scale":[[0.5],[1]],"model":{"fingerprint":")" +
         fingerprint_of(known_identity()) +
         R"(","identity":{"projections":"kv-proj-v1:00","config":{"head_dim":"2",)"
         R"("rope_theta":"10000","torch_dtype":"bfloat16"},)"
         R"("embedding":{"digest":"0123456789abcdef","samples":"803f"},)"
         R"("layers":["0011223344556677","8899aabbccddeeff"],"samples":["803F 0040","803f 0080"],)"
         R"("row_digests":["00","01"],"row_sizes":["1/2","3/4"],"rest":"fedcba9876543210"},"n_layers":2,"n_kv_heads":1}}})";
}

void compare(const ModelIdentity& identity) {
  const ModelIdentity known = known_identity();
  require(compare_models(identity, identity).moved == 0, "a model is where it was");
  for (const ModelComparison& each :
       {compare_models(identity, known), compare_models(known, identity)}) {
    require(each.moved >= 0, "how far weights moved is a number");
    require(is_utf8(difference_text(each)), "what differs is text");
  }
}

void run(const std::string& input) {
  const KvScales scales = parse_scale_file(Json::parse(input, "file"), "file");
  if (scales.provenance.model_identity) compare(*scales.provenance.model_identity);
  // One number may ask for thousands of layers, which test no more than two layers do.
  if (scales.layers.size() > input.size()) return;
  const std::string text = scale_file_text(scales);
  const KvScales again = parse_scale_file(Json::parse(text, "again"), "again");
  require(scale_file_text(again) == text, "what is accepted is written and read back");
  const std::string plain = vllm_json_text(scales, 2);
  const KvScales named = parse_scale_file(Json::parse(plain, "plain"), "plain");
  require(named.cached_layers() == scales.cached_layers(), "every layer with a cache is named");
}

// Recomputes the fingerprint, which is a digest of the identity. A changed identity would not match
// it.
void repair(std::string& input) {
  const size_t at = input.find(kIdentityFingerprint);
  if (at == input.npos) return;
  try {
    const Json identity = Json::parse(input, "file").at("fp8kv").at("model").at("identity");
    ModelIdentity made;
    const Json config = identity.at("config");
    for (size_t i = 0; i < config.size(); ++i) {
      made.config.push_back({config.key(i), config.value(i).as_string()});
    }
    made.embedding.digest = identity.at("embedding").at("digest").as_string();
    const Json layers = identity.at("layers");
    for (size_t i = 0; i < layers.size(); ++i) made.layers.push_back({layers[i].as_string(), ""});
    input.replace(at, input.find('"', at) - at, fingerprint_of(made));
  } catch (const Error&) {  // there is no readable identity
  }
}

std::vector<std::string> seeds(const std::filesystem::path& root) {
  std::vector<std::string> inputs = files_below(root / "tests" / "golden", ".json");
  std::erase_if(inputs, [](const std::string& text) {
    return text.size() > 20'000 || text.find("scaling_factor") == text.npos;
  });
  inputs.push_back(
      R"({"model_type":"llama","kv_cache":{"dtype":"float8_e4m3fn","scaling_factor":{"0":{"0":0.5,"1":2}}},)"
      R"("fp8kv":{"schema":"fp8kv.scales/1","format":"float8_e4m3fn","granularity":"head",)"
      R"("observation":"post_rope","compute_dtype":"float16","headroom":1,"policy":"mse","source":"x",)"
      R"("k_scale":[[0.5,0.25],[2,1]],"v_scale":[[0.5,0.125],[1,1]],)"
      R"("amax":{"k":[[224,112],[896,448]],"v":[[224,56],[448,448]],"q":[[1,1],[1,1]]},)"
      R"("octaves":{"k":[[0,6,1,2],[3,8,4,5]],"v":[[0,5,1,2,3],[0,8,9]]},)"
      R"("model":{"fingerprint":"kv-proj-v1:00","n_layers":2,"n_kv_heads":2},)"
      R"("counted":{"documents":1,"windows":2,"tokens":3,"data":[{"name":"a","bytes":1,"sha256":"00"}],)"
      R"("shards":{"of":2,"taken":[0],"documents":2,"windows":4,"tokens":6}}}})");
  inputs.push_back(
      R"({"model_type":"nemotron_h","kv_cache":{"dtype":"float8_e4m3fn","scaling_factor":{"0":{"1":0.5,"3":2}}},)"
      R"("fp8kv":{"schema":"fp8kv.scales/2","format":"float8_e4m3fn","granularity":"tensor",)"
      R"("k_scale":[[],[0.5],[],[2],[]],"v_scale":[[],[0.25],[],[1],[]],)"
      R"("amax":{"k":[[],[224],[],[896],[]],"v":[[],[112],[],[448],[]],"q":[[],[1],[],[1],[]]},)"
      R"("octaves":{"k":[[],[0,6,1,2],[],[3,8,4,5],[]],"v":[[],[0,5,1,2],[],[0,8,9],[]]},)"
      R"("model":{"n_layers":5,"n_kv_heads":1}}})");
  const std::string identified = file_with_identity();
  require(parse_scale_file(Json::parse(identified, "seed"), "seed")
              .provenance.model_identity.has_value(),
          "the seed with an identity is read");
  inputs.push_back(identified);
  return inputs;
}

}  // namespace

const Target kScaleFile{"scale-file", run, repair, seeds};

}  // namespace fp8kv::fuzz
