// kv_cache_scales.json, ours and vLLM's.
#include "fuzz.h"
#include "json/json.h"
#include "scales/scale_file.h"

namespace fp8kv::fuzz {
namespace {

void run(const std::string& input) {
  const KvScales scales = parse_scale_file(Json::parse(input, "file"), "file");
  const std::string text = scale_file_text(scales);
  const KvScales again = parse_scale_file(Json::parse(text, "again"), "again");
  require(scale_file_text(again) == text, "what is accepted is written and read back");
  const std::string plain = vllm_json_text(scales, 2);
  const KvScales named = parse_scale_file(Json::parse(plain, "plain"), "plain");
  require(named.cached_layers() == scales.cached_layers(), "every layer with a cache is named");
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
  return inputs;
}

}  // namespace

const Target kScaleFile{"scale-file", run, nullptr, seeds};

}  // namespace fp8kv::fuzz
