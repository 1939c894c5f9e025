/* A menu's items, whose functions have names that an allocator's have, too, and other parameters.
 * Room: tests. Context: one thread. One rule: it ends with 0 if each function got what it was
 * called with. */
#include <stdlib.h>

struct item {
    int numbers[5];
    double width;
};

struct item *mi_new(int first, int second, int third, int fourth, int fifth, double width);
int mi_free(struct item *item, int second, int third, int fourth, int fifth);

struct item *mi_new(int first, int second, int third, int fourth, int fifth, double width) {
    struct item *item = malloc(sizeof(*item));
    if (item == NULL) {
        abort();
    }
    *item = (struct item){.numbers = {first, second, third, fourth, fifth}, .width = width};
    return item;
}

int mi_free(struct item *item, int second, int third, int fourth, int fifth) {
    const int sum = second + third + fourth + fifth + item->numbers[4];
    free(item);
    return sum;
}

int main(int count, char **arguments) {
    (void)arguments;
    struct item *item = mi_new(count, 2, 3, 4, 5, 1.25);
    const int is_whole = item->numbers[4] == 5 && item->width == 1.25;
    const int sum = mi_free(item, 1, 2, 3, 4);
    return is_whole && sum == 15 ? 0 : 1;
}
