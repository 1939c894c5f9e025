#include "tests/tools/sample/known_calls.h"

static volatile int after;

namespace shop {

template <typename T> struct Box {
    T things[3];
    unsigned size() const {
        return 3;
    }
};

class Shelf {
  public:
    __attribute__((noinline)) void put(const Box<int> &things, int at) const;
};

__attribute__((noinline)) void Shelf::put(const Box<int> &things, int at) const {
    known_place("method");
    after = after + static_cast<int>(things.size()) + at;
}

namespace {
__attribute__((noinline)) int hidden(int value) {
    known_place("hidden");
    return value + after;
}
} // namespace

} // namespace shop

void known_cpp(void) {
    const shop::Box<int> things = {};
    const auto lambda = [&](int value) __attribute__((noinline)) {
        known_place("lambda");
        after = after + value;
    };

    shop::Shelf().put(things, 1);
    after = after + shop::hidden(2);
    lambda(3);
}
