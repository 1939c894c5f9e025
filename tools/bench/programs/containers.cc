// bench: what compilers have most work with: PARTS sets of containers, algorithms and callables,
// each of other types.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#ifndef PARTS
#    define PARTS 12
#endif

template <int N> struct Part {
    struct Key {
        int value;
        std::string name;
        bool operator<(const Key &other) const {
            return std::tie(value, name) < std::tie(other.value, other.name);
        }
    };
    using Value = std::variant<int, std::string, std::vector<Key>, std::shared_ptr<Key>>;
    std::map<Key, Value> ordered;
    std::unordered_map<std::string, std::vector<std::unique_ptr<Key>>> hashed;
    std::set<std::tuple<int, std::string, Key>> tuples;
    std::function<std::string(const Key &, const Value &)> describe;

    int run(int seed) {
        describe = [this](const Key &key, const Value &value) {
            std::ostringstream out;
            out << key.value << key.name << value.index() << hashed.size();
            return out.str();
        };
        for (int i = 0; i < seed; i++) {
            Key key{i * N, std::to_string(i)};
            ordered.emplace(key, std::vector<Key>{key, key});
            hashed[key.name].push_back(std::make_unique<Key>(key));
            tuples.insert({i, key.name, key});
        }
        std::vector<std::pair<std::string, int>> sorted;
        for (const auto &[key, value] : ordered)
            sorted.emplace_back(describe(key, value), key.value);
        std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
            return a.second > b.second;
        });
        std::stable_sort(sorted.begin(), sorted.end());
        std::regex pattern("([a-z]+)(\\d+)");
        return static_cast<int>(std::count_if(sorted.begin(), sorted.end(), [&](const auto &entry) {
            return std::regex_search(entry.first, pattern);
        }));
    }
};

template <int N> int all(int seed) {
    if constexpr (N == 0)
        return 0;
    else
        return Part<N>{}.run(seed) + all<N - 1>(seed);
}

int main(int argc, char **) {
    return all<PARTS>(argc);
}
