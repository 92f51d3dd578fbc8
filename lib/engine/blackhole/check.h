/* Bring-up of a chip, step by step: see sp_engine_check. */
#ifndef BH_CHECK_H
#define BH_CHECK_H

#include "superpoint.h"

sp_status sp_bh_check(const sp_model *model, const sp_engine_options *options, bool reset, sp_check_report *report,
                      void *context, sp_error *err);

#endif
