// What C++ makes of names: inlines, templates, lambdas, exceptions, constructors, operators. Each
// allocation has a size of its own.
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef __clang__
#    define KEEP __attribute__((noinline))
#else
#    define KEEP __attribute__((noinline, noclone))
#endif
#define INLINE inline __attribute__((always_inline))

static void *volatile kept[16];

namespace shop {

INLINE void *cut(std::size_t size) {
    return std::malloc(size);
}

INLINE void *wrap(std::size_t size) {
    return cut(size + 1);
}

KEEP void inlined(std::size_t size) {
    kept[0] = wrap(size);
}

template <typename Fish, int Count> struct Box {
    KEEP static void fill(std::size_t size) {
        kept[1] = std::malloc(size + sizeof(Fish) * Count);
    }
};

namespace {
KEEP void hidden(std::size_t size) {
    kept[2] = std::malloc(size);
}
} // namespace

KEEP void call(const std::function<void(std::size_t)> &what, std::size_t size) {
    what(size);
    kept[15] = kept[14];
}

struct Error : std::runtime_error {
    KEEP explicit Error(const std::string &text)
        : std::runtime_error(text), own(std::malloc(70005)) {
        kept[3] = own;
    }
    void *own;
};

KEEP void fail() {
    throw Error("sold out");
}

KEEP void caught(std::size_t size) {
    try {
        fail();
    } catch (const Error &) {
        kept[4] = std::malloc(size);
    }
}

struct Shelf {
    KEEP Shelf() : at(std::malloc(70007)) {
        kept[5] = at;
    }
    KEEP ~Shelf() {
        kept[6] = std::malloc(70008);
    }
    KEEP virtual void operator()(std::size_t size) const {
        kept[7] = std::malloc(size);
    }
    void *at;
};

} // namespace shop

int main() {
    shop::inlined(70000);
    shop::Box<long, 2>::fill(69986);
    shop::hidden(70003);
    shop::call([](std::size_t size) { kept[8] = std::malloc(size); }, 70004);
    shop::caught(70006);
    {
        shop::Shelf shelf;
        shelf(70009);
    }
    kept[9] = new char[70010];
    std::vector<char> *grown = new std::vector<char>(70011);
    kept[10] = grown->data();
    return 0;
}
