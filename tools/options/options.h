// The options of each command as plain values. cli.cpp fills them, the commands read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/log.h"
#include "core/numbers/dtype.h"
#include "data/shard.h"
#include "files/output/copy_file.h"
#include "policy/policies.h"
#include "tasks/compare/recovery_test.h"
#include "tasks/items/needle.h"
#include "tasks/task_kinds.h"

namespace fp8kv {

// The default output of `calibrate`.
inline constexpr const char* kDefaultScaleFile = "kv_cache_scales.json";

struct CommonOptions {
  Verbosity verbosity = Verbosity::normal;
  bool json = false;
};

// The amount of text that a command reads, and the length of its windows.
struct WindowRequest {
  uint64_t samples;  // windows at most
  bool samples_given = false;
  bool until_settled = false;  // stop when amax has settled, before `samples` if possible
  int64_t seq_len = 2048;
  bool seq_len_given = false;
};

// The part of the data that a command reads.
struct DataChoice {
  std::string column;               // the field of records with the text; "": found by their form
  std::string split;                // the split of a data folder; "": every file
  std::optional<uint64_t> shuffle;  // the seed that draws windows from all data, not the first ones
};

// How conversations become text.
struct ChatRequest {
  // The name of one of the model's templates, a file, or "none" to join messages as plain text.
  std::string chat_template;  // "": the model's
  bool user_special_tokens = false;
};

struct CalibrateOptions : CommonOptions {
  std::filesystem::path model;
  std::filesystem::path target;  // "": `model` is no drafter
  std::vector<std::filesystem::path> data;
  DataChoice choice;
  ChatRequest chat;
  std::filesystem::path out = kDefaultScaleFile;
  std::filesystem::path histograms;  // "": not written
  std::filesystem::path report;      // "": none
  WindowRequest windows = {.samples = 512};
  WindowShard shard;
  Policy policy = amax_policy(ScaleSharing::tensor, 1);
  std::string kv_cache_dtype = "fp8";
  KvFormat format = KvFormat::e4m3fn;  // the format of `kv_cache_dtype`
  std::vector<std::string> skip_layers;
  std::string device = "auto";
  int threads = 0;
  std::optional<uint64_t> max_memory;  // bytes on the device
  bool strict = false;                 // refuse unknown keys of config.json
  bool resume = false;
  bool table = false;
  bool plot = false;
  bool require_evidence = false;
  bool force = false;
};

// The formats that `extract` can write.
enum class ExtractForm { fp8kv, vllm_json };

struct ExtractOptions : CommonOptions {
  std::filesystem::path source;
  bool no_cache = false;  // read models at addresses without the cache
  std::filesystem::path out = "-";
  ExtractForm form = ExtractForm::fp8kv;
  int64_t tp = 1;
  bool list = false;  // list the scales found, write no file
  bool force = false;
};

struct InjectCommandOptions : CommonOptions {
  std::filesystem::path model;
  std::filesystem::path scales;
  std::filesystem::path out;
  std::string target = "portable";
  bool powers_of_two = false;
  LinkMode link = LinkMode::automatic;
  bool dry_run = false;
  bool force = false;
  bool replace = false;
  bool q_scales = false;
  bool accept_foreign = false;  // take scales made for another model
  bool require_evidence = false;
  bool all = false;
};

// The most answers to one prompt of `run`.
inline constexpr int64_t kMostAnswers = 1024;

// The most likely tokens that `run` gives beside each token, like the servers of OpenAI and vLLM.
inline constexpr int64_t kMostLogprobs = 20;

// The order in which `run` prints its answers.
enum class AnswerOrder { input, finished };

struct RunOptions : CommonOptions {
  std::filesystem::path model;
  std::vector<std::string> prompts;
  std::filesystem::path prompt_file;  // "-": standard input; "": none
  ChatRequest chat;
  bool as_chat = false;  // each prompt is a user's message
  std::string kv_cache_dtype = "auto";
  std::vector<std::string> skip_layers;  // layers that keep the model's dtype
  std::filesystem::path scales;          // "": from the checkpoint
  bool accept_foreign = false;
  bool unit_scales = false;
  // Defaults of these four come from generation_config.json.
  std::optional<int64_t> max_new_tokens;
  std::optional<float> temperature;
  std::optional<int32_t> top_k;
  std::optional<float> top_p;
  uint64_t seed = 0;
  // These are for prompts whose record says nothing else.
  std::optional<int64_t> answers;  // --samples-per-prompt
  std::vector<std::string> stops;
  std::optional<int64_t> logprobs;
  AnswerOrder order = AnswerOrder::input;
  int64_t max_batch = 64;
  uint64_t gpu_memory = 0;  // bytes for weights, working memory and cache; 0: not given
  bool strict = false;      // refuse unknown keys of config.json
  std::string device = "auto";
  int threads = 0;
};

// The flags of `eval --task`.
struct TaskOptions {
  std::vector<TaskArgument> tasks;  // empty: none, the text of --data is evaluated
  uint64_t items = 0;               // of each task at most; 0: all
  uint64_t few_shot = 0;
  std::filesystem::path few_shot_from;   // "": the first items of the task's file
  std::optional<Acceptance> acceptance;  // --accept
  NeedleOptions needle;
};

struct EvalCommandOptions : CommonOptions {
  std::filesystem::path model;
  std::vector<std::filesystem::path> data;
  std::vector<std::filesystem::path> calibrate_on;  // empty: policies calibrate on `data`
  std::string calibrate_split;  // the split of `calibrate_on`, like DataChoice::split
  DataChoice choice;
  ChatRequest chat;
  std::vector<std::optional<CacheType>> kv_cache_dtypes = {DType::f8_e4m3};  // nullopt: the model's
  bool dtypes_given = false;
  std::vector<std::string> skip_layers;
  std::filesystem::path against;  // another model, which becomes the baseline; "": none
  std::string baseline = "auto";
  bool fp8_attention = false;    // measure E4M3 caches also with FP8 attention
  bool toward_zero = false;      // measure them also with K and V rounded towards zero
  std::filesystem::path scales;  // "": see `policies`
  bool accept_foreign = false;
  bool strict = false;  // refuse unknown keys of config.json
  bool unit_scales = false;
  std::vector<Policy> policies;  // empty: the checkpoint's scales, or else amax
  std::vector<std::string> fail_if;
  std::filesystem::path junit;         // "": none
  std::filesystem::path summary;       // "": none
  std::filesystem::path report;        // "": none
  std::filesystem::path write_scales;  // "": none
  bool table = false;
  bool plot = false;
  WindowRequest windows = {.samples = 128};
  int64_t greedy_tokens = 64;
  TaskOptions task;
  std::string device = "auto";
  int threads = 0;
  bool force = false;
};

struct AttestCommandOptions : CommonOptions {
  std::string url;
  std::filesystem::path model;
  std::filesystem::path scales;  // "": the scales in the model folder, if any
  bool accept_foreign = false;
  std::vector<std::filesystem::path> data;
  DataChoice choice;
  ChatRequest chat;
  WindowRequest windows = {.samples = 64, .seq_len = 64};
  std::string api;           // "": detected
  std::string served_model;  // "": the first model that the server lists
  std::string api_key_env;   // the environment variable with the API key; "": no key is sent
  int64_t decode = 0;        // tokens that the server generates after each window; 0: none
  double level = 0.01;
  int64_t timeout_s = 600;
  bool strict = false;  // refuse unknown keys of config.json
  std::string device = "auto";
  int threads = 0;
};

struct QuantizeOptions : CommonOptions {
  std::filesystem::path model;
  std::filesystem::path out;
  std::string scheme = "fp8-dynamic";
  std::filesystem::path scales;  // scales of the KV cache; "": calibrated on `data`, if any
  bool accept_foreign = false;
  std::vector<std::filesystem::path> data;  // empty: no calibration
  DataChoice choice;
  ChatRequest chat;
  WindowRequest windows = {.samples = 512};
  Policy policy = amax_policy(ScaleSharing::tensor, 1);
  KvFormat format = KvFormat::e4m3fn;  // the format that the scales are made for
  std::vector<std::string> skip_layers;
  std::string device = "auto";
  int threads = 0;
  std::optional<uint64_t> max_memory;  // bytes on the device
  bool strict = false;                 // refuse unknown keys of config.json
  bool resume = false;
  bool dry_run = false;
  bool force = false;
};

struct InspectOptions : CommonOptions {
  std::filesystem::path path;
  bool no_cache = false;
  bool certificate = false;      // print only the certificate
  bool plot = false;             // draw only the ranges
  std::filesystem::path report;  // "": none
  bool force = false;
};

struct VerifyOptions : CommonOptions {
  std::filesystem::path path;  // model folder or scale file
  bool no_cache = false;
  std::vector<std::string> runtimes;  // "vllm@0.33"; empty: the default columns
  std::string kv_cache_dtype;         // "": the value that turns an FP8 cache on
  std::string gpu;                    // "": any GPU
  std::filesystem::path junit;        // "": none
  std::filesystem::path summary;      // "": none
  bool all = false;
  bool require_evidence = false;
  bool force = false;
  std::string with;        // the Python with the runtime to run; "": none
  double timeout_s = 600;  // seconds that run may take
};

struct MergeOptions : CommonOptions {
  std::vector<std::filesystem::path> parts;
  std::vector<std::filesystem::path> histograms;
  std::optional<Policy> policy;  // nullopt: the policy of the parts
  std::filesystem::path out;
  bool table = false;
  bool force = false;
};

struct PlanOptions : CommonOptions {
  std::filesystem::path model;
  bool no_cache = false;
  uint64_t memory = 0;      // bytes of each GPU; 0: not given
  double memory_share = 1;  // the fraction of `memory` that the runtime takes
  bool calibration_time = false;
  std::vector<std::string> kv_cache_dtypes = {"auto", "fp8_e4m3"};  // names of plan_dtype_names
  std::vector<std::string> skip_layers;
  int64_t tp = 1;
  int64_t batch = 1;
  int64_t context = 0;  // 0: the model's maximum
};

struct DiffOptions : CommonOptions {
  std::filesystem::path a;
  std::filesystem::path b;
  bool no_cache = false;
  double tolerance = 0;
};

struct EqualizeOptions : CommonOptions {
  std::filesystem::path model;
  std::filesystem::path out;
  std::vector<std::filesystem::path> data;
  std::vector<std::filesystem::path> held_out;  // empty: the last quarter of `data`
  DataChoice choice;
  ChatRequest chat;
  WindowRequest windows = {.samples = 24, .seq_len = 512};
  std::string cache;  // the value of --for: a name of equalized_caches
  std::string device = "auto";
  int threads = 0;
  bool strict = false;  // refuse unknown keys of config.json
  bool dry_run = false;
  bool force = false;
  bool resume = false;  // keep exponents of searched layers, and reuse those of an earlier run
};

struct FitCommandOptions : CommonOptions {
  std::filesystem::path model;
  std::vector<std::filesystem::path> data;
  std::vector<std::filesystem::path> held_out;  // empty: the second half of `data`
  DataChoice choice;
  ChatRequest chat;
  WindowRequest windows = {.samples = 16, .seq_len = 512};
  std::optional<double> max_kld;  // exactly one of max_kld, bytes_per_token and memory is given
  std::optional<uint64_t> bytes_per_token;
  uint64_t memory = 0;  // bytes of each GPU; 0: not given
  int64_t context = 0;  // tokens per sequence, for `memory`; 0: the model's maximum
  int64_t batch = 1;    // sequences that must fit, for `memory`
  int64_t tp = 1;
  std::string runtime = "vllm";              // the value of --for
  std::vector<std::string> kv_cache_dtypes;  // canonical names; empty: see fit_formats.h
  std::filesystem::path scales;              // "": made by `policy`
  bool accept_foreign = false;
  Policy policy = amax_policy(ScaleSharing::tensor, 1);
  bool policy_given = false;
  std::filesystem::path out;     // "": no scale file is written
  std::filesystem::path report;  // "": none
  std::string device = "auto";
  int threads = 0;
  bool strict = false;  // refuse unknown keys of config.json
  bool force = false;
  bool resume = false;  // keep measurements beside `out`, and reuse those of an earlier run
};

struct TokenizeOptions : CommonOptions {
  std::filesystem::path model;
  std::filesystem::path input = "-";  // files like --data's; "-": standard input
  DataChoice choice;
  ChatRequest chat;
  bool as_chat = false;    // texts are users' messages, and conversations await an answer
  int64_t seq_len = 2048;  // tokens in a window at most
  uint64_t records = 0;    // 0: every record
  bool no_cache = false;
};

struct DoctorOptions : CommonOptions {};

using Options = std::variant<CalibrateOptions, InjectCommandOptions, VerifyOptions, ExtractOptions,
                             RunOptions, EvalCommandOptions, AttestCommandOptions, InspectOptions,
                             DiffOptions, MergeOptions, PlanOptions, QuantizeOptions,
                             EqualizeOptions, FitCommandOptions, TokenizeOptions, DoctorOptions>;

}  // namespace fp8kv
