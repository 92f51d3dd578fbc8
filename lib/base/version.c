#include "superpoint.h"

uint32_t sp_version_number(void) {
    return SP_VERSION_MAJOR << 16 | SP_VERSION_MINOR << 8 | SP_VERSION_PATCH;
}

const char *sp_version(void) {
    return SP_VERSION_STRING;
}
