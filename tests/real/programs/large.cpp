// A C++ program that asks much of its compiler (templates, <regex>, <map>, <algorithm>, <variant>) and
// then much of operator new, in four threads.  It prints a digest of its results.
#include <algorithm>
#include <any>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

// Containers of ever larger payloads: each size is a set of instantiations of its own.
constexpr std::size_t payload_sizes = 3;

template <std::size_t N> struct Payload {
    std::array<std::uint32_t, N + 1> words{};
    auto operator<=>(const Payload &) const = default;
};

std::uint64_t mix(std::uint64_t digest, std::uint64_t value)
{
    digest ^= value + 0x9e3779b97f4a7c15ull + (digest << 6) + (digest >> 2);
    return digest * 0xff51afd7ed558ccdull;
}

template <std::size_t N> std::uint64_t exercise(std::mt19937 &source)
{
    std::map<Payload<N>, std::vector<Payload<N>>> tree;
    std::unordered_map<std::string, std::unique_ptr<Payload<N>>> names;
    std::deque<std::shared_ptr<Payload<N>>> line;
    for (unsigned i = 0; i < 40000; ++i) {
        Payload<N> value;
        value.words[N / 2] = source() % 9973;
        tree[value].push_back(value);
        names.emplace("payload " + std::to_string(source() % 20011), std::make_unique<Payload<N>>(value));
        line.push_back(std::make_shared<Payload<N>>(value));
        if (line.size() > 50) {
            line.pop_front();
        }
    }
    std::uint64_t digest = N;
    for (const auto &[key, values] : tree) {
        digest = mix(digest, key.words[N / 2] * values.size());
    }
    std::vector<std::string> sorted;
    std::transform(names.begin(), names.end(), std::back_inserter(sorted), [](const auto &entry) { return entry.first; });
    sorted.erase(std::remove_if(sorted.begin(), sorted.end(), [](const auto &name) { return name.size() < 10; }),
                 sorted.end());
    std::sort(sorted.begin(), sorted.end(), std::greater<>{});
    for (const auto &name : sorted) {
        digest = mix(digest, name.size() + names.at(name)->words[N / 2]);
    }
    std::stable_sort(line.begin(), line.end(), [](const auto &a, const auto &b) { return *a < *b; });
    return mix(digest, line.empty() ? 0 : line.front()->words[N / 2]);
}

template <std::size_t... N> std::uint64_t exercise_all(std::index_sequence<N...>, unsigned seed)
{
    std::mt19937 source(seed);
    std::uint64_t digest = seed;
    ((digest = mix(digest, exercise<N>(source))), ...);
    return digest;
}

// A small expression language: parsed by <regex>, kept in variants, evaluated by visitors.
struct Sum;
struct Product;
using Expression = std::variant<std::int64_t, std::unique_ptr<Sum>, std::unique_ptr<Product>>;
struct Sum {
    Expression left, right;
};
struct Product {
    Expression left, right;
};

std::int64_t evaluate(const Expression &expression)
{
    struct Visitor {
        std::int64_t operator()(std::int64_t number) const { return number; }
        std::int64_t operator()(const std::unique_ptr<Sum> &sum) const
        {
            return (evaluate(sum->left) + evaluate(sum->right)) % 1000003;
        }
        std::int64_t operator()(const std::unique_ptr<Product> &product) const
        {
            return (evaluate(product->left) * evaluate(product->right)) % 1000003;
        }
    };
    return std::visit(Visitor{}, expression);
}

Expression parse(std::vector<std::string> &tokens)
{
    const std::string token = std::move(tokens.back());
    tokens.pop_back();
    if (token == "+") {
        Expression left = parse(tokens);
        return std::make_unique<Sum>(Sum{std::move(left), parse(tokens)});
    }
    if (token == "*") {
        Expression left = parse(tokens);
        return std::make_unique<Product>(Product{std::move(left), parse(tokens)});
    }
    return std::int64_t{std::stoll(token)};
}

std::uint64_t expressions(std::mt19937 &source)
{
    static const std::regex token(R"((\d+)|([+*])|\s+)", std::regex::optimize);
    std::uint64_t digest = 1;
    for (unsigned round = 0; round < 1500; ++round) {
        std::ostringstream text;
        unsigned operands = 20 + source() % 60;
        for (unsigned i = 0; i < operands; ++i) {
            text << source() % 1000 << ' ' << (i == 0 ? "" : (source() % 2 ? "+ " : "* "));
        }
        const std::string line = text.str();
        std::vector<std::string> tokens;
        for (std::sregex_iterator at(line.begin(), line.end(), token), end; at != end; ++at) {
            if ((*at)[1].matched || (*at)[2].matched) {
                tokens.push_back(at->str());
            }
        }
        digest = mix(digest, static_cast<std::uint64_t>(evaluate(parse(tokens))));
    }
    return digest;
}

std::uint64_t exceptions(std::mt19937 &source)
{
    std::uint64_t digest = 2;
    for (unsigned i = 0; i < 30000; ++i) {
        try {
            std::vector<std::any> kept(source() % 30, std::string("a string too long for the small buffer"));
            if (source() % 3 == 0) {
                throw std::out_of_range("exception number " + std::to_string(i));
            }
            digest = mix(digest, kept.size());
        } catch (const std::exception &error) {
            digest = mix(digest, std::string(error.what()).size());
        }
    }
    return digest;
}

} // namespace

int main()
{
    std::vector<std::future<std::uint64_t>> parts;
    for (unsigned seed = 1; seed <= 4; ++seed) {
        parts.push_back(std::async(std::launch::async, [seed] {
            std::mt19937 source(seed);
            std::uint64_t digest = exercise_all(std::make_index_sequence<payload_sizes>{}, seed);
            digest = mix(digest, expressions(source));
            return mix(digest, exceptions(source));
        }));
    }
    std::uint64_t digest = 0;
    for (auto &part : parts) {
        digest = mix(digest, part.get());
    }
    std::cout << std::hex << digest << '\n';
}
