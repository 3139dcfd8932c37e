// Runs gnuplot. See plot_write.h.
#include <plot_write.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// What gnuplot writes has this ending until it is whole: nothing half drawn looks like a picture.
#define PART ".part"

// gnuplot finds the data beside the script: it works in their folder.
static void become_gnuplot(const qg_plot_files *files, const char *script, int messages) {
    static const char part[] = "PART='" PART "'";
    int null = open("/dev/null", O_RDWR);
    if (chdir(files->folder) != 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(null, STDOUT_FILENO) < 0 || dup2(messages, STDERR_FILENO) < 0)
        _exit(126);
    setenv("LC_ALL", "C.UTF-8", 1);
    unsetenv("GNUTERM");
    execlp("gnuplot", "gnuplot", "-d", "-e", part, script, (char *)NULL);
    _exit(errno == ENOENT ? 127 : 126);
}

// The beginning of what gnuplot said.
static void read_messages(int from, char *text, size_t size) {
    size_t length = 0;
    ssize_t got;
    char rest[512];
    while (length + 1 < size && (got = read(from, text + length, size - 1 - length)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        length += (size_t)got;
    }
    while ((got = read(from, rest, sizeof rest)) > 0 || (got < 0 && errno == EINTR)) {
    }
    text[length] = '\0';
}

// gnuplot repeats the command, marks the place in it, and then says `"F3.gp" line 7: why`: that
// line; else the first that is not empty.
static const char *telling_line(char *messages) {
    const char *first = NULL;
    for (char *line, *rest = messages; (line = strsep(&rest, "\n"));) {
        line += strspn(line, " \t\r\f");
        if (line[0] == '"' && strstr(line, "\" line "))
            return line;
        if (!first && line[0])
            first = line;
    }
    return first ? first : "it said nothing";
}

static qg_status verdict_of(int how, const char *stem, char *messages) {
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
        return QG_OK;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 127)
        return qg_fail(QG_ERROR_IO,
                       "gnuplot was not found: install the package gnuplot-nox, or "
                       "draw %s.gp with it elsewhere",
                       stem);
    if (WIFSIGNALED(how))
        return qg_fail(QG_ERROR_IO, "gnuplot was ended by signal %d on %s.gp", WTERMSIG(how), stem);
    return qg_fail(QG_ERROR_IO, "gnuplot failed on %s.gp: %.300s", stem, telling_line(messages));
}

static qg_status run_gnuplot(const qg_plot_files *files, const char *script) {
    int ends[2], how = 0;
    char messages[1024] = "";
    if (pipe2(ends, O_CLOEXEC) != 0)
        return qg_fail(QG_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        become_gnuplot(files, script, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return qg_fail(QG_ERROR_IO, "cannot start a process: %s", strerror(errno));
    }
    read_messages(ends[0], messages, sizeof messages);
    close(ends[0]);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    return verdict_of(how, files->stem, messages);
}

// ------------------------------------------------------------------------------------ the PDF date

// Cairo writes the time of day into a PDF; with a constant of the same length equal data give equal
// bytes.
static void blank_date(char *bytes, size_t size) {
    static const char key[] = "/CreationDate (D:";
    for (size_t i = 0; i + sizeof key + 14 < size; i++)
        if (memcmp(bytes + i, key, sizeof key - 1) == 0)
            for (size_t j = i + sizeof key - 1; j < size && bytes[j] != ')'; j++)
                if (bytes[j] >= '0' && bytes[j] <= '9')
                    bytes[j] = '0';
}

// ---------------------------------------------------------------------------------------- pictures

typedef struct picture {
    char *bytes;
    size_t size;
} picture;

static qg_status read_picture(const char *path, picture *out) {
    FILE *file = fopen(path, "rb");
    long size = -1;
    *out = (picture){0};
    if (!file)
        return qg_fail(QG_ERROR_IO, "gnuplot wrote no %s", path);
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0)
        out->bytes = malloc((size_t)size);
    bool done = out->bytes && fseek(file, 0, SEEK_SET) == 0 &&
                fread(out->bytes, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    out->size = done ? (size_t)size : 0;
    return done || size == 0 ? QG_OK : qg_fail(QG_ERROR_IO, "%s: cannot be read", path);
}

// A full disk cuts a picture off, and gnuplot says nothing.
static bool is_whole(const picture *p, const char *end) {
    enum { TAIL = 64 };
    size_t length = strlen(end), from = p->size > TAIL ? p->size - TAIL : 0;
    for (size_t i = from; i + length <= p->size; i++)
        if (memcmp(p->bytes + i, end, length) == 0)
            return true;
    return false;
}

// From its name while gnuplot wrote it to its own, if it is whole.
static qg_status keep_picture(const qg_plot_files *files, const char *ending, const char *end) {
    char part[4096], path[4096], whole_name[64];
    picture p;
    snprintf(whole_name, sizeof whole_name, ".%s", ending);
    snprintf(path, sizeof path, "%s/%s%s", files->folder, files->stem, whole_name);
    if (snprintf(part, sizeof part, "%s/%s%s" PART, files->folder, files->stem, whole_name) >=
        (int)sizeof part)
        return qg_fail(QG_ERROR_IO, "%.200s...: the path is too long", files->folder);
    qg_status status = read_picture(part, &p);
    if (status == QG_OK && !is_whole(&p, end))
        status = qg_fail(QG_ERROR_IO, "%s: gnuplot left it unfinished: is the disk full?", path);
    if (status == QG_OK && strcmp(ending, "pdf") == 0) {
        blank_date(p.bytes, p.size);
        status = qg_plot_replace_file(files->folder, files->stem, whole_name, p.bytes, p.size);
    } else if (status == QG_OK && rename(part, path) != 0) {
        status = qg_fail(QG_ERROR_IO, "%s: %s", path, strerror(errno));
    }
    free(p.bytes);
    return status;
}

static void drop_parts(const qg_plot_files *files) {
    static const char *const ENDINGS[] = {"svg", "png", "pdf"};
    for (size_t i = 0; i < sizeof ENDINGS / sizeof ENDINGS[0]; i++) {
        char part[4096];
        snprintf(part, sizeof part, "%s/%s.%s" PART, files->folder, files->stem, ENDINGS[i]);
        unlink(part);
    }
}

qg_status qg_plot_draw(const qg_plot_files *files) {
    char script[256];
    snprintf(script, sizeof script, "%s.gp", files->stem);
    qg_status status = run_gnuplot(files, script);
    if (status == QG_OK && files->svg)
        status = keep_picture(files, "svg", "</svg>");
    if (status == QG_OK && files->png)
        status = keep_picture(files, "png", "IEND");
    if (status == QG_OK && files->pdf)
        status = keep_picture(files, "pdf", "%%EOF");
    if (status != QG_OK)
        drop_parts(files);
    return status;
}
