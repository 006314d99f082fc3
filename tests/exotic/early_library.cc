// A library whose initialiser makes blocks and deletes them, by sized forms as well: it runs before that of a library which is preloaded.
#include <string>
#include <vector>

static const auto made = [] {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 100; i++) texts.push_back(std::string(i, 'x'));
  return texts.size();
}();
