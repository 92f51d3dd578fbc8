#include "common/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

bool number_parse(const char *text, double *value) {
    static const char digits[] = "0123456789";
    const char *p = text + (*text == '-' || *text == '+');
    size_t whole = strspn(p, digits), part = 0;
    p += whole;
    if (*p == '.') {
        part = strspn(p + 1, digits);
        p += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p += 1 + (p[1] == '-' || p[1] == '+');
        size_t exponent = strspn(p, digits);
        if (exponent == 0)
            return false;
        p += exponent;
    }
    if (*p)
        return false;
    *value = strtod(text, NULL);
    return isfinite(*value);
}

sp_status number_real(const char *name, const char *text, double minimum, double maximum, double *value,
                      sp_error *err) {
    double parsed;
    if (!number_parse(text, &parsed))
        return fail(err, SP_ERR_ARGUMENT, "%s: \"%.40s\" is not a number", name, text);
    if (parsed < minimum || parsed > maximum)
        return fail(err, SP_ERR_ARGUMENT, "%s: %.40s is not within %.10g...%.10g", name, text, minimum, maximum);
    *value = parsed;
    return SP_OK;
}

sp_status number_whole(const char *name, const char *text, int64_t minimum, int64_t maximum, int64_t *value,
                       sp_error *err) {
    double parsed;
    if (!number_parse(text, &parsed) || parsed != trunc(parsed))
        return fail(err, SP_ERR_ARGUMENT, "%s: \"%.40s\" is not a whole number", name, text);
    if (parsed < (double)minimum || parsed > (double)maximum)
        return fail(err, SP_ERR_ARGUMENT, "%s: %.40s is not within %" PRId64 "...%" PRId64, name, text, minimum,
                    maximum);
    *value = (int64_t)parsed;
    return SP_OK;
}
