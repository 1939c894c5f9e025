// Knows the types of its own blocks: what allocating frames tell of them, and what their vtables
// do. Says at its end, for each process: PID KNOWN-BY BYTES BLOCKS NAME, of what is live.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline))

struct Books {
    std::size_t bytes, blocks;
};

static void tell(const char *known, const char *name, std::size_t bytes, std::size_t blocks) {
    std::printf("%d %s %zu %zu %s\n", getpid(), known, bytes, blocks, name);
}

struct Plain {
    long words[5];
};

template <typename T, int Count> struct Box { T items[Count]; };

// Its constructor takes memory that is no Owner.
struct Owner {
    char *buffer;
    KEPT explicit Owner(std::size_t size) : buffer(new char[size]) {
    }
};

namespace shapes {
struct Shape {
    long edges = 0;
    virtual ~Shape() = default;
    virtual long area() const {
        return edges;
    }
};
struct Circle : Shape {
    double radius = 1;
    long area() const override {
        return 3;
    }
};
struct Named {
    const char *name = "";
    virtual ~Named() = default;
    virtual const char *tell() const {
        return name;
    }
};
// The first word is of Shape's part, and says Poster all the same.
struct Poster : Shape, Named {
    long area() const override {
        return 7;
    }
};
struct Hidden : virtual Shape {
    long more[7] = {};
};
template <typename T> struct Holder : Shape {
    T held = T();
    long area() const override {
        return sizeof(T);
    }
};
namespace {
struct Secret : Shape {
    long area() const override {
        return 42;
    }
};
} // namespace
} // namespace shapes

template <typename T> struct Kept {
    std::vector<T *> all;
    // So many that a third of them is freed again.
    KEPT void make(std::size_t count) {
        all.reserve(count);
        for (std::size_t i = 0; i < count; i++) {
            all.push_back(new T);
        }
        for (std::size_t i = 0; i < count; i += 3) {
            delete all[i];
            all[i] = nullptr;
        }
    }
    void tell_all(const char *name) const {
        std::size_t blocks = 0;
        for (const T *one : all) {
            blocks += one != nullptr;
        }
        tell("vtable", name, blocks * sizeof(T), blocks);
    }
};

// Everything of one process that it keeps until its end.
struct World {
    std::vector<Plain> plains;
    std::vector<Box<int, 3>> boxes;
    std::map<int, Plain> tree;
    std::unique_ptr<Plain> one;
    std::shared_ptr<Plain> shared;
    std::vector<Owner *> owners;
    Kept<shapes::Circle> circles;
    Kept<shapes::Poster> posters;
    Kept<shapes::Hidden> hidden;
    Kept<shapes::Holder<int>> ints;
    Kept<shapes::Holder<Box<long, 9>>> boxed;
    Kept<shapes::Secret> secrets;

    KEPT void make(std::size_t count) {
        plains.reserve(count);
        boxes.reserve(2 * count);
        for (std::size_t i = 0; i < count; i++) {
            tree[static_cast<int>(i)] = Plain();
        }
        one = std::make_unique<Plain>();
        shared = std::make_shared<Plain>();
        owners.reserve(count);
        for (std::size_t i = 0; i < count; i++) {
            owners.push_back(new Owner(100 + i));
        }
        std::thread([&] { circles.make(5 * count); }).join();
        posters.make(3 * count);
        hidden.make(2 * count);
        std::thread([&] { ints.make(count); }).join();
        boxed.make(count + 7);
        secrets.make(count + 1);
    }

    void tell_all(std::size_t count) const {
        const std::size_t shared_bytes = sizeof(std::_Sp_counted_ptr_inplace<
                                                Plain,
                                                std::allocator<void>,
                                                __gnu_cxx::__default_lock_policy>);
        tell("frames", "Plain", (count + 1) * sizeof(Plain) + shared_bytes, 3);
        tell("frames", "Box<int, 3>", 2 * count * sizeof(boxes[0]), 1);
        tell(
            "frames",
            "std::_Rb_tree_node<std::pair<int const, Plain> >",
            count * sizeof(std::_Rb_tree_node<std::pair<const int, Plain>>),
            count
        );
        tell("constructor", "Owner", count * 100 + count * (count - 1) / 2, count);
        circles.tell_all("shapes::Circle");
        posters.tell_all("shapes::Poster");
        hidden.tell_all("shapes::Hidden");
        ints.tell_all("shapes::Holder<int>");
        boxed.tell_all("shapes::Holder<Box<long, 9> >");
        secrets.tell_all("shapes::(anonymous namespace)::Secret");
        std::fflush(stdout);
    }
};

// types COUNT [wait]: a parent and a forked child with half as much; "wait": both stay until a file
// `end` is there.
int main(int count_words, char **words) {
    const std::size_t count = std::strtoul(words[1], nullptr, 10);
    const bool waits = count_words > 2;
    // Never freed, so that all of it is live at the end.
    World *parents = new World, *childs = nullptr;

    parents->make(count);
    const pid_t child = fork();
    if (child == 0) {
        childs = new World;
        childs->make(count / 2);
        childs->tell_all(count / 2);
    } else {
        parents->tell_all(count);
    }
    while (waits && access("end", F_OK) != 0) {
        usleep(5000);
    }
    if (child == 0) {
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    _exit(0);
}
