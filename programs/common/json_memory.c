#include "common/json_memory.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct json_block {
    struct json_block *next, *previous;
    max_align_t bytes[]; /* what YAJL sees */
} json_block;

static void link_block(json_memory *m, json_block *b) {
    b->previous = NULL;
    b->next = m->blocks;
    if (b->next)
        b->next->previous = b;
    m->blocks = b;
}

static void unlink_block(json_memory *m, json_block *b) {
    if (b->next)
        b->next->previous = b->previous;
    if (b->previous)
        b->previous->next = b->next;
    else
        m->blocks = b->next;
}

static json_block *block_of(void *bytes) {
    return (json_block *)((char *)bytes - offsetof(json_block, bytes));
}

static void *resize(void *context, void *bytes, size_t size) {
    json_memory *m = context;
    json_block *old = bytes ? block_of(bytes) : NULL;
    if (old)
        unlink_block(m, old);
    json_block *b = size > SIZE_MAX / 2 ? NULL : realloc(old, offsetof(json_block, bytes) + size);
    if (!b) {
        if (old)
            link_block(m, old);
        longjmp(m->out, 1);
    }
    link_block(m, b);
    return b->bytes;
}

static void *take(void *context, size_t size) {
    return resize(context, NULL, size);
}

static void give(void *context, void *bytes) {
    if (bytes) {
        unlink_block(context, block_of(bytes));
        free(block_of(bytes));
    }
}

yajl_alloc_funcs json_memory_functions(json_memory *memory) {
    return (yajl_alloc_funcs){take, resize, give, memory};
}

void json_memory_free(json_memory *memory) {
    while (memory->blocks)
        give(memory, memory->blocks->bytes);
}
