/* Classes whose vtables vtables_test finds. */
#include <stddef.h>

class Plain {
  public:
    virtual ~Plain() = default;
    virtual int told() {
        return 1;
    }
    int number = 0;
};

namespace shop {
template <class Goods> class Cart : public Plain {
  public:
    int told() override {
        return 2;
    }
    Goods goods{};
};
} // namespace shop

namespace {
class Hidden : public Plain {
  public:
    int told() override {
        return 3;
    }
};
} // namespace

class Left : public virtual Plain {
  public:
    int told() override {
        return 4;
    }
};

extern "C" __attribute__((visibility("default"))) void *vtables_make(size_t which);

void *vtables_make(size_t which) {
    switch (which) {
    case 0:
        return new Plain;
    case 1:
        return new shop::Cart<Plain *>;
    case 2:
        return new Hidden;
    case 3:
        return new Left;
    default:
        return NULL;
    }
}
