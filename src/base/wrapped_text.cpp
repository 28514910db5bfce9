#include "base/wrapped_text.h"

#include <algorithm>
#include <sys/ioctl.h>

namespace fp8kv {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  size_t at = 0;
  for (size_t end; (end = text.find(' ', at)) != text.npos; at = end + 1) {
    words.push_back(text.substr(at, end - at));
  }
  words.push_back(text.substr(at));
  return words;
}

size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  for (const std::string& word : words_of(text)) {
    const bool fits = !lines.empty() && width_of(lines.back()) + 1 + width_of(word) <= width;
    if (fits) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string sentence_text(const std::string& sentence, size_t width, size_t indent) {
  size_t widest = 0;
  for (size_t at = 0, end = 0; end != sentence.npos; at = end + 1) {
    end = sentence.find('\n', at);
    widest = std::max(widest, width_of(sentence.substr(at, end - at)));
  }
  if (widest <= width || width < indent + kNarrowestText) return sentence;
  std::string words = sentence.substr(indent);
  std::replace(words.begin(), words.end(), '\n', ' ');
  std::string text = sentence.substr(0, indent);
  for (const std::string& line : wrapped(words, width - indent)) {
    text += (text.size() == indent ? "" : "\n" + std::string(indent, ' ')) + line;
  }
  return text;
}

// A terminal that does not know its width reports 0.
size_t terminal_width(int descriptor) {
  winsize size{};
  const bool known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUnlimitedWidth;
}

}  // namespace fp8kv
