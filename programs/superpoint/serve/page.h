/* The demo page and its parts, inside the program. */
#ifndef SP_SERVE_PAGE_H
#define SP_SERVE_PAGE_H

#include <stddef.h>

typedef struct page_file {
    const char *name;
    const unsigned char *bytes;
    size_t size;
} page_file;

/* Ended by a NULL name. */
extern const page_file page_files[];

#endif
