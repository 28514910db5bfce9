// tokenizer.json, or SentencePiece's tokenizer.model. An accepted tokenizer must encode and decode
// text.
#include "fuzz.h"
#include "text/tokenizer.h"

namespace fp8kv::fuzz {
namespace {

constexpr std::string_view kTexts[] = {"", "Hello, world!", " a  b\n\nc\t12345 x's",
                                       "gr\xC3\xB6\xC3\x9F"
                                       "er \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x99\x82</s>"};

void run(const std::string& input) {
  const bool is_json = input.find_first_not_of(" \t\r\n") == input.npos ||
                       input[input.find_first_not_of(" \t\r\n")] == '{';
  const std::filesystem::path folder = work_folder();
  std::filesystem::remove(folder / "tokenizer.json");
  write(folder / (is_json ? "tokenizer.json" : "tokenizer.model"), input);
  const Tokenizer tokenizer = std::move(*Tokenizer::find_in(folder));
  for (const std::string_view text : kTexts) {
    const std::vector<int32_t> ids = tokenizer.encode(text, true);
    for (const int32_t id : ids) {
      require(id >= 0 && id < tokenizer.vocab_size(), "ids are those of the vocabulary");
    }
    static_cast<void>(tokenizer.decode(ids, false));
  }
}

// A field of a protobuf message with fewer than 128 bytes.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

std::string piece(const std::string& text, char type, const std::string& score) {
  return field(1, field(1, text) + "\x15" + score + "\x18" + type);
}

// A tokenizer.model of one type (1 Unigram, 2 BPE).
std::string pieces(char type) {
  const std::string low("\0\0\x80\xBF", 4);
  const std::string lower("\0\0\0\xC0", 4);
  return field(2, std::string("\x18") + type) + piece("<unk>", 2, low) + piece("<s>", 3, low) +
         piece("\xE2\x96\x81", 1, low) + piece("H", 1, low) + piece("e", 1, low) +
         piece("l", 1, low) + piece("He", 1, lower) + piece("ll", 1, lower) + piece("o, ", 4, low) +
         piece("\xE4\xBD\xA0", 1, low) + field(3, std::string("\x18\x01\x20\x01"));
}

// Small tokenizers of both styles, with every kind of part.
std::vector<std::string> seeds(const std::filesystem::path&) {
  return {
      R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"</s>",)"
      R"("single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],)"
      R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Prepend","prepend":"▁"},)"
      R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]},"pre_tokenizer":null,)"
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"</s>","type_id":0}},)"
      R"({"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"</s>":{"id":"</s>","ids":[0],)"
      R"("tokens":["</s>"]}}},"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":)"
      R"({"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip",)"
      R"("content":" ","start":1,"stop":0}]},"model":{"type":"BPE","dropout":null,"unk_token":"<unk>",)"
      R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":true,"byte_fallback":true,)"
      R"("vocab":{"</s>":0,"<unk>":1,"▁":2,"H":3,"e":4,"l":5,"o":6,"<0xC3>":7,"<0xB6>":8,"ll":9,"He":10},)"
      R"("merges":["l l","H e"]}})",
      R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":6,"content":"<|end|>",)"
      R"("single_word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true}],)"
      R"("normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split",)"
      R"("pattern":{"Regex":"'s|\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated",)"
      R"("invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]},)"
      R"("post_processor":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":true},)"
      R"("decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},)"
      R"("model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":"",)"
      R"("end_of_word_suffix":"","fuse_unk":false,"byte_fallback":false,"ignore_merges":true,)"
      R"("vocab":{"H":0,"e":1,"l":2,"o":3,"He":4,"ll":5},"merges":[["H","e"],["l","l"]]}})",
      R"({"version":"1.0","pre_tokenizer":{"type":"Metaspace","replacement":"▁"},"post_processor":)"
      R"({"type":"RobertaProcessing","sep":["a",1],"cls":["b",2]},"decoder":{"type":"Metaspace",)"
      R"("replacement":"▁"},"model":{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":)"
      R"([["<unk>",0.0],["▁",-1.5],["H",-2.25],["He",-3e0],["l",-4],["<0xC3>",-9],["<0xB6>",-9]]}})",
      pieces(1), pieces(2)};
}

}  // namespace

const Target kTokenizer{"tokenizer", run, nullptr, seeds};

}  // namespace fp8kv::fuzz
