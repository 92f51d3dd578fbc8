/* SIGINT and SIGTERM, asked for instead of acted upon. */
#ifndef SUPERPOINT_EXTRACT_INTERRUPT_H
#define SUPERPOINT_EXTRACT_INTERRUPT_H

#include <stdbool.h>

/* From now on the first signal is only noted; the second ends the process as usual. */
void interrupt_catch(void);
bool interrupt_asked(void);

#endif
