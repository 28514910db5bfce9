#include "config/known_keys.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/error.h"
#include "config/foreign_keys.h"

namespace fp8kv {
namespace {

// Keys that are read elsewhere, or have no effect if the architecture does not read them. They
// concern training, sampling, outputs, versions of other programs, parts outside the language
// model, or second spellings. Some describe layers or experts that other keys describe, or that do
// not exist.
constexpr auto kWithoutEffect = std::to_array<std::string_view>({
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_attn_implementation_internal",
    "_flash_attn_2_enabled",
    "_from_model_config",
    "_name_or_path",
    "_sliding_window_pattern",
    "activation_dropout",
    "activation_function",
    "add_cross_attention",
    "alignment_intermediate_size",
    "architectures",
    "attention_chunk_size",
    "attention_dropout",
    "attention_softmax_in_fp32",
    "attn_implementation",
    "attn_pdrop",
    "audio_bos_token_id",
    "audio_config",
    "audio_token_id",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bias_dropout_fusion",
    "block_mlp_init_scale",
    "block_out_init_scale",
    "block_use_xavier_init",
    "boi_token_index",
    "bos_token_id",
    "cache_implementation",
    "chunk_size",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "compression_config",
    "conv_use_xavier_init",
    "cross_attention_hidden_size",
    "decoder_sparse_step",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "downsample_factor",
    "downsample_ratio",
    "dropout",
    "dtype",
    "dynamic_image_size",
    "early_stopping",
    "emb_pdrop",
    "embd_pdrop",
    "embedding_dropout",
    "enable_moe_fp32_combine",
    "encoder_no_repeat_ngram_size",
    "eoi_token_index",
    "eos_token_id",
    "ep_size",
    "expert_layer_offset",
    "expert_layer_period",
    "experts_per_token",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "for_llm_compressor",
    "force_image_size",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "full_attention_interval",
    "gradient_checkpointing",
    "hidden_act",
    "hidden_activation",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "ignore_index",
    "image_bos_token_id",
    "image_grid_pinpoints",
    "image_placeholder",
    "image_seq_length",
    "image_token_id",
    "image_token_index",
    "img_context_token_id",
    "inference_runner",
    "init_config",
    "init_device",
    "init_method",
    "init_std",
    "initial_context_length",
    "initializer_range",
    "input_jitter_noise",
    "interleave_moe_layer_step",
    "is_decoder",
    "is_encoder_decoder",
    "kv_cache_torch_dtype",
    "label2id",
    "language_config",
    "layer_norm_eps",
    "layer_switch",
    "layer_types",
    "layerdrop",
    "length_penalty",
    "linear_a_log_max",
    "linear_a_log_min",
    "linear_dt_init_floor",
    "linear_dt_max",
    "linear_dt_min",
    "llm_config",
    "mamba_chunk_size",
    "mamba_ssm_cache_dtype",
    "mamba_ssm_dtype",
    "masked_softmax_fusion",
    "max_dynamic_patch",
    "max_length",
    "max_seq_len",
    "max_sequence_length",
    "max_window_layers",
    "media_placeholder_token_id",
    "merged_hidden_size",
    "min_dynamic_patch",
    "min_length",
    "mlp_expansion_factor",
    "mlp_only_layers",
    "mm_tokens_per_image",
    "model_max_length",
    "model_type",
    "moe_every_n_layer",
    "moe_hidden_size",
    "moe_intermediate_size",
    "moe_layer_offset",
    "moe_shared_expert_intermediate_size",
    "moe_shared_expert_overlap",
    "mtp_config",
    "mtp_hybrid_override_pattern",
    "mtp_layer_types",
    "mtp_layers_block_type",
    "mtp_mlp_layer_types",
    "mtp_num_hidden_layers",
    "mtp_transformer_layers",
    "mtp_use_dedicated_embeddings",
    "multimodal_projector_bias",
    "n_ctx",
    "n_inner",
    "no_repeat_ngram_size",
    "norm_eps",
    "norm_epsilon",
    "norm_topk_prob",
    "num_beam_groups",
    "num_beams",
    "num_experts_per_tok",
    "num_logits_to_keep",
    "num_mtp_layers",
    "num_mtp_modules",
    "num_nextn_predict_layers",
    "num_return_sequences",
    "offset_alibi",
    "original_max_position_embeddings",
    "out_hidden_size",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "output_scores",
    "pad2square",
    "pad_token_id",
    "pre_allocate_kv_cache",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "projection_hidden_size",
    "projector_bias",
    "projector_hidden_act",
    "projector_hidden_size",
    "pruned_heads",
    "ps_version",
    "qk_head_dim",
    "quantization_config",
    "remove_invalid_values",
    "reorder_and_upcast_attn",
    "repetition_penalty",
    "rescale_prenorm_residual",
    "resid_pdrop",
    "residual_dropout",
    "residual_in_fp32",
    "return_dict",
    "return_dict_in_generate",
    "rms_norm_eps",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "router_z_loss_coef",
    "runner_max_sequence_length",
    "scale_attention_softmax_in_fp32",
    "scale_factor",
    "select_layer",
    "sep_token_id",
    "seq_aux",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "sliding_window",
    "sliding_window_pattern",
    "sound_config",
    "sound_context_token_id",
    "sparse_disable_index_value",
    "spatial_merge_size",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "template",
    "text_config",
    "tf_legacy_loss",
    "thinker_config",
    "tie_encoder_decoder",
    "time_step_floor",
    "time_step_max",
    "time_step_min",
    "time_step_rank",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_version",
    "use_associative_scan",
    "use_backbone_lora",
    "use_bfloat16",
    "use_cache",
    "use_llm_lora",
    "use_mamba_kernels",
    "use_mambapy",
    "use_moe",
    "use_mtp",
    "use_parallel_embedding",
    "use_sliding_window",
    "use_thumbnail",
    "validate_runner_input",
    "verbose",
    "video_context_token_id",
    "video_pruning_rate",
    "video_temporal_patch_size",
    "video_token_id",
    "video_token_index",
    "vision_aspect_ratio",
    "vision_config",
    "vision_end_token_id",
    "vision_feature_layer",
    "vision_feature_select_strategy",
    "vision_hidden_size",
    "vision_start_token_id",
    "vision_token_id",
    "vit_hidden_size",
    "z_loss_coefficient",
});

// Likewise for ropes: keys that a rope of this type ignores, or that text does not need.
constexpr auto kWithoutEffectInRopes = std::to_array<std::string_view>({
    "finetuned",
    "max_position_embeddings",
    "mrope_interleaved",
    "mrope_section",
    "rope_theta",
    "rope_type",
    "type",
});

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool asks_for_nothing(const Json& value, const ForeignKey& row) {
  if (value.is_null() || (value.is_array() && value.size() == 0)) return true;
  return std::any_of(row.harmless.begin(), row.harmless.end(), [&](std::string_view text) {
    const Json harmless = Json::parse(text, std::string(row.key));
    return value.is_number() && harmless.is_number() ? value.as_double() == harmless.as_double()
                                                     : value.brief() == harmless.brief();
  });
}

void check_foreign(const Json& value, const ForeignKey& row, std::string_view name) {
  if (asks_for_nothing(value, row)) return;
  throw Error(cat(value.where(), ": is ", value.brief(),
                  ", which changes what other models compute, and is not read for ", name),
              "take it out of config.json where it changes nothing in this model; where it does, "
              "the model cannot be computed here");
}

struct Check {
  const JsonReads& reads;
  std::string_view name;
  std::vector<std::string> unknown = {};

  void members(const Json& object, const std::string& path,
               std::span<const std::string_view> without_effect) {
    for (size_t i = 0; i < object.size(); ++i) {
      const std::string& key = object.key(i);
      const Json value = object.value(i);
      const std::string inside = path + key;
      if (key.starts_with("rope_") && value.is_object()) {
        members(value, inside + ".", kWithoutEffectInRopes);
      } else if (!path.empty() && value.is_object() && reads.has(value)) {
        members(value, inside + ".", without_effect);  // the rope of one type of layer
      } else if (!reads.has(value) && !contains(without_effect, key)) {
        unread(key, value, inside);
      }
    }
  }

  void unread(const std::string& key, const Json& value, const std::string& inside) {
    const std::vector<ForeignKey>& rows = foreign_keys();
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const ForeignKey& each) { return each.key == key; });
    if (row == rows.end()) {
      unknown.push_back(inside);
    } else {
      check_foreign(value, *row, name);
    }
  }
};

}  // namespace

std::vector<std::string> check_keys(const Json& object, const JsonReads& reads,
                                    std::string_view name) {
  Check check{reads, name};
  check.members(object, "", kWithoutEffect);
  return check.unknown;
}

}  // namespace fp8kv
