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
    static Plain plain;
    static shop::Cart<Plain *> cart;
    static Hidden hidden;
    static Left left;
    void *const objects[] = {&plain, &cart, &hidden, &left};
    return which < sizeof(objects) / sizeof(objects[0]) ? objects[which] : NULL;
}
