// Lists of names and numbers. See list.h.
#include <list.h>

#include <number.h>
#include <text_lines.h>

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_SHOWN = 80 }; // characters of an item that a message repeats

void qg_list_free(qg_list *list) {
    for (int64_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (qg_list){0};
}

static qg_status out_of_memory(void) {
    return qg_fail(QG_ERROR_MEMORY, "out of memory for a list");
}

// Room for one more.
static qg_status list_reserve(qg_list *list) {
    if (list->count >= QG_LIST_MOST)
        return qg_fail(QG_ERROR_ARGUMENT, "the list has more than %d items", QG_LIST_MOST);
    if (list->count < list->capacity)
        return QG_OK;
    int64_t capacity = list->capacity ? 2 * list->capacity : 8;
    char **items = realloc(list->items, (size_t)capacity * sizeof *items);
    if (!items)
        return out_of_memory();
    list->items = items;
    list->capacity = capacity;
    return QG_OK;
}

qg_status qg_list_add(qg_list *list, const char *item) {
    qg_status status = list_reserve(list);
    if (status)
        return status;
    char *copy = strdup(item);
    if (!copy)
        return out_of_memory();
    list->items[list->count++] = copy;
    return QG_OK;
}

qg_status qg_list_copy(const qg_list *from, qg_list *to) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < from->count && !status; i++)
        status = qg_list_add(to, from->items[i]);
    return status;
}

// ------------------------------------------------------------------------------------- splitting

static qg_status split(const char *text, bool files, qg_list *list);

static qg_status add_file(const char *path, qg_list *list) {
    qg_text_lines lines;
    qg_status status = qg_text_lines_open(path, &lines);
    if (status)
        return status;
    int64_t before = list->count;
    for (char *line; !status && (line = qg_text_lines_next(&lines));) {
        char *item = qg_text_trimmed(line);
        if (*item && *item != '#')
            status = split(item, false, list);
    }
    qg_text_lines_close(&lines);
    if (status) {
        char reason[256];
        snprintf(reason, sizeof reason, "%s", qg_detail());
        return qg_fail(status, "file '%s': %s", path, reason);
    }
    if (list->count == before)
        return qg_fail(QG_ERROR_ARGUMENT, "file '%s' has no item", path);
    return QG_OK;
}

static qg_status add_item(char *raw, bool files, const char *whole, qg_list *list) {
    char *item = qg_text_trimmed(raw);
    if (!*item)
        return qg_fail(QG_ERROR_ARGUMENT,
                       *whole ? "an empty item in the list '%.*s'" : "the list is empty%.*s",
                       LONGEST_SHOWN, whole);
    if (*item != '@')
        return qg_list_add(list, item);
    if (!files)
        return qg_fail(QG_ERROR_ARGUMENT, "'%.*s': a list's file cannot name another",
                       LONGEST_SHOWN, item);
    return add_file(item + 1, list);
}

static qg_status split(const char *text, bool files, qg_list *list) {
    char *item = malloc(strlen(text) + 1);
    if (!item)
        return out_of_memory();
    qg_status status = QG_OK;
    size_t length = 0;
    for (const char *c = text; !status; c++) {
        if (*c == '\\' && c[1] == ',') {
            item[length++] = *++c;
        } else if (*c && *c != ',') {
            item[length++] = *c;
        } else {
            item[length] = 0;
            length = 0;
            status = add_item(item, files, text, list);
            if (!*c)
                break;
        }
    }
    free(item);
    return status;
}

qg_status qg_list_split(const char *text, qg_list *list) {
    char *copy = strdup(text);
    if (!copy)
        return out_of_memory();
    qg_status status = split(qg_text_trimmed(copy), true, list);
    free(copy);
    return status;
}

void qg_list_escape(const char *item, char *text, size_t size) {
    size_t length = 0;
    for (; *item && length + 2 < size; item++) {
        if (*item == ',')
            text[length++] = '\\';
        text[length++] = *item;
    }
    if (size)
        text[length] = 0;
}

// ----------------------------------------------------------------------------------------- globs

bool qg_list_is_glob(const char *item) { return strpbrk(item, "*?[") != NULL; }

qg_status qg_list_match(const char *glob, const char *(*listed)(size_t), qg_list *list,
                        int64_t *matched) {
    qg_status status = QG_OK;
    *matched = 0;
    for (size_t i = 0; listed(i) && !status; i++)
        if (fnmatch(glob, listed(i), 0) == 0) {
            status = qg_list_add(list, listed(i));
            ++*matched;
        }
    return status;
}

// --------------------------------------------------------------------------------------- numbers

void qg_numbers_free(qg_numbers *numbers) {
    free(numbers->values);
    *numbers = (qg_numbers){0};
}

