// Shards from launchers' variables. See launcher.h.
#include <launcher.h>

#include <number.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static qg_status read_number(const char *name, uint64_t *out) {
    const char *value = variable(name);
    if (!value)
        return qg_fail(QG_ERROR_ENVIRONMENT, "%s is not set; --shard I/N takes its place", name);
    if (!qg_number_u64(value, out) || *out > INT_MAX)
        return qg_fail(QG_ERROR_ENVIRONMENT,
                       "%s is '%.40s', which is no count; --shard I/N takes its place", name,
                       value);
    return QG_OK;
}

static qg_status take(const char *origin, uint64_t rank, uint64_t size, qg_shard *out) {
    if (rank >= size)
        return qg_fail(QG_ERROR_ENVIRONMENT,
                       "%s gives shard %llu of %llu; --shard I/N takes its place", origin,
                       (unsigned long long)rank + 1, (unsigned long long)size);
    *out = (qg_shard){(int)rank + 1, (int)size, origin};
    return QG_OK;
}

static qg_status from_rank(const char *rank_name, const char *size_name, qg_shard *out) {
    uint64_t rank, size;
    qg_status status = read_number(rank_name, &rank);
    if (!status)
        status = read_number(size_name, &size);
    return status ? status : take(rank_name, rank, size, out);
}

static qg_status from_array(qg_shard *out) {
    uint64_t id, low, high, step = 1;
    qg_status status = read_number("SLURM_ARRAY_TASK_ID", &id);
    if (!status)
        status = read_number("SLURM_ARRAY_TASK_MIN", &low);
    if (!status)
        status = read_number("SLURM_ARRAY_TASK_MAX", &high);
    if (!status && variable("SLURM_ARRAY_TASK_STEP"))
        status = read_number("SLURM_ARRAY_TASK_STEP", &step);
    if (status)
        return status;
    if (step == 0 || id < low || high < low || (id - low) % step != 0)
        return qg_fail(QG_ERROR_ENVIRONMENT,
                       "SLURM_ARRAY_TASK_ID %llu does not fit %llu-%llu:%llu; --shard I/N takes "
                       "its place",
                       (unsigned long long)id, (unsigned long long)low, (unsigned long long)high,
                       (unsigned long long)step);
    return take("SLURM_ARRAY_TASK_ID", (id - low) / step, (high - low) / step + 1, out);
}

qg_status qg_launcher_shard(qg_shard *out) {
    *out = (qg_shard){1, 1, NULL};
    uint64_t tasks = 0;
    if (variable("OMPI_COMM_WORLD_RANK"))
        return from_rank("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", out);
    if (variable("PMI_RANK"))
        return from_rank("PMI_RANK", "PMI_SIZE", out);
    if (variable("SLURM_PROCID") && variable("SLURM_STEP_NUM_TASKS")) {
        qg_status status = read_number("SLURM_STEP_NUM_TASKS", &tasks);
        if (status)
            return status;
        if (tasks > 1)
            return from_rank("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", out);
    }
    return variable("SLURM_ARRAY_TASK_ID") ? from_array(out) : QG_OK;
}

qg_status qg_shard_parse(const char *text, qg_shard *out) {
    char first[24];
    const char *slash = strchr(text, '/');
    uint64_t shard, shards;
    if (slash && (size_t)(slash - text) < sizeof first) {
        snprintf(first, sizeof first, "%.*s", (int)(slash - text), text);
        if (qg_number_u64(first, &shard) && qg_number_u64(slash + 1, &shards) && shard >= 1 &&
            shard <= shards && shards <= INT_MAX) {
            *out = (qg_shard){(int)shard, (int)shards, NULL};
            return QG_OK;
        }
    }
    return qg_fail(QG_ERROR_ARGUMENT, "'%.40s' is no shard: write I/N with 1 <= I <= N", text);
}
