// Names near an unknown one. See near_words.h.
#include <near_words.h>

#include <qg_nearest.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MOST_WORDS = 3, SHORTEST_PART = 3 };

// Whether one begins with the other's first letters, or holds it. Short words are in everything.
static bool is_related(const char *word, const char *known) {
    size_t length = strlen(word), known_length = strlen(known);
    size_t shorter = length < known_length ? length : known_length;
    if (shorter < SHORTEST_PART)
        return false;
    return strncasecmp(word, known, SHORTEST_PART) == 0 || strcasestr(known, word) ||
           strcasestr(word, known);
}

static size_t append(char *text, size_t size, size_t length, const char *word) {
    if (length < size)
        length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "", word);
    return length;
}

static bool begins(const char *word, const char *known) {
    return *word && strncasecmp(known, word, strlen(word)) == 0;
}

// Of how many words this is the beginning.
static int beginnings(const char *word, const char *(*listed)(size_t)) {
    int count = 0;
    for (size_t i = 0; listed(i); i++)
        count += begins(word, listed(i));
    return count;
}

bool qg_near_words(const char *word, const char *(*listed)(size_t), char *text, size_t size) {
    const char *nearest = *word ? qg_nearest(word, listed) : NULL;
    size_t length = 0;
    int count = 0;
    text[0] = 0;
    int begun = beginnings(word, listed);
    if (nearest && begun < 2) {
        append(text, size, 0, nearest);
        return true;
    }
    for (size_t i = 0; listed(i) && count < MOST_WORDS; i++)
        if (begun ? begins(word, listed(i)) : is_related(word, listed(i))) {
            length = append(text, size, length, listed(i));
            count++;
        }
    return count > 0;
}

qg_status qg_near_unknown(const char *kind, const char *word, const char *(*listed)(size_t)) {
    char near[256];
    if (!qg_near_words(word, listed, near, sizeof near))
        return qg_fail(QG_ERROR_ARGUMENT, "unknown %s '%.60s'", kind, word);
    return qg_fail(QG_ERROR_ARGUMENT, "unknown %s '%.60s'; the nearest %s %s", kind, word,
                   strstr(near, ", ") ? "are" : "is", near);
}

qg_status qg_near_hint(qg_status status, const char *hint) {
    char detail[512];
    snprintf(detail, sizeof detail, "%s", qg_detail());
    if (status != QG_ERROR_ARGUMENT || strncmp(detail, "unknown", strlen("unknown")) != 0 ||
        strstr(detail, "nearest") || strstr(detail, "did you mean"))
        return status;
    return qg_fail(status, "%s; %s", detail, hint);
}
