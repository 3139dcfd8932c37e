// What a message about an unknown name adds: the names near it, or where all are listed.
#ifndef NEAR_WORDS_H
#define NEAR_WORDS_H

#include <qg_status.h>
#include <stdbool.h>
#include <stddef.h>

// Writes ", "-separated words near to `word`: those that begin with it, or the one of fewest edits
// (qg_nearest), or those that share a beginning with it, hold it or are held in it; at most three.
// False if there is none.
bool qg_near_words(const char *word, const char *(*listed)(size_t), char *text, size_t size);

// The unknown-name message: "unknown KIND 'word'; the nearest is a" or "... are a, b".
// QG_ERROR_ARGUMENT.
qg_status qg_near_unknown(const char *kind, const char *word, const char *(*listed)(size_t));

// Adds "; hint" to the detail of a failure that begins with "unknown" and names nothing near.
// Returns the status.
qg_status qg_near_hint(qg_status status, const char *hint);

#endif