static qg_status append_number(qg_numbers *numbers, uint64_t value) {
    if (numbers->count >= QG_LIST_MOST)
        return qg_fail(QG_ERROR_ARGUMENT, "the list has more than %d numbers", QG_LIST_MOST);
    if (numbers->count == numbers->capacity) {
        int64_t capacity = numbers->capacity ? 2 * numbers->capacity : 16;
        uint64_t *values = realloc(numbers->values, (size_t)capacity * sizeof *values);
        if (!values)
            return out_of_memory();
        numbers->values = values;
        numbers->capacity = capacity;
    }
    numbers->values[numbers->count++] = value;
    return QG_OK;
}

static qg_status no_number(const char *item, uint64_t lowest, uint64_t highest) {
    return qg_fail(QG_ERROR_ARGUMENT, "'%.*s' is no whole number from %llu to %llu", LONGEST_SHOWN,
                   item, (unsigned long long)lowest, (unsigned long long)highest);
}

// The parts of lo:hi:step or lo:hi:*factor.
static qg_status read_range(const char *item, uint64_t *low, uint64_t *high, uint64_t *step,
                            bool *multiplies) {
    char text[LONGEST_SHOWN], *second, *third;
    snprintf(text, sizeof text, "%s", item);
    second = strchr(text, ':');
    third = second ? strchr(second + 1, ':') : NULL;
    if (third) {
        *second++ = 0;
        *third++ = 0;
        *multiplies = *third == '*';
        if (qg_number_u64(text, low) && qg_number_u64(second, high) &&
            qg_number_u64(third + *multiplies, step))
            return QG_OK;
    }
    return qg_fail(QG_ERROR_ARGUMENT,
                   "'%.*s': write lo:hi:step or lo:hi:*factor with whole numbers", LONGEST_SHOWN,
                   item);
}

static qg_status add_range(const char *item, uint64_t lowest, uint64_t highest,
                           qg_numbers *numbers) {
    uint64_t low = 0, high = 0, step = 0;
    bool multiplies = false;
    qg_status status = read_range(item, &low, &high, &step, &multiplies);
    if (status)
        return status;
    if (low > high)
        return qg_fail(QG_ERROR_ARGUMENT, "'%.*s' ends before it begins", LONGEST_SHOWN, item);
    if (low < lowest || high > highest)
        return no_number(item, lowest, highest);
    if (step < 1 + (uint64_t)multiplies || (multiplies && low == 0))
        return qg_fail(QG_ERROR_ARGUMENT, "'%.*s' never ends: %s", LONGEST_SHOWN, item,
                       !multiplies ? "the step must be at least 1"
                       : low == 0  ? "0 times anything is 0"
                                   : "the factor must be at least 2");
    for (uint64_t value = low; !status && value <= high;) {
        status = append_number(numbers, value);
        if (multiplies ? value > high / step : step > high - value)
            break;
        value = multiplies ? value * step : value + step;
    }
    return status;
}

static qg_status add_number(const char *item, uint64_t lowest, uint64_t highest,
                            qg_numbers *numbers) {
    uint64_t value;
    if (strchr(item, ':'))
        return add_range(item, lowest, highest, numbers);
    if (!qg_number_u64(item, &value) || value < lowest || value > highest)
        return no_number(item, lowest, highest);
    return append_number(numbers, value);
}

typedef struct place {
    uint64_t value;
    int64_t index;
} place;

static int by_value_then_index(const void *left, const void *right) {
    const place *a = left, *b = right;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static int by_index(const void *left, const void *right) {
    const place *a = left, *b = right;
    return (a->index > b->index) - (a->index < b->index);
}

// Keeps the first of equal numbers, in their order.
static qg_status drop_repeated(qg_numbers *numbers) {
    size_t count = (size_t)numbers->count, kept = 0;
    place *places = malloc((count + 1) * sizeof *places);
    if (!places)
        return out_of_memory();
    for (size_t i = 0; i < count; i++)
        places[i] = (place){numbers->values[i], (int64_t)i};
    qsort(places, count, sizeof *places, by_value_then_index);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || places[i].value != places[kept - 1].value)
            places[kept++] = places[i];
    qsort(places, kept, sizeof *places, by_index);
    for (size_t i = 0; i < kept; i++)
        numbers->values[i] = places[i].value;
    numbers->count = (int64_t)kept;
    free(places);
    return QG_OK;
}

qg_status qg_numbers_read(const qg_list *items, uint64_t lowest, uint64_t highest,
                          qg_numbers *numbers) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < items->count && !status; i++)
        status = add_number(items->items[i], lowest, highest, numbers);
    return status ? status : drop_repeated(numbers);
}
