#include "host/terminal/top_screen.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <curses.h>

#include "base/printable.h"

enum {
    TICK_MS = 100,
    ESCAPE_MS = 100, /* what follows Esc later is no key of a terminal, also over ssh */
    LATE_MS = 2000,
    HEADER_LINES = 2,
    MS_PER_SECOND = 1000,
    NS_PER_MS = 1000000,
    FILTER_BYTES = 65,
    TIME_BYTES = 16,
    KEY_ESCAPE = 27,
    KEY_DELETE = 127
};

struct screen {
    const struct ml_top_feed *feed;
    struct ml_top_row *rows;
    size_t count, shown, first; /* `shown` pass the filter; `first` is the one below the head */
    enum ml_top_sort sort;
    enum { OVER_NOTHING = 0, OVER_FILTER, OVER_HELP } over; /* what keys go to first */
    char filter[FILTER_BYTES];
    uint64_t asked_ms, next_ms; /* when the answer that is still to come was asked for; 0: none */
    char answered_at[TIME_BYTES];
    enum { FIGURES_COME = 0, FIGURES_LATE, FIGURES_ENDED } figures;
    bool is_frozen;
};

static uint64_t now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * MS_PER_SECOND + (uint64_t)now.tv_nsec / NS_PER_MS;
}

static void set_answered(struct screen *screen) {
    const time_t now = time(NULL);
    struct tm parts;
    (void)strftime(screen->answered_at, TIME_BYTES, "%H:%M:%SZ", gmtime_r(&now, &parts));
}

static size_t page_lines(void) {
    return LINES > HEADER_LINES ? (size_t)(LINES - HEADER_LINES) : 1;
}

static void draw_bottom(const struct screen *screen) {
    char line[FILTER_BYTES + 64];
    if (screen->over == OVER_FILTER) {
        (void
        )snprintf(line, sizeof(line), "filter: %s_  Enter keeps it  Esc ends it", screen->filter);
    } else if (screen->figures == FIGURES_ENDED) {
        (void)snprintf(line, sizeof(line), "memlog answers no more: last figures; q leaves");
    } else if (screen->figures == FIGURES_LATE) {
        (void)snprintf(line, sizeof(line), "no answer since %s; trying again", screen->answered_at);
    } else if (screen->is_frozen) {
        (void)snprintf(line, sizeof(line), "frozen; p goes on  h help  q quit");
    } else if (screen->filter[0] != '\0') {
        (void)snprintf(line, sizeof(line), "names with '%s'; Esc ends it  h help", screen->filter);
    } else {
        (void)snprintf(line, sizeof(line), "h help  / filter  > sort  p freeze  PgUp PgDn  q quit");
    }
    ml_printable_clean(line);
    line[ml_printable_head(line, COLS > 0 ? (size_t)COLS : 1)] = '\0';
    (void)mvaddstr(LINES - 1, 0, line);
}

static void draw_help(void) {
    static const char *const lines[] = {
        "h ? F1        these keys; Esc ends it",
        "/ F4          names that hold a text: Enter keeps it, Esc ends it",
        "> F6          sort by the next column",
        "p Space       freeze, and go on",
        "Up Down       scroll by a line; PgUp PgDn by a page",
        "q F10         quit",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        (void)mvaddnstr((int)i + 1, 1, lines[i], COLS > 1 ? COLS - 1 : 1);
    }
}

static void draw_rows(struct screen *screen) {
    char line[ML_TOP_LINE_BYTES];
    const size_t columns = COLS > 0 ? (size_t)COLS : 1;
    ml_top_sort(screen->rows, screen->count, screen->sort);
    screen->shown = ml_top_filter(screen->rows, screen->count, screen->filter);
    if (screen->first >= screen->shown) {
        screen->first = screen->shown > 0 ? screen->shown - 1 : 0;
    }
    ml_top_head(screen->sort, columns, line);
    (void)attron(A_REVERSE);
    (void)mvaddstr(0, 0, line);
    (void)attroff(A_REVERSE);
    for (size_t i = 0; i < page_lines() && screen->first + i < screen->shown; i++) {
        ml_top_line(&screen->rows[screen->first + i], columns, line);
        (void)mvaddstr((int)i + 1, 0, line);
    }
}

