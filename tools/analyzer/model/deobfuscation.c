#include "tools/analyzer/model/deobfuscation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input_file.h"

/* Bounds a hostile dump; no application has so many. */
enum { CLASSES_MAX = 1 << 20, MEMBERS_MAX = 1 << 23 };

/* A method merged from more than these is named by the first of them. */
enum { OVERLOADS_MAX = 4 };

/* A character of a Java name, as runtimes write it. */
static const char name_bytes[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$.";

void ml_deobfuscation_fini(struct ml_deobfuscation *names) {
    free(names->classes);
    free(names->members);
    ml_index_fini(&names->classes_index);
    ml_index_fini(&names->members_index);
    ml_arena_fini(&names->arena);
    *names = (struct ml_deobfuscation){0};
}

bool ml_deobfuscation_class(struct ml_deobfuscation *names, const char *from, const char *to) {
    if (names->classes_count >= CLASSES_MAX ||
        !ML_GROW(names->classes, names->classes_capacity, names->classes_count + 1)) {
        return false;
    }
    names->classes[names->classes_count++] = (struct ml_obfuscated_class
    ){.package = "", .from = from, .to = to, .first_member = names->members_count};
    return true;
}

bool ml_deobfuscation_member(
    struct ml_deobfuscation *names, const char *from, const char *to, bool is_method
) {
    if (names->classes_count == 0 || names->members_count >= MEMBERS_MAX ||
        !ML_GROW(names->members, names->members_capacity, names->members_count + 1)) {
        return false;
    }
    names->members[names->members_count++] = (struct ml_obfuscated_member){
        .class_number = (uint32_t)(names->classes_count - 1),
        .from = from,
        .to = to,
        .is_method = is_method,
    };
    names->classes[names->classes_count - 1].members_count++;
    return true;
}

void ml_deobfuscation_cut(struct ml_deobfuscation *names, size_t classes_count) {
    if (classes_count < names->classes_count) {
        names->members_count = names->classes[classes_count].first_member;
        names->classes_count = classes_count;
    }
}

/* Split "TO -> FROM" in place. False: it is no such line. */
static bool arrow_split(char *line, char **out_to, char **out_from) {
    char *arrow = strstr(line, " -> ");

    if (!arrow || arrow == line) {
        return false;
    }
    *arrow = '\0';
    *out_to = line;
    *out_from = arrow + strlen(" -> ");
    return **out_from != '\0';
}

/* In "1:3:void put(int):10:12" it is put, a method; in "int size" it is size, a field. */
static char *member_name(char *text, bool *out_is_method) {
    char *bracket = strchr(text, '(');
    char *space = NULL;

    *out_is_method = bracket != NULL;
    if (bracket) {
        *bracket = '\0';
    }
    space = strrchr(text, ' ');
    return space ? space + 1 : text;
}

enum line { LINE_TAKEN, LINE_STRANGE, LINE_NO_MEMORY };

static enum line line_take(struct ml_deobfuscation *names, size_t before, char *line) {
    bool is_member = line[0] == ' ' || line[0] == '\t';
    bool is_method = false;
    char *to = NULL;
    char *from = NULL;
    size_t colon = 0;

    line[strcspn(line, "\r\n")] = '\0';
    line += strspn(line, " \t");
    if (line[0] == '\0' || line[0] == '#') {
        return LINE_TAKEN;
    }
    if (!arrow_split(line, &to, &from)) {
        return LINE_STRANGE;
    }
    if (is_member) {
        to = member_name(to, &is_method);
    } else {
        colon = strlen(from) - 1;
        if (from[colon] != ':' || colon == 0) {
            return LINE_STRANGE;
        }
        from[colon] = '\0';
    }
    if (is_member && names->classes_count == before) {
        return LINE_STRANGE;
    }
    to = ml_arena_text(&names->arena, to, strlen(to));
    from = ml_arena_text(&names->arena, from, strlen(from));
    if (!to || !from) {
        return LINE_NO_MEMORY;
    }
    return (is_member ? ml_deobfuscation_member(names, from, to, is_method)
                      : ml_deobfuscation_class(names, from, to))
               ? LINE_TAKEN
               : LINE_NO_MEMORY;
}

enum ml_status ml_deobfuscation_read(
    struct ml_deobfuscation *names, const char *package, const char *path, size_t *out_strange
) {
    bool is_stream = false;
    FILE *file = ml_input_open(path, &is_stream);
    size_t before = names->classes_count;
    const char *kept = ml_arena_text(&names->arena, package, strlen(package));
    enum ml_status status = kept ? ML_OK : ML_ENV_MEMORY;
    char *line = NULL;
    size_t capacity = 0;

    *out_strange = 0;
    if (!file) {
        return ML_ENV_SYSTEM;
    }
    errno = 0;
    while (status == ML_OK && getline(&line, &capacity, file) > 0) {
        enum line taken = line_take(names, before, line);
        *out_strange += taken == LINE_STRANGE;
        status = taken == LINE_NO_MEMORY ? ML_ENV_MEMORY : ML_OK;
    }
    if (status == ML_OK && ferror(file)) {
        status = ML_ENV_SYSTEM;
    }
    free(line);
    fclose(file);
    if (status != ML_OK) {
        ml_deobfuscation_cut(names, before);
    }
    for (size_t i = before; i < names->classes_count; i++) {
        names->classes[i].package = kept;
    }
    return status;
}

/* The package's bit; 0: there are too many. */
static uint64_t package_bit(struct ml_deobfuscation *names, const char *package) {
    size_t at = 0;

    while (at < names->packages_count && strcmp(names->packages[at], package) != 0) {
        at++;
    }
    if (at == names->packages_count) {
        if (at == sizeof names->packages / sizeof names->packages[0]) {
            return 0;
        }
        names->packages[names->packages_count++] = package;
    }
    return (uint64_t)1 << at;
}

static uint64_t class_hash(const char *from, size_t count_bytes) {
    return ml_hash(0, from, count_bytes);
}

static uint64_t member_hash(uint32_t class_number, const char *from, size_t count_bytes) {
    return ml_hash(ml_hash(0, &class_number, sizeof class_number), from, count_bytes);
}

bool ml_deobfuscation_finish(struct ml_deobfuscation *names) {
    bool done = true;

    ml_index_fini(&names->classes_index);
    ml_index_fini(&names->members_index);
    names->packages_count = 0;
    for (uint32_t i = 0; done && i < names->classes_count; i++) {
        struct ml_obfuscated_class *one = &names->classes[i];
        one->package_bit = package_bit(names, one->package);
        done = ml_index_add(&names->classes_index, class_hash(one->from, strlen(one->from)), i);
    }
    for (uint32_t i = 0; done && i < names->members_count; i++) {
        const struct ml_obfuscated_member *one = &names->members[i];
        uint64_t hash = member_hash(one->class_number, one->from, strlen(one->from));
        done = !one->is_method || ml_index_add(&names->members_index, hash, i);
    }
    return done;
}

uint64_t ml_deobfuscation_packages_in(
    const struct ml_deobfuscation *names, const char *text, size_t count_bytes
) {
    uint64_t packages = 0;

    for (size_t i = 0; i < names->packages_count; i++) {
        size_t length = strlen(names->packages[i]);
        if (length > 0 && memmem(text, count_bytes, names->packages[i], length)) {
            packages |= (uint64_t)1 << i;
        }
    }
    return packages;
}

static bool is_text(const char *text, const char *bytes, size_t count_bytes) {
    return strncmp(text, bytes, count_bytes) == 0 && text[count_bytes] == '\0';
}

/* The number of the class, the lowest of equal ones; ML_INDEX_NONE: not known. */
static uint32_t class_find(
    const struct ml_deobfuscation *names, uint64_t packages, const char *from, size_t count_bytes
) {
    uint64_t hash = class_hash(from, count_bytes);
    uint32_t found = ML_INDEX_NONE;
    size_t at = 0;

    for (uint32_t item = ml_index_first(&names->classes_index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&names->classes_index, hash, &at)) {
        const struct ml_obfuscated_class *one = &names->classes[item];
        if ((one->package_bit & packages) != 0 && is_text(one->from, from, count_bytes) &&
            item < found) {
            found = item;
        }
    }
    return found;
}

/* The original names of the method, each once, OVERLOADS_MAX at most. */
static void put_methods(
    FILE *out,
    const struct ml_deobfuscation *names,
    uint32_t class_number,
    const char *from,
    size_t count_bytes
) {
    uint64_t hash = member_hash(class_number, from, count_bytes);
    const char *said[OVERLOADS_MAX];
    size_t said_count = 0;
    size_t at = 0;

    for (uint32_t item = ml_index_first(&names->members_index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&names->members_index, hash, &at)) {
        const struct ml_obfuscated_member *one = &names->members[item];
        bool is_new = one->class_number == class_number && is_text(one->from, from, count_bytes) &&
                      said_count < OVERLOADS_MAX;
        for (size_t i = 0; is_new && i < said_count; i++) {
            is_new = strcmp(said[i], one->to) != 0;
        }
        if (is_new) {
            fprintf(out, "%s%s", said_count > 0 ? "|" : "", one->to);
            said[said_count++] = one->to;
        }
    }
    if (said_count == 0) {
        fwrite(from, 1, count_bytes, out);
    }
}

/* Print a word of the name: a class, or a class and its method. False: it is neither, and was
 * printed as it is. */
static bool put_word(
    FILE *out,
    const struct ml_deobfuscation *names,
    uint64_t packages,
    const char *word,
    size_t count_bytes
) {
    const char *dot = memrchr(word, '.', count_bytes);
    uint32_t found = class_find(names, packages, word, count_bytes);

    if (found != ML_INDEX_NONE) {
        fputs(names->classes[found].to, out);
        return true;
    }
    found = dot ? class_find(names, packages, word, (size_t)(dot - word)) : ML_INDEX_NONE;
    if (found == ML_INDEX_NONE) {
        fwrite(word, 1, count_bytes, out);
        return false;
    }
    fprintf(out, "%s.", names->classes[found].to);
    put_methods(out, names, found, dot + 1, count_bytes - (size_t)(dot + 1 - word));
    return true;
}

char *
ml_deobfuscation_apply(const struct ml_deobfuscation *names, uint64_t packages, const char *name) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = packages != 0 ? open_memstream(&text, &bytes) : NULL;
    bool is_changed = false;

    if (!out) {
        return NULL;
    }
    while (*name) {
        size_t word = strspn(name, name_bytes);
        size_t other = strcspn(name + word, name_bytes);
        if (word > 0 && put_word(out, names, packages, name, word)) {
            is_changed = true;
        }
        fwrite(name + word, 1, other, out);
        name += word + other;
    }
    if (fclose(out) != 0 || !is_changed) {
        free(text);
        return NULL;
    }
    return text;
}
