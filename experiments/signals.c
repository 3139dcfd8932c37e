// Signals of a sweep. See qg_signals.h. The handlers only note: a second Ctrl-C changes nothing,
// for `timeout` and batch systems send their signal twice.
#include <qg_signals.h>

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t stop_signal, write_wanted;

static void note_stop(int number) { stop_signal = number; }

static void note_write(int number) {
    (void)number;
    write_wanted = 1;
}

static void note_nothing(int number) { (void)number; }

static const struct {
    int number;
    void (*handler)(int);
} CAUGHT[] = {
    {SIGINT,  note_stop   },
    {SIGTERM, note_stop   },
    {SIGHUP,  note_stop   },
    {SIGUSR1, note_write  },
    {SIGCHLD, note_nothing}
};
enum { CAUGHT_COUNT = sizeof CAUGHT / sizeof CAUGHT[0] };

static struct sigaction before[CAUGHT_COUNT];

void qg_signals_begin(void) {
    signal(SIGUSR1, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

void qg_signals_catch(void) {
    stop_signal = write_wanted = 0;
    for (int i = 0; i < CAUGHT_COUNT; i++) {
        struct sigaction action = {.sa_handler = CAUGHT[i].handler, .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        sigaction(CAUGHT[i].number, NULL, &before[i]);
        // nohup: a closed terminal is not to stop it.
        if (CAUGHT[i].number != SIGHUP || before[i].sa_handler != SIG_IGN)
            sigaction(CAUGHT[i].number, &action, NULL);
    }
}

void qg_signals_restore(void) {
    for (int i = 0; i < CAUGHT_COUNT; i++)
        sigaction(CAUGHT[i].number, &before[i], NULL);
}

const char *qg_signals_stop(void) {
    switch (stop_signal) {
    case 0: return NULL;
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    default: return "SIGHUP";
    }
}

bool qg_signals_take_write(void) {
    bool wanted = write_wanted;
    write_wanted = 0;
    return wanted;
}
