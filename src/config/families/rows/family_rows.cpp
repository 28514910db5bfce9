#include "config/families/rows/family_rows.h"

#include <vector>

namespace fp8kv {

Architecture afmoe();
Architecture apertus();
Architecture arcee();
Architecture axk1();
Architecture bloom();
Architecture cohere2_moe();
Architecture cohere2_vision();
Architecture cwm();
Architecture deci_lm();
Architecture deepseek_v4();
Architecture diffllama();
Architecture dots1();
Architecture ernie4_5();
Architecture ernie4_5_moe();
Architecture ernie4_5_vl();
Architecture exaone4();
Architecture exaone_moe();
Architecture exaone_moe_first_name();
Architecture flex_olmo();
Architecture gemma4_unified();
Architecture glm4v();
Architecture glm4v_moe();
Architecture glm5_next();
Architecture gptj();
Architecture granite_moe_shared();
Architecture granite_moe_swa();
Architecture granite_swa();
Architecture helium();
Architecture hunyuan_dense();
Architecture hunyuan_moe();
Architecture hy_v3();
Architecture hy_v4();
Architecture hy_v4_vl();
Architecture hyperclova_x();
Architecture inkling();
Architecture iquest_coder();
Architecture jais2();
Architecture jamba();
Architecture kimi_k3();
Architecture kimi_linear();
Architecture laguna();
Architecture lfm2();
Architecture lfm2_moe();
Architecture lfm3();
Architecture ling2();
Architecture ling2_5();
Architecture ling3();
Architecture ling3_saved();
Architecture longcat_flash();
Architecture mellum();
Architecture mimo();
Architecture mimo_v2();
Architecture mimo_v25();
Architecture minimax_01();
Architecture minimax_m1();
Architecture minimax_m3();
Architecture minimax_text_01();
Architecture minicpm3();
Architecture ministral();
Architecture mistral4();
Architecture mpt();
Architecture mpt_published();
Architecture muse_glimmer();
Architecture muse_spark();
Architecture nanochat();
Architecture nemotron();
Architecture olmo();
Architecture olmo_hybrid();
Architecture persimmon();
Architecture phi4_multimodal();
Architecture phi4mm();
Architecture phimoe();
Architecture phimoe_first_name();
Architecture qwen3_omni_moe();
Architecture qwen3_vl_moe();
Architecture qwen4_exp();
Architecture sarvam_mla();
Architecture sarvam_moe();
Architecture seed_oss();
Architecture solar_open();
Architecture step3p5();
Architecture step3p7();
Architecture vault_gemma();
Architecture zamba2();

std::span<const Architecture> family_rows() {
  static const std::vector<Architecture> rows = {
      afmoe(),
      apertus(),
      arcee(),
      axk1(),
      bloom(),
      cohere2_moe(),
      cohere2_vision(),
      cwm(),
      deci_lm(),
      deepseek_v4(),
      diffllama(),
      dots1(),
      ernie4_5(),
      ernie4_5_moe(),
      ernie4_5_vl(),
      exaone4(),
      exaone_moe(),
      exaone_moe_first_name(),
      flex_olmo(),
      gemma4_unified(),
      glm4v(),
      glm4v_moe(),
      glm5_next(),
      gptj(),
      granite_moe_shared(),
      granite_moe_swa(),
      granite_swa(),
      helium(),
      hunyuan_dense(),
      hunyuan_moe(),
      hy_v3(),
      hy_v4(),
      hy_v4_vl(),
      hyperclova_x(),
      inkling(),
      iquest_coder(),
      jais2(),
      jamba(),
      kimi_k3(),
      kimi_linear(),
      laguna(),
      lfm2(),
      lfm2_moe(),
      lfm3(),
      ling2(),
      ling2_5(),
      ling3(),
      ling3_saved(),
      longcat_flash(),
      mellum(),
      mimo(),
      mimo_v2(),
      mimo_v25(),
      minimax_01(),
      minimax_m1(),
      minimax_m3(),
      minimax_text_01(),
      minicpm3(),
      ministral(),
      mistral4(),
      mpt(),
      mpt_published(),
      muse_glimmer(),
      muse_spark(),
      nanochat(),
      nemotron(),
      olmo(),
      olmo_hybrid(),
      persimmon(),
      phi4_multimodal(),
      phi4mm(),
      phimoe(),
      phimoe_first_name(),
      qwen3_omni_moe(),
      qwen3_vl_moe(),
      qwen4_exp(),
      sarvam_mla(),
      sarvam_moe(),
      seed_oss(),
      solar_open(),
      step3p5(),
      step3p7(),
      vault_gemma(),
      zamba2(),
  };
  return rows;
}

}  // namespace fp8kv
