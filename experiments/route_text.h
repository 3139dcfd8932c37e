// A file of routes as text: which kernel of groups was faster where, learned from timings of one GPU.
//
// Tab-separated: a header line, then `gpu recipe input k_from m_from kernel ratio samples`, ascending
// by gpu, recipe, input, k_from, m_from; lines that begin with # are comments. `recipe` is a recipe's
// name where layout, rule and rounding are its own, else `FORMAT LAYOUT RULE[ ROUNDING]`.
// Memory only: route_file.h reads and writes files.
#ifndef ROUTE_TEXT_H
#define ROUTE_TEXT_H

#include <qg_kernel_choice.h>
#include <stdio.h>

enum { ROUTE_GPU_SIZE = 128, ROUTE_RECIPE_SIZE = 160, ROUTE_INPUT_SIZE = 16 };

typedef struct route_entry {
    char gpu[ROUTE_GPU_SIZE], recipe[ROUTE_RECIPE_SIZE], input[ROUTE_INPUT_SIZE];
    qg_route_row row;
} route_entry;

typedef struct route_list {
    route_entry *items;
    int64_t count, capacity;
} route_list;

// QG_ERROR_MEMORY.
qg_status route_list_add(route_list *list, const route_entry *entry);
// By gpu, recipe, input, k_from, m_from.
void route_list_sort(route_list *list);
void route_list_free(route_list *list);

// Appends the rows of a text. QG_ERROR_DATA: `NAME:LINE: what is wrong`; the list is then as before.
qg_status route_text_parse(const char *name, const char *text, size_t size, route_list *out);
// The whole text of a list. False if the stream failed.
bool route_text_print(const route_list *list, FILE *stream);

// The rows of one GPU, recipe and input type, from malloc; *count 0 and *out NULL if there are none.
qg_status route_pick(const route_list *list, const char *gpu, const char *recipe, const char *input,
                     qg_route_row **out, size_t *count);

// What the column `recipe` says of a case. Texts as in the columns of /cases.
void route_recipe(const char *format, const char *layout, const char *rule, const char *rounding,
                  char out[ROUTE_RECIPE_SIZE]);

#endif
