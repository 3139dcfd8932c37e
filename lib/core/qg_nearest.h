// Suggestions: the known word nearest to one that is not known.
#ifndef QG_NEAREST_H
#define QG_NEAREST_H

#include <qg_hd.h>
#include <stddef.h>

QG_EXTERN_C_BEGIN

// `listed(i)` is the i-th known word, NULL past the end. Returns the first of the words with the
// fewest edits (insert, delete, replace, swap two neighbours; case does not count), or NULL if
// nothing is near: more edits than a third of the word's length (at least one is allowed), or a
// word longer than 63 characters.
const char *qg_nearest(const char *word, const char *(*listed)(size_t));

QG_EXTERN_C_END

#endif
