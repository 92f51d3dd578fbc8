#include "target.h"

#include <string.h>
#include <strings.h>

static int hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool decode(char *text, bool plus) {
    char *out = text;
    for (char *p = text; *p; p++) {
        if (*p == '%') {
            int high = hex(p[1]), low = high < 0 ? -1 : hex(p[2]);
            if (low < 0 || (high == 0 && low == 0))
                return false;
            *out++ = (char)(high << 4 | low);
            p += 2;
        } else {
            *out++ = plus && *p == '+' ? ' ' : *p;
        }
    }
    *out = '\0';
    return true;
}

/* Behind "http://host" when the target begins so. */
static char *skip_authority(char *target) {
    char *p = target;
    if (strncasecmp(p, "http://", 7) == 0)
        p += 7;
    else if (strncasecmp(p, "https://", 8) == 0)
        p += 8;
    else
        return p;
    return p + strcspn(p, "/?");
}

bool target_split(char *target, char **path, char **query) {
    static char root[] = "/";
    for (const unsigned char *p = (unsigned char *)target; *p; p++)
        if (*p <= 0x20 || *p == 0x7f || *p == '#')
            return false;
    char *p = skip_authority(target);
    bool absolute = p != target;
    *query = strchr(p, '?');
    if (*query)
        *(*query)++ = '\0';
    if (strcmp(p, "*") == 0) {
        *path = p;
        return true;
    }
    if (*p != '/' && !(absolute && *p == '\0'))
        return false;
    if (!decode(p, false))
        return false;
    for (size_t length = strlen(p); length > 1 && p[length - 1] == '/'; length--)
        p[length - 1] = '\0';
    *path = *p ? p : root;
    return true;
}

bool target_next(char **query, char **name, char **value, bool *wrong) {
    static char empty[] = "";
    *wrong = false;
    while (*query && **query) {
        char *pair = *query, *end = strchr(pair, '&');
        *query = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        if (!*pair)
            continue;
        char *equals = strchr(pair, '=');
        if (equals)
            *equals = '\0';
        *name = pair;
        *value = equals ? equals + 1 : empty;
        *wrong = !decode(*name, true) || (equals && !decode(*value, true));
        return !*wrong;
    }
    return false;
}
