// XXH3-64 through libxxhash, or through its header alone (XXH_INLINE_ALL). See qg_digest.h.
// QG_NO_XXHASH: a build without either has no digests, and says so.
#include <qg_digest.h>

#ifdef QG_NO_XXHASH

uint64_t qg_digest_bytes(const void *bytes, size_t size) {
    (void)bytes, (void)size;
    return 0;
}

qg_status qg_digest_create(qg_digest **out) {
    *out = NULL;
    return qg_fail(QG_ERROR_UNSUPPORTED, "this build has no digests: xxhash.h was not found");
}

void qg_digest_reset(qg_digest *digest) { (void)digest; }

void qg_digest_add(qg_digest *digest, const void *bytes, size_t size) {
    (void)digest, (void)bytes, (void)size;
}

uint64_t qg_digest_value(const qg_digest *digest) {
    (void)digest;
    return 0;
}

void qg_digest_free(qg_digest *digest) { (void)digest; }

#else

#include <xxhash.h>

// libxxhash hides its state type; ours is only ever a pointer to it.
static XXH3_state_t *state_of(qg_digest *digest) { return (XXH3_state_t *)(void *)digest; }

uint64_t qg_digest_bytes(const void *bytes, size_t size) { return XXH3_64bits(bytes, size); }

qg_status qg_digest_create(qg_digest **out) {
    XXH3_state_t *state = XXH3_createState();
    *out = (qg_digest *)(void *)state;
    if (!state)
        return qg_fail(QG_ERROR_MEMORY, "no memory for a digest state");
    XXH3_64bits_reset(state);
    return QG_OK;
}

void qg_digest_reset(qg_digest *digest) { XXH3_64bits_reset(state_of(digest)); }

void qg_digest_add(qg_digest *digest, const void *bytes, size_t size) {
    XXH3_64bits_update(state_of(digest), bytes, size);
}

uint64_t qg_digest_value(const qg_digest *digest) {
    return XXH3_64bits_digest((const XXH3_state_t *)(const void *)digest);
}

void qg_digest_free(qg_digest *digest) { XXH3_freeState(state_of(digest)); }

#endif
