#include "host/terminal/top_screen.h"

#include <locale.h>
#include <stdio.h>
#include <time.h>

#include <curses.h>

enum { TICK_MS = 100, HEADER_LINES = 2, MS_PER_SECOND = 1000, NS_PER_MS = 1000000 };

struct screen {
    const struct ml_top_feed *feed;
    struct ml_top_row *rows;
    size_t count, first; /* `first` is the one below the head */
    enum ml_top_sort sort;
    const char *ended; /* why no more figures come; NULL: they come */
    bool is_frozen;
};

static uint64_t now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * MS_PER_SECOND + (uint64_t)now.tv_nsec / NS_PER_MS;
}

static size_t page_lines(void) {
    return LINES > HEADER_LINES ? (size_t)(LINES - HEADER_LINES) : 1;
}

static void draw(struct screen *screen) {
    char line[ML_TOP_LINE_BYTES];
    const size_t columns = COLS > 0 ? (size_t)COLS : 1;
    if (screen->first >= screen->count) {
        screen->first = screen->count > 0 ? screen->count - 1 : 0;
    }
    (void)erase();
    ml_top_head(screen->sort, columns, line);
    (void)attron(A_REVERSE);
    (void)mvaddstr(0, 0, line);
    (void)attroff(A_REVERSE);
    ml_top_sort(screen->rows, screen->count, screen->sort);
    for (size_t i = 0; i < page_lines() && screen->first + i < screen->count; i++) {
        ml_top_line(&screen->rows[screen->first + i], columns, line);
        (void)mvaddstr((int)i + 1, 0, line);
    }
    (void)snprintf(
        line,
        sizeof(line),
        "%s",
        screen->ended != NULL ? "memlog answers no more: last figures; q leaves"
        : screen->is_frozen   ? "frozen; p goes on  q quit"
                              : "> sort  p freeze  PgUp PgDn  q quit"
    );
    (void)mvaddnstr(LINES - 1, 0, line, COLS);
    (void)refresh();
}

static void look(struct screen *screen) {
    struct ml_top_row *rows = NULL;
    size_t count = 0;
    screen->ended = screen->feed->look(screen->feed->context, &rows, &count);
    if (screen->ended == NULL) {
        screen->rows = rows;
        screen->count = count;
    }
}

/* False: leave. */
static bool take_key(struct screen *screen, int key) {
    switch (key) {
    case 'q':
        return false;
    case '>':
    case KEY_F(6):
        screen->sort = (enum ml_top_sort)((screen->sort + 1U) % ML_TOP_SORT_COUNT);
        break;
    case 'p':
    case ' ':
        screen->is_frozen = !screen->is_frozen;
        break;
    case KEY_DOWN:
        screen->first++;
        break;
    case KEY_UP:
        screen->first -= screen->first > 0 ? 1 : 0;
        break;
    case KEY_NPAGE:
        screen->first += page_lines();
        break;
    case KEY_PPAGE:
        screen->first -= screen->first < page_lines() ? screen->first : page_lines();
        break;
    default:
        break;
    }
    return true;
}

bool ml_top_screen(const struct ml_top_feed *feed) {
    struct screen screen = {.feed = feed, .sort = feed->sort};
    (void)setlocale(LC_CTYPE, "");
    SCREEN *terminal = newterm(NULL, stdout, stdin);
    if (terminal == NULL) {
        return false;
    }
    if (tigetstr("cup") == NULL) { /* newterm takes TERM=dumb */
        (void)endwin();
        delscreen(terminal);
        return false;
    }
    (void)cbreak();
    (void)noecho();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    (void)timeout(TICK_MS);
    uint64_t next_ms = 0;
    bool goes_on = true;
    while (goes_on) {
        bool is_new = false;
        if (now_ms() >= next_ms && !screen.is_frozen && screen.ended == NULL) {
            look(&screen);
            next_ms = now_ms() + (uint64_t)feed->delay_seconds * MS_PER_SECOND;
            is_new = true;
        }
        if (is_new) {
            draw(&screen);
        }
        const int key = getch();
        if (key != ERR) {
            goes_on = take_key(&screen, key);
            draw(&screen);
        }
    }
    (void)endwin();
    delscreen(terminal);
    return true;
}
