/* tt-model.yaml: YAML, and what is asked of a package's description. The reader takes a path: the bytes get one in
 * memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "package/authored.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const int fd = memfd_create("tt-model.yaml", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    tm_authored authored;
    tm_error err;
    if (tm_authored_load(path, &authored, &err) == TM_OK)
        tm_authored_free(&authored);
    close(fd);
    return 0;
}
