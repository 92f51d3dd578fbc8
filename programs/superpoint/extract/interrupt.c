#include "extract/interrupt.h"

#include <signal.h>
#include <stddef.h>

/* A handler can reach nothing but a global. */
static volatile sig_atomic_t asked;

static void note(int number) {
    (void)number;
    asked = 1;
}

void interrupt_catch(void) {
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool interrupt_asked(void) {
    return asked != 0;
}
