/*
 * Memory for YAJL, which does not look whether an allocation has failed: one that fails leaves YAJL by
 * longjmp, and what YAJL held is freed from here.
 */
#ifndef SP_COMMON_JSON_MEMORY_H
#define SP_COMMON_JSON_MEMORY_H

#include <setjmp.h>
#include <yajl/yajl_common.h>

typedef struct json_memory {
    struct json_block *blocks; /* all that is held */
    jmp_buf out;               /* set by the user before YAJL is called */
} json_memory;

/* The functions that YAJL is given; they point to `memory`, which must stay where it is. */
yajl_alloc_funcs json_memory_functions(json_memory *memory);

/* Free whatever is still held. */
void json_memory_free(json_memory *memory);

#endif
