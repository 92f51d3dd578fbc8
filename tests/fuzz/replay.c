/*
 * Runs a fuzz target without a fuzzer: over each file named, over each file of each folder named, and with
 * -mutations=N over N broken copies of each: bytes changed, cut out, doubled or swapped, always the same ones.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long files, runs;

/* xorshift64*: any generator with a fixed start would do. */
static uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1DULL;
}

static void flip(uint8_t *bytes, size_t size, uint64_t *state) {
    static const uint8_t edges[] = {0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF};
    for (uint64_t n = next_random(state) % 8 + 1; n > 0; n--) {
        size_t at = next_random(state) % size;
        uint64_t r = next_random(state);
        bytes[at] = r & 1 ? edges[(r >> 8) % sizeof edges] : (uint8_t)(bytes[at] ^ (1u << (r >> 8) % 8));
    }
}

/* `out` has room for twice `size`; returns the new size. */
static size_t mutate(const uint8_t *bytes, size_t size, uint8_t *out, uint64_t *state) {
    memcpy(out, bytes, size);
    if (size == 0)
        return 0;
    size_t at = next_random(state) % size, length = next_random(state) % (size - at) + 1;
    switch (next_random(state) % 4) {
    case 0: /* cut the end off */
        return at;
    case 1: /* take a part out */
        memmove(out + at, out + at + length, size - at - length);
        return size - length;
    case 2: /* double a part */
        memmove(out + at + length, out + at, size - at);
        return size + length;
    default:
        flip(out, size, state);
        return size;
    }
}

/* A copy of exactly that size, so that a sanitizer sees every byte read too far. */
static void run(const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    runs++;
}

static int run_file(const char *path, unsigned long mutations) {
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    size_t size = (size_t)st.st_size;
    uint8_t *bytes = malloc(3 * size + 1);
    if (!bytes || fread(bytes, 1, size, f) != size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        fclose(f);
        free(bytes);
        return 1;
    }
    fclose(f);
    run(bytes, size);
    uint64_t state = 0x9E3779B97F4A7C15ULL ^ size;
    for (unsigned long i = 0; i < mutations; i++)
        run(bytes + size, mutate(bytes, size, bytes + size, &state));
    free(bytes);
    files++;
    return 0;
}

static int run_path(const char *path, unsigned long mutations) {
    struct dirent **entries;
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return run_file(path, mutations);
    int n = scandir(path, &entries, NULL, alphasort), failed = n < 0;
    if (n < 0)
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            failed |= run_path(inner, mutations);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return failed;
}

int main(int argc, char **argv) {
    unsigned long mutations = 0;
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-mutations=", 11) == 0)
            mutations = strtoul(argv[i] + 11, NULL, 10);
        else
            failed |= run_path(argv[i], mutations);
    }
    printf("%lu files, %lu runs\n", files, runs);
    return failed || files == 0;
}
