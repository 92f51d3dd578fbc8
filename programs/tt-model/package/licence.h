/* licence.h - the licence of weights, said once when they arrive. */
#ifndef TM_LICENCE_H
#define TM_LICENCE_H

#include "hub/hub.h"

void tm_licence_notice(const tm_hub_repo *repo, const char *endpoint);

#endif