static void draw(struct screen *screen) {
    (void)erase();
    if (screen->over == OVER_HELP) {
        draw_help();
    } else {
        draw_rows(screen);
    }
    draw_bottom(screen);
    (void)refresh();
}

/* Ask when it is time, and take what has come. True: something on the screen is another now. */
static bool look(struct screen *screen) {
    const struct ml_top_feed *feed = screen->feed;
    const uint64_t now = now_ms();
    const unsigned before = screen->figures;
    if (screen->is_frozen || screen->figures == FIGURES_ENDED) {
        return false;
    }
    if (now >= screen->next_ms) {
        feed->ask(feed->context);
        screen->asked_ms = screen->asked_ms != 0 ? screen->asked_ms : now;
        screen->next_ms = now + (uint64_t)feed->delay_seconds * MS_PER_SECOND;
    }
    switch (feed->take(feed->context, &screen->rows, &screen->count)) {
    case ML_TOP_ROWS:
        screen->figures = FIGURES_COME;
        screen->asked_ms = 0;
        set_answered(screen);
        return true;
    case ML_TOP_FAILED:
        screen->figures = FIGURES_LATE;
        break;
    case ML_TOP_ENDED:
        screen->figures = FIGURES_ENDED;
        break;
    case ML_TOP_NOTHING:
        if (screen->asked_ms != 0 && now - screen->asked_ms >= LATE_MS) {
            screen->figures = FIGURES_LATE;
        }
        break;
    }
    return screen->figures != before;
}

/* Without the last character. */
static void shorten(char *text) {
    size_t count = strlen(text);
    while (count > 0 && ((unsigned char)text[--count] & 0xC0U) == 0x80U) {
    }
    text[count] = '\0';
}

static void take_filter_key(struct screen *screen, int key) {
    const size_t count = strlen(screen->filter);
    switch (key) {
    case KEY_ESCAPE:
        screen->filter[0] = '\0';
        screen->over = OVER_NOTHING;
        break;
    case '\n':
    case '\r':
    case KEY_ENTER:
        screen->over = OVER_NOTHING;
        break;
    case KEY_BACKSPACE:
    case KEY_DELETE:
    case '\b':
        shorten(screen->filter);
        break;
    default:
        if (key >= ' ' && key <= UINT8_MAX && count + 1 < FILTER_BYTES) {
            screen->filter[count] = (char)key;
            screen->filter[count + 1] = '\0';
        }
        break;
    }
}

static void scroll_by(struct screen *screen, bool is_down, size_t lines) {
    if (is_down) {
        screen->first += lines;
    } else {
        screen->first -= screen->first < lines ? screen->first : lines;
    }
}

static void freeze(struct screen *screen) {
    screen->is_frozen = !screen->is_frozen;
    screen->asked_ms = 0;
    screen->next_ms = 0;
}

/* False: leave. */
static bool take_key(struct screen *screen, int key) {
    if (screen->over == OVER_FILTER) {
        take_filter_key(screen, key);
        return true;
    }
    switch (key) {
    case 'q':
    case KEY_F(10):
        return false;
    case 'h':
    case '?':
    case KEY_F(1):
        screen->over = screen->over == OVER_HELP ? OVER_NOTHING : OVER_HELP;
        break;
    case '/':
    case KEY_F(4):
        screen->over = OVER_FILTER;
        break;
    case KEY_ESCAPE:
        if (screen->over == OVER_NOTHING) {
            screen->filter[0] = '\0';
        }
        screen->over = OVER_NOTHING;
        break;
    case '>':
    case KEY_F(6):
        screen->sort = (enum ml_top_sort)((screen->sort + 1U) % ML_TOP_SORT_COUNT);
        break;
    case 'p':
    case ' ':
        freeze(screen);
        break;
    case KEY_DOWN:
    case KEY_UP:
        scroll_by(screen, key == KEY_DOWN, 1);
        break;
    case KEY_NPAGE:
    case KEY_PPAGE:
        scroll_by(screen, key == KEY_NPAGE, page_lines());
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
    (void)set_escdelay(ESCAPE_MS);
    (void)timeout(TICK_MS);
    set_answered(&screen);
    bool goes_on = true;
    while (goes_on) {
        if (look(&screen)) {
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
