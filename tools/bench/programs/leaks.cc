// bench: leaks by known figures, for tools/bench/compared. Ends with the exit code that it is
// given. leak_small loses 5,000 blocks of 100 bytes, leak_large 40 of 10,000; hold frees what it
// holds at its peak, and churn frees each block at once.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

constexpr int SMALL_BLOCKS = 5000;
constexpr int LARGE_BLOCKS = 40;
constexpr int HELD_BLOCKS = 20000;
constexpr int CHURNED_BLOCKS = 1000000;

// What the compiler does not know is stored cannot be left out.
void *volatile seen;

__attribute__((noinline)) void leak_small() {
    for (int i = 0; i < SMALL_BLOCKS; i++) {
        seen = new char[100];
    }
}

__attribute__((noinline)) void leak_large() {
    for (int i = 0; i < LARGE_BLOCKS; i++) {
        seen = malloc(10000);
    }
}

__attribute__((noinline)) void hold() {
    std::vector<std::unique_ptr<char[]>> held(HELD_BLOCKS);
    for (auto &block : held) {
        block.reset(new char[1000]);
        seen = block.get();
    }
}

__attribute__((noinline)) void churn() {
    for (int i = 0; i < CHURNED_BLOCKS; i++) {
        std::unique_ptr<char[]> block(new char[48]);
        seen = block.get();
    }
}

} // namespace

int main(int count, char **words) {
    leak_small();
    leak_large();
    hold();
    churn();
    std::puts("done");
    return count > 1 ? std::atoi(words[1]) : 0;
}
