#include "licence.h"

#include "base/fs.h"
#include "base/paths.h"
#include "base/ui.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Terms that a licence's name on the Hub ("other") does not tell. */
static const struct {
    const char *repo, *terms;
} known[] = {
    {"magic-leap-community/superpoint",
     "Magic Leap's licence, for academic or non-profit organisations and noncommercial research only"},
};

void tm_licence_notice(const tm_hub_repo *repo, const char *endpoint) {
    const char *terms = repo->license;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcasecmp(known[i].repo, repo->id))
            terms = known[i].terms;
    if (!terms)
        return;
    const char *slash = strchr(repo->id, '/');
    char *mark = tm_root_file("licences/%.*s__%s", (int)(slash - repo->id), repo->id, slash + 1);
    if (!tm_exists(mark)) {
        tm_note("!", "the weights %s come under %s.", repo->id, terms);
        tm_say("  Read it before you use them: %s/%s", endpoint, repo->id);
        tm_write_file(mark, terms, strlen(terms), NULL);
    }
    free(mark);
}
