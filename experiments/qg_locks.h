// Who may write the parts of a result file: the folder FILE.parts and its locks.
//
// Every running shard holds its own lock, FILE.parts/<shard>-of-<shards>.lock. Locks end with their
// process, however it ends. Must not know what the parts contain.
#ifndef QG_LOCKS_H
#define QG_LOCKS_H

#include <qg_status.h>
#include <stdbool.h>

typedef struct qg_locks qg_locks;

// Makes FILE.parts and takes the lock of a shard (1-based), waiting for a merge that is under way.
// QG_ERROR_ENVIRONMENT when another process runs the shard, or shards of another count; QG_ERROR_IO
// when folder or lock cannot be made.
qg_status qg_locks_take(const char *out, int shard, int shards, qg_locks **locks);

// For a merge by hand: alone at once, or QG_ERROR_ENVIRONMENT when a shard is running. *locks is
// NULL when there is no folder FILE.parts.
qg_status qg_locks_take_alone(const char *out, qg_locks **locks);

// The shard has run its cases. True if no other shard is running: this process now holds the folder
// alone. If others are, one of them will be the last, as soon as qg_locks_release is called; until
// then nobody starts, merges or removes anything, so parts can still be written.
bool qg_locks_finish(qg_locks *locks);

// Removes parts, temporary files, locks and the folder. Only when held alone; once.
void qg_locks_remove_folder(qg_locks *locks);

// In the worker process: closes the lock files; the locks stay with the parent. `locks` is a
// qg_locks *.
void qg_locks_in_worker(void *locks);

// Releases; an unused folder (no part in it, no other shard running) is removed. NULL is fine.
void qg_locks_release(qg_locks *locks);

#endif
