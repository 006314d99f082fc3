// A file for g++ that takes its front end many small objects: WIDTH says how many instantiations.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

template <int N>
struct Part {
    std::map<int, std::string> names;
    std::vector<std::tuple<int, double, std::unique_ptr<Part<N - 1>>>> parts;
    std::unordered_map<std::string, std::vector<int>> index;

    int work(int n)
    {
        names[n % N] = std::to_string(n);
        index[names[n % N]].push_back(n);
        parts.emplace_back(n, 0.5 * n, std::make_unique<Part<N - 1>>());
        std::sort(parts.begin(), parts.end(),
                  [](const auto &a, const auto &b) { return std::get<1>(a) < std::get<1>(b); });
        return std::get<2>(parts.front())->work(n + 1) + static_cast<int>(index.size());
    }
};

template <>
struct Part<0> {
    int work(int n) { return n; }
};

int main(int argc, char **)
{
    return Part<WIDTH>{}.work(argc) & 1;
}
