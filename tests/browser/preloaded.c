/* The mini browser as it comes: memlog preloads its client. */
#include "tests/browser/mini_browser.h"

int main(int argc, char *argv[]) {
    return mini_browser_life(argc, argv);
}
