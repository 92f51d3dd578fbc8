#include "extract/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

/* A handler can reach nothing but a global; threads read it too. Lock-free, so that the handler may write it. */
static atomic_bool asked;
_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "a signal handler must not wait for a lock");

static void note(int number) {
    (void)number;
    atomic_store(&asked, true);
}

void interrupt_catch(void) {
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool interrupt_asked(void) {
    return atomic_load(&asked);
}
