#include "host/terminal/top_screen.h"

#include <inttypes.h>
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

/* A look at functions costs the profiled processes' memlog a snapshot: so much rest is between two,
 * and more where one takes long. */
enum { FUNCTIONS_REST_MS = 5000, FUNCTIONS_REST_LOOKS = 10, TROUBLE_BYTES = 256 };

struct functions {
    struct ml_top_function *rows;
    size_t count, shown;
    size_t named_count;         /* pid 0: of so many; 0: of all */
    enum ml_top_sort sort;      /* ML_TOP_SORT_HEAP or ML_TOP_SORT_GROWTH */
    uint32_t pid;               /* whose; 0: all processes' */
    uint64_t taken_ms;          /* when those on the screen were; 0: none are there */
    uint64_t asked_ms, next_ms; /* asked_ms 0: nothing is to come */
    uint64_t age_s;             /* as it stands on the screen */
    char trouble[TROUBLE_BYTES];
};

struct screen {
    const struct ml_top_feed *feed;
    struct ml_top_row *rows;
    size_t count, shown;    /* `shown` pass the filter */
    size_t first, selected; /* `first` is the one below the head */
    enum ml_top_sort sort;
    enum { OVER_NOTHING = 0, OVER_FILTER, OVER_HELP } over; /* what keys go to first */
    char filter[FILTER_BYTES];
    uint64_t asked_ms, next_ms; /* when the answer that is still to come was asked for; 0: none */
    char answered_at[TIME_BYTES];
    enum { FIGURES_COME = 0, FIGURES_LATE, FIGURES_ENDED } figures;
    bool is_frozen;
    bool has_functions; /* they stand on the screen in place of processes */
    struct functions functions;
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

/* The line below functions: whose they are, and how old. */
static void functions_text(struct functions *functions, char *out, size_t out_bytes) {
    char whose[3 * TIME_BYTES] = "functions";
    if (functions->pid != 0) {
        (void)snprintf(whose, sizeof(whose), "functions of %" PRIu32, functions->pid);
    } else if (functions->named_count != 0) {
        (void)snprintf(whose, sizeof(whose), "functions of %zu PIDs", functions->named_count);
    }
    functions->age_s = (now_ms() - functions->taken_ms) / MS_PER_SECOND;
    if (functions->trouble[0] != '\0') {
        (void)snprintf(out, out_bytes, "%s: trying again: %s", whose, functions->trouble);
    } else if (functions->taken_ms == 0) {
        (void)snprintf(out, out_bytes, "%s: waiting for a profile  f processes  q quit", whose);
    } else {
        (void)snprintf(
            out,
            out_bytes,
            "%s, %" PRIu64 " s old  f processes  / filter  > sort  h help  q quit",
            whose,
            functions->age_s
        );
    }
}

static void draw_bottom(struct screen *screen) {
    char line[TROUBLE_BYTES + 64];
    if (screen->over == OVER_FILTER) {
        (void
        )snprintf(line, sizeof(line), "filter: %s_  Enter keeps it  Esc ends it", screen->filter);
    } else if (screen->figures == FIGURES_ENDED) {
        (void)snprintf(line, sizeof(line), "memlog answers no more: last figures; q leaves");
    } else if (screen->figures == FIGURES_LATE) {
        (void)snprintf(line, sizeof(line), "no answer since %s; trying again", screen->answered_at);
    } else if (screen->is_frozen) {
        (void)snprintf(line, sizeof(line), "frozen; p goes on  h help  q quit");
    } else if (screen->has_functions) {
        functions_text(&screen->functions, line, sizeof(line));
    } else if (screen->filter[0] != '\0') {
        (void)snprintf(line, sizeof(line), "names with '%s'; Esc ends it  h help", screen->filter);
    } else {
        (void)snprintf(
            line, sizeof(line), "h help  / filter  > sort  f functions  p freeze  PgUp PgDn  q quit"
        );
    }
    ml_printable_clean(line);
    line[ml_printable_head(line, COLS > 0 ? (size_t)COLS : 1)] = '\0';
    (void)mvaddstr(LINES - 1, 0, line);
}

static void draw_help(void) {
    static const char *const lines[] = {
        "h ? F1        these keys; Esc ends it",
        "/ \\ F3 F4     names that hold a text: Enter keeps it, Esc ends it",
        "> F6          sort by the next column; M by private memory",
        "f             functions of all processes that were asked for, and back",
        "Enter         functions of the process on the marked line; Esc goes back",
        "p Space       freeze, and go on",
        "Up Down       mark another line; PgUp PgDn by a page; Home End",
        "q F10         quit",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        (void)mvaddnstr((int)i + 1, 1, lines[i], COLS > 1 ? COLS - 1 : 1);
    }
}

/* Keep the marked line among those that there are, and on the screen. */
static void settle(struct screen *screen, size_t shown) {
    if (screen->selected >= shown) {
        screen->selected = shown > 0 ? shown - 1 : 0;
    }
    if (screen->selected < screen->first) {
        screen->first = screen->selected;
    }
    if (screen->selected >= screen->first + page_lines()) {
        screen->first = screen->selected - page_lines() + 1;
    }
}

static void draw_line(int y, const char *line, attr_t look) {
    (void)attron(look);
    (void)mvaddstr(y, 0, line);
    (void)attroff(look);
}

static void draw_functions(struct screen *screen, size_t columns) {
    struct functions *functions = &screen->functions;
    char line[ML_TOP_LINE_BYTES];
    ml_top_functions_sort(functions->rows, functions->count, functions->sort);
    functions->shown = ml_top_functions_filter(functions->rows, functions->count, screen->filter);
    settle(screen, functions->shown);
    ml_top_functions_head(functions->sort, columns, line);
    draw_line(0, line, A_REVERSE);
    for (size_t i = 0; i < page_lines() && screen->first + i < functions->shown; i++) {
        ml_top_functions_line(&functions->rows[screen->first + i], columns, line);
        draw_line((int)i + 1, line, screen->first + i == screen->selected ? A_BOLD : A_NORMAL);
    }
}

static void draw_processes(struct screen *screen, size_t columns) {
    char line[ML_TOP_LINE_BYTES];
    ml_top_sort(screen->rows, screen->count, screen->sort);
    screen->shown = ml_top_filter(screen->rows, screen->count, screen->filter);
    settle(screen, screen->shown);
    ml_top_head(screen->sort, columns, line);
    draw_line(0, line, A_REVERSE);
    for (size_t i = 0; i < page_lines() && screen->first + i < screen->shown; i++) {
        ml_top_line(&screen->rows[screen->first + i], columns, line);
        draw_line((int)i + 1, line, screen->first + i == screen->selected ? A_BOLD : A_NORMAL);
    }
}

static void draw(struct screen *screen) {
    const size_t columns = COLS > 0 ? (size_t)COLS : 1;
    (void)erase();
    if (screen->over == OVER_HELP) {
        draw_help();
    } else if (screen->has_functions) {
        draw_functions(screen, columns);
    } else {
        draw_processes(screen, columns);
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

static uint64_t larger(uint64_t left, uint64_t right) {
    return left > right ? left : right;
}

/* The same for functions, while they are shown. */
static bool look_at_functions(struct screen *screen) {
    const struct ml_top_feed *feed = screen->feed;
    struct functions *functions = &screen->functions;
    const uint64_t now = now_ms();
    const char *trouble = "";
    if (!screen->has_functions || screen->is_frozen || screen->figures == FIGURES_ENDED) {
        return false;
    }
    if (functions->asked_ms == 0 && now >= functions->next_ms) {
        feed->ask_functions(feed->context, functions->pid);
        functions->asked_ms = now;
    }
    const enum ml_top_answer answer =
        feed->take_functions(feed->context, &functions->rows, &functions->count, &trouble);
    if (answer == ML_TOP_NOTHING) {
        const uint64_t age_s = (now - functions->taken_ms) / MS_PER_SECOND;
        return functions->taken_ms != 0 && age_s != functions->age_s;
    }
    const uint64_t rest = larger(
        larger(FUNCTIONS_REST_MS, (uint64_t)feed->delay_seconds * MS_PER_SECOND),
        (now - functions->asked_ms) * FUNCTIONS_REST_LOOKS
    );
    functions->taken_ms = answer == ML_TOP_ROWS ? functions->asked_ms : functions->taken_ms;
    (void)snprintf(functions->trouble, TROUBLE_BYTES, "%s", trouble);
    functions->asked_ms = 0;
    functions->next_ms = now + (answer == ML_TOP_ROWS ? rest : MS_PER_SECOND);
    return true;
}

/* Another table, from its first line on. `pid` is that of functions alone. */
static void show_table(struct screen *screen, bool has_functions, uint32_t pid) {
    screen->has_functions = has_functions;
    screen->first = 0;
    screen->selected = 0;
    screen->filter[0] = '\0';
    if (has_functions) {
        screen->functions = (struct functions
        ){.pid = pid, .named_count = screen->feed->named_count, .sort = screen->functions.sort};
    }
}

static void choose(struct screen *screen) {
    if (!screen->has_functions && screen->selected < screen->shown) {
        show_table(screen, true, screen->rows[screen->selected].pid);
    }
}

static void sort_by_next(struct screen *screen) {
    enum ml_top_sort *sort = screen->has_functions ? &screen->functions.sort : &screen->sort;
    if (screen->has_functions) {
        *sort = *sort == ML_TOP_SORT_HEAP ? ML_TOP_SORT_GROWTH : ML_TOP_SORT_HEAP;
    } else {
        *sort = (enum ml_top_sort)((*sort + 1U) % ML_TOP_SORT_COUNT);
    }
}

static void sort_by_memory(struct screen *screen) {
    if (!screen->has_functions) {
        screen->sort = ML_TOP_SORT_PRIVATE;
    }
}

/* End what is above the table, else its filter, else the functions. */
static void escape(struct screen *screen) {
    if (screen->over == OVER_NOTHING && screen->filter[0] == '\0' && screen->has_functions) {
        show_table(screen, false, 0);
    } else if (screen->over == OVER_NOTHING) {
        screen->filter[0] = '\0';
    }
    screen->over = OVER_NOTHING;
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
    if (is_down) { /* from the line behind End on there is nothing */
        screen->selected += lines < SIZE_MAX - screen->selected ? lines : 0;
    } else {
        screen->selected -= screen->selected < lines ? screen->selected : lines;
    }
}

/* False: no such key. */
static bool move_by_key(struct screen *screen, int key) {
    switch (key) {
    case KEY_DOWN:
    case KEY_UP:
        scroll_by(screen, key == KEY_DOWN, 1);
        return true;
    case KEY_NPAGE:
    case KEY_PPAGE:
        scroll_by(screen, key == KEY_NPAGE, page_lines());
        return true;
    case KEY_HOME:
        screen->selected = 0;
        return true;
    case KEY_END:
        screen->selected = SIZE_MAX; /* the last line that there is, when it is drawn */
        return true;
    default:
        return false;
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
    if (move_by_key(screen, key)) {
        return true;
    }
    switch (key) {
    case 'q':
    case KEY_F(10):
        if (screen->over == OVER_HELP) {
            screen->over = OVER_NOTHING;
            return true;
        }
        return false;
    case 'h':
    case '?':
    case KEY_F(1):
        screen->over = screen->over == OVER_HELP ? OVER_NOTHING : OVER_HELP;
        break;
    case '/':
    case '\\':
    case KEY_F(3):
    case KEY_F(4):
        screen->over = OVER_FILTER;
        break;
    case KEY_ESCAPE:
        escape(screen);
        break;
    case '>':
    case KEY_F(6):
        sort_by_next(screen);
        break;
    case 'M':
        sort_by_memory(screen);
        break;
    case 'f':
        show_table(screen, !screen->has_functions, screen->feed->named_pid);
        break;
    case '\n':
    case '\r':
    case KEY_ENTER:
        choose(screen);
        break;
    case 'p':
    case ' ':
        freeze(screen);
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
        const bool has_processes = look(&screen);
        const bool has_functions = look_at_functions(&screen);
        if (has_processes || has_functions) {
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
